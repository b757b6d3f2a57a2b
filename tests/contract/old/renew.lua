-- renew of rlock at commit 82714a8, the last one that stored no version words: as it was, without its comments.
local owner, entry, token, limit, ttl, min_hold, attended, record, attempt = unpack(ARGV)
token, limit, ttl, min_hold = tonumber(token), tonumber(limit), tonumber(ttl), tonumber(min_hold)
local stamp = 2 * tonumber(attempt or 0)
local function lost(how) return {'lost', how, note_of(owner), some_holder()} end
local function write_back(line)
  local missed = line.state == 'granted' and token > 0 and stamp_of(owner) > 0
  if stamp == 0 and not missed then return end
  note_stamp(owner, stamp)
  line.token = token
  meta.last = math.max(meta.last, token)
  note_grant(token, line)
end
local function extend(line)
  if not line then return lost('deleted') end
  if line.state == 'revoked' then return lost('forced') end
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
  call('HSET', WHO, '+' .. owner, line_text(line))
  call('ZADD', HOLDERS, int(ends), owner)
  return {'extended'}
end
local function refusal(buried)
  if buried and buried > REQUEUED then return KINDS[buried] end
  if tombstone(owner .. ':' .. entry) then return 'released' end
  if token == 0 then return buried and 'expired' or 'deleted' end
  if not buried and meta.grant >= token and meta.created <= token then return 'deleted' end
  local since = limit == 1 and meta.grant or meta.exclusive
  if since > token then return 'taken' end
  if not fits(limit) then return 'full' end
  return nil
end
local function put_back()
  local why = refusal(tombstone(owner))
  if why then return lost(why) end
  local line = {state = 'held', limit = limit, token = token,
                since = math.min(now, math.floor(token / 1000)), ttl = ttl, min_hold = min_hold,
                attended = attended}
  local entries = {['0'] = now + lease_of(entry, ttl), [entry] = now + lease_of(entry, ttl)}
  call('ZREM', RELEASED, owner)
  if place_of(owner) then
    call('ZREM', QUEUE, owner)
    call('ZREM', ALIVE, owner)
  end
  note_stamp(owner, stamp)
  call('HSET', WHO, owner, record, '+' .. owner, line_text(line))
  add_holder(owner, line, write_entries(owner, entries))
  meta.last = math.max(meta.last, token)
  if meta.created == 0 then meta.created = now_us end
  note_grant(token, line)
  return {'put_back'}
end
if is_late(owner, stamp) then return lost('released') end
touch()
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
return told(reply)
