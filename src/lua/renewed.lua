-- A renewal that does more than extend a hold.
local owner, entry, token, limit, ttl = args.owner, args.entry, tonumber(args.token or 0), tonumber(args.limit), tonumber(args.ttl)
local min_hold, record, slot = tonumber(args.min_hold or 0), args.record, tonumber(args.slot or 0)
local stamp = 2 * (args.attempt or 0)

-- The words of its line, where they were lost with the line.
function s.words_again(since)
  local what = args.once and
               {field = args.once, span = tonumber(args.span), asked = since, max = tonumber(args.max_failures)}
  return s.once_part().words(what) .. (args.supersede and ' supersede=' .. args.supersede or '')
end

-- The line of its hold, as this renewal has it.
function s.line_again()
  local since = math.min(now, math.floor(token / 1000))
  return {state = 'held', limit = limit, token = s.int(token), since = since, ttl = ttl, min_hold = min_hold,
          responsive = args.responsive, words = s.with_slot(s.words_again(since), slot), record = record, stamp = stamp}
end

function s.lost(how, other_holder)
  if other_holder == nil then other_holder = s.some_holder() end
  return {'lost', how, s.note_of(owner), other_holder, token > 0 and tonumber(meta.grant) == token and 1 or 0}
end

local function lease_of(id)
  local INNER_LEASE = 60000  -- the longest of a nested run's entry
  return now + (id == '0' and ttl or math.min(ttl, INNER_LEASE))
end

-- One of several entries. Returns the end of the last of them, or nil where this one was released.
function s.extend_entry(line, ends)
  if s.tombstone(owner .. ':' .. entry) then return nil end
  s.unfold()
  local entries = s.live_entries(line)
  entries[entry] = math.max(entries[entry] or 0, lease_of(entry))
  return math.max(s.set_entries(line, entries), ends)
end

function s.prolong_min_hold(line)
  s.unfold()
  line.min_hold = min_hold
  s.note_grant(0, line)
end

function s.put_back(greatest)
  local why = s.loss_reason(owner, entry, token, limit, greatest, s.tombstone(owner))
  if not why and slot > 0 and s.used_slots()[slot] then why = 'taken' end
  if why then return s.lost(why) end
  s.unfold()
  local line = s.line_again()
  if s.tombstone(owner .. ':counted') then line.words = line.words .. ' counted=1' end
  call('ZREM', RELEASED, owner)
  if s.queue_ticket(owner) then
    call('ZREM', QUEUE, owner)
    call('ZREM', ALIVE, owner)
  end
  local ends = s.set_entries(line, {['0'] = lease_of(entry), [entry] = lease_of(entry)})
  s.slots_used = false
  s.store_hold(owner, line, ends, stamp, true)
  meta.last = s.int(math.max(meta.last, token))
  if meta.created == '0' then meta.created = s.int(now_us) end
  if args.rows then s.note_keep(tonumber(args.rows)) end
  if tonumber(args.supersede) then
    s.once_part().note_number(tonumber(args.supersede), record)
  elseif args.supersede then
    s.once_part().note_claim(owner, record, token)
  end
  s.note_grant(line.token, line)
  return {'put_back'}
end

