-- closure: closes the lock or opens it. While it is closed nothing is granted but to who may pass; who holds it goes on.
-- The caller names the closure that it saw, so that a late or repeated request changes nothing.
-- ARGV: close|open, the id of the closure seen or '-', the operator's record; to close, its own id and until when
-- Returns: closed | opened | changed closure-or-false (it is not the one seen, or its end has come; nothing was changed)
local how, seen, record, id, ends = unpack(ARGV)
ends = tonumber(ends or 0)
local caller, reply

local denial = s.denial()
if denial then return redis.error_reply(denial) end
call('LLEN', HISTORY)
call('ZCARD', RELEASED)
local closed_until = s.closed_until()
local before = closed_until and s.describe(CLOSED, closed_until)
local present_id = before and before[1] or '-'

-- `close AT UNTIL RECORD`, `open AT RECORD`.
local function note(row)
  s.write_history(row .. ' ' .. record)
  s.changed = true
end

if how == 'close' and present_id == id then
  reply = {'closed'}
elseif how == 'open' and present_id == '-' then
  -- A request to close it that comes after its undoing changes nothing.
  if seen ~= '-' then s.add_tombstone(seen, WAS_RELEASED) end
  reply = {'opened'}
elseif present_id ~= seen or how == 'close' and (ends <= now or s.tombstone(id)) then
  reply = {'changed', before}
elseif how == 'close' then
  -- The first write is one that a server refuses whose memory is full.
  s.unfold()
  s.several = true
  call('HSET', WHO, CLOSED, record)
  if s.unswept then s.sweep_ended() end
  if before then s.add_tombstone(present_id, WAS_RELEASED) end
  s.store_line(CLOSED, {state = 'closed', limit = 1, token = '0', since = now, ttl = 0, min_hold = 0, responsive = '0',
                        words = ' id=' .. id, entries = '0=' .. s.int(ends), record = record}, ends, 0, not before)
  note('close ' .. now .. ' ' .. s.int(ends))
  reply = {'closed'}
else
  s.remove_holder(CLOSED)
  s.forget(CLOSED)
  s.add_tombstone(present_id, WAS_RELEASED)
  if s.unswept then s.sweep_ended() end
  note('open ' .. now)
  s.admit()
  reply = {'opened'}
end

