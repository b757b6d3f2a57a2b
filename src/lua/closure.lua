-- closure: closes the lock or opens it. While it is closed, only exempt runs are granted it; holders keep it. The caller names the
-- closure that it saw, so that a late or repeated request changes nothing.
-- include: memory acl finish history holders keys lines sweep tombstones views
-- Arguments:
--   seen      the id of the closure that the caller saw
--   record    of the operator
--   id, ends  to close the lock: the new closure's id, and until when
-- Replies:
--   closed, opened
--   changed  the closure differs from what was seen, or it has expired: nothing was changed
local seen, record, id, ends = args.seen, args.record, args.id, tonumber(args.ends or 0)

local denied_command = acl.denial()
if denied_command then return redis.error_reply(denied_command) end
if not id then keys.touch() end
local before = holders.closed_until() and views.of(CLOSED, holders.closed_until()) or nil
local present_id = before and before.owner

local reply
if id and present_id == id then
  reply = {'closed'}
elseif not id and not present_id then
  -- The tombstone stops a request to close the lock that arrives after its cancel.
  if seen then tombstones.add(seen, WAS_RELEASED) end
  reply = {'opened'}
elseif present_id ~= seen or id and (ends <= now or tombstones.kind(id)) then
  reply = {'changed'}
elseif id then
  -- This write comes first, because a server whose memory is full refuses only the first one.
  holders.store(CLOSED, {state = 'closed', limit = 1, token = 0, since = now, ttl = 0, min_hold = 0, responsive = '0', id = id,
                        entries = '0:' .. int(ends), record = record}, ends)
  if before then tombstones.add(present_id, WAS_RELEASED) end
  if is_due then sweep.run() end
  history.write({kind = 'close', at = now, ends = ends, record = record})
  reply = {'closed'}
else
  holders.remove(CLOSED)
  lines.forget(CLOSED)
  tombstones.add(present_id, WAS_RELEASED)
  if is_due then sweep.run() end
  history.write({kind = 'open', at = now, record = record})
  reply = {'opened'}
end
return finish.with(reply)
