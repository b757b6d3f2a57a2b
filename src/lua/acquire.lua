-- acquire: joins the queue, keeps the place there alive, claims a grant. May be sent again.
-- ARGV: owner, ticket it had or 0, limit, ttl, min-hold, attended 0|1, wait|never, max-queue or '', record,
--       over a quorum: the number of the attempt
-- Returns: granted token | queued ticket position look-again-or--1 holder | busy waiters holder
--          | gone kind note | more
local owner, brought, limit, ttl, min_hold, attended, queueing, max_queue, record, attempt = unpack(ARGV)
limit, ttl, min_hold = tonumber(limit), tonumber(ttl), tonumber(min_hold)
local stamp = 2 * tonumber(attempt or 0)

local buried = tombstone(owner)
if buried and buried > REQUEUED then return {'gone', KINDS[buried], note_of(owner)} end
if tombstone(owner .. ':0') then return {'gone', 'released', ''} end
if is_late(owner, stamp) then return {'gone', 'cancelled', ''} end

local function claim(line)
  if not line then return {'gone', 'expired', ''} end
  if line.state == 'revoked' then return {'gone', 'forced', note_of(owner)} end
  note_stamp(owner, stamp)
  local entries = live_entries(owner)
  entries['0'] = math.max(entries['0'] or 0, now + ttl)
  line.state = 'held'
  call('HSET', WHO, '+' .. owner, line_text(line))
  call('ZADD', HOLDERS, int(write_entries(owner, entries)), owner)
  return {'granted', line.token}
end

-- The ticket of a quorum is its client's: the same on all servers, and no token of theirs.
local function take_place()
  local ticket, missed = tonumber(brought), tombstone(owner)
  if stamp == 0 then
    if ticket == 0 or missed == REQUEUED then
      ticket = issue()
    elseif missed == EXPIRED then
      bury(owner, REQUEUED)
    end
    meta.last = math.max(meta.last, ticket)
  end
  if meta.created == 0 then meta.created = now_us end
  n_queue = n_queue + 1
  call('ZADD', QUEUE, int(ticket), owner)
  call('HSET', WHO, owner, record, '+' .. owner,
       line_text({state = 'waiting', limit = limit, token = 0, since = now, ttl = ttl,
                  min_hold = min_hold, attended = attended}))
end

local function place()
  local position = call('ZRANK', QUEUE, owner)
  local look_again = -1
  if position < 5 then
    look_again = math.max(1, math.min(earliest_end() - now, 3600000) + 50 * position)
  end
  return {'queued', tonumber(call('ZSCORE', QUEUE, owner)), position + 1, look_again, some_holder()}
end

if held_until(owner) or place_of(owner) then touch() end
sweep()

if held_until(owner) then
  local reply = claim(read_line(owner))
  finish(owner)
  return reply
end

if not place_of(owner) then
  admit()
  if more then
    finish(owner)
    return {'more'}
  end
  local waiters = n_queue > 0 and call('ZCARD', QUEUE) or 0
  if waiters == 0 and fits(limit) then
    local line = {state = 'held', limit = limit, since = now, ttl = ttl, min_hold = min_hold,
                  attended = attended}
    note_stamp(owner, stamp)
    grant(owner, line, now + ttl)
    call('HSET', WHO, owner, record)
    finish(owner)
    return {'granted', line.token}
  end
  if queueing == 'never' or (max_queue ~= '' and waiters >= tonumber(max_queue)) then
    note_skip(record)
    finish(owner)
    return {'busy', waiters, some_holder()}
  end
  take_place()
end

call('ZADD', ALIVE, int(now + HEARTBEAT), owner)
note_stamp(owner, stamp)
admit()
local reply
if held_until(owner) then
  reply = claim(read_line(owner))
else
  reply = more and {'more'} or place()
end
finish(owner)
return reply
