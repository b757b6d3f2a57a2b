-- include: holders
-- For acquire: which position an owner gets in the queue.

-- Returns whether a ticket is that of an exempt owner, which is a year ahead of all others.
local function is_ahead(ticket) return ticket < now_us - AHEAD / 2 end

-- Returns the ticket with which an owner stands in the queue: while the lock is closed, an exempt owner stands before all others.
local function placed(ticket)
  local passes = request.may_pass and not is_ahead(ticket) and holders.closed_until()
  return passes and math.max(1, ticket - AHEAD) or ticket
end

-- Returns a ticket behind all others. Tickets grow with time, and in the queue even if the clock was set back.
local function next_ticket()
  return math.max(now_us, (call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2] or 0) + 1)
end

-- Returns the ticket of an owner that joins, by the first of these that applies:
--   it supersedes a waiter   the least of that waiter's ticket, its own and that of an urgent owner
--   a quorum                 its own, the same on all servers; if its clock is ahead, the time here, or all later ones would be first
--   it missed two claims     the last
--   it had a ticket before   that ticket
--   it is urgent             by so much before the time here
--   otherwise                the last
local function ticket_for(taken, missed)
  local urgent = args.earlier and math.max(1, now_us - args.earlier)
  if taken then
    if not request.may_pass and is_ahead(taken) then taken = taken + AHEAD end
    return math.min(taken, request.given_ticket > 0 and request.given_ticket or taken, urgent or taken)
  end
  if request.stamp > 0 then return math.min(request.given_ticket, now_us) end
  if missed == REQUEUED then return next_ticket() end
  if request.given_ticket > 0 then return request.given_ticket end
  return urgent or next_ticket()
end

return {placed = placed, for_newcomer = ticket_for}
