-- closure: closes the lock or opens it. While it is closed, only exempt runs are granted it; holders keep it. The caller names the
-- closure that it saw, so that a late or repeated request changes nothing.
-- include: memory tombstones lines holders history sweep acl finish
-- Arguments:
--   seen      the id of the closure that the caller saw
--   record    of the operator
--   id, ends  to close the lock: the new closure's id, and until when
-- Replies:
--   closed, opened
--   changed  the closure differs from what was seen, or it has expired: nothing was changed
local seen, record, id, ends = args.seen, args.record, args.id, tonumber(args.ends or 0)

local denied_command = denial()
if denied_command then return redis.error_reply(denied_command) end
if not id then touch() end
local before = closed_until() and describe(CLOSED, closed_until()) or nil
local present_id = before and before.owner

local reply
if id and present_id == id then
  reply = {'closed'}
elseif not id and not present_id then
  -- A request to close the lock that arrives after its undoing changes nothing.
  if seen then add_tombstone(seen, WAS_RELEASED) end
  reply = {'opened'}
elseif present_id ~= seen or id and (ends <= now or tombstone(id)) then
  reply = {'changed'}
elseif id then
  -- A server whose memory is full refuses the first write.
  store_holder(CLOSED, {state = 'closed', limit = 1, token = 0, since = now, ttl = 0, min_hold = 0, responsive = '0', id = id,
                        entries = '0:' .. int(ends), record = record}, ends)
  if before then add_tombstone(present_id, WAS_RELEASED) end
  sweep()
  write_history({kind = 'close', at = now, ends = ends, record = record})
  reply = {'closed'}
else
  remove_holder(CLOSED)
  forget_line(CLOSED)
  add_tombstone(present_id, WAS_RELEASED)
  sweep()
  write_history({kind = 'open', at = now, record = record})
  reply = {'opened'}
end
return finish(reply)
