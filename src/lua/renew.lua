-- The usual way of renew.
token, limit, ttl, min_hold = tonumber(token), tonumber(limit), tonumber(ttl), tonumber(min_hold)
local stamp, slot = 2 * tonumber(attempt or 0), tonumber(slot or 0)

-- The words of its line, where they were lost with the line.
local function words_again(since)
  local what = (once_field or '') ~= '' and
               {field = once_field, span = tonumber(once_span), asked = since, max = tonumber(max_failures)}
  return once_words(what) .. ((supersede or '') ~= '' and ' supersede=' .. supersede or '')
end

-- No greater token can have been issued, and none may be restored: issued tokens would never exceed it.
local greatest = math.max(meta.last, now_us + 1000 * tonumber(ahead or 0))

local function lost(how, other_holder)
  if other_holder == nil then other_holder = some_holder() end
  return {'lost', how, note_of(owner), other_holder, token > 0 and meta.grant == token and 1 or 0}
end

local function write_back(line)
  local missed = line.state == 'granted' and token > 0 and token <= greatest and stamp_of(owner) > 0
  if stamp == 0 and not missed then return end
  note_stamp(owner, stamp)
  line.token = token
  meta.last = math.max(meta.last, token)
  note_grant(token, line)
end

-- Renews a live hold; never shortens the lease.
local function extend(line)
  if not line then return lost('deleted') end
  if line.state == 'revoked' then return lost('forced', false) end  -- it still counts: nobody has taken over
  if tombstone(owner .. ':' .. entry) then return lost('released') end
  if line.limit > limit then return {'upgrade'} end
  local entries = live_entries(line)
  entries[entry] = math.max(entries[entry] or 0, now + lease_of(entry, ttl))
  local ends = math.max(write_entries(owner, entries), tonumber(held_until(owner)))
  write_back(line)
  line.state = 'held'
  if entry == '0' then line.ttl = ttl end
  if min_hold > line.min_hold then
    line.min_hold = min_hold
    note_hold(line)
  end
  -- A nested run has put it back, which does not know them.
  if entry == '0' and not once_of(line) and not line_word(line, 'supersede') then
    line.words = line.words .. words_again(line.since)
  end
  if changed == '1' then call('HSET', WHO, owner, record) end
  call('HSET', WHO, '+' .. owner, line_text(line))
  call('ZADD', HOLDERS, int(ends), owner)
  return {'extended'}
end

local function put_back()
  local why = loss_reason(owner, entry, token, limit, greatest, tombstone(owner))
  if not why and slot > 0 and used_slots()[slot] then why = 'taken' end
  if why then return lost(why) end
  local since = math.min(now, math.floor(token / 1000))
  local counted = tombstone(owner .. ':counted') and ' counted=1' or ''
  local line = {state = 'held', limit = limit, token = token, since = since, ttl = ttl, min_hold = min_hold,
                responsive = responsive, words = with_slot(words_again(since), slot) .. counted}
  local entries = {['0'] = now + lease_of(entry, ttl), [entry] = now + lease_of(entry, ttl)}
  call('ZREM', RELEASED, owner)
  if queue_ticket(owner) then
    call('ZREM', QUEUE, owner)
    call('ZREM', ALIVE, owner)
  end
  note_stamp(owner, stamp)
  call('HSET', WHO, owner, record, '+' .. owner, line_text(line))
  add_holder(owner, line, write_entries(owner, entries))
  meta.last = math.max(meta.last, token)
  if meta.created == 0 then meta.created = now_us end
  if (keep_rows or '') ~= '' then note_keep(tonumber(keep_rows)) end
  if tonumber(supersede or '') then note_number(tonumber(supersede), record) end
  note_grant(token, line)
  return {'put_back'}
end

if is_late(owner, stamp) then return lost('released') end
touch()
unfold()
local reply
if tonumber(held_until(owner) or 0) > now then
  reply = extend(read_line(owner))
  sweep()
else
  sweep()
  reply = put_back()
end
admit()
finish(owner)
return with_wakes(reply)
