-- include: grant admit once supersede
-- Of acquire: its arguments, and how a newcomer is granted the lock, is refused, or joins the queue.
local owner, record = args.owner, args.record
local limit, ttl, rows = tonumber(args.limit), tonumber(args.ttl), tonumber(args.rows or RUNS)
local given_ticket, max_queue = tonumber(args.ticket or 0), tonumber(args.max_queue or math.huge)
local stamp = 2 * (args.attempt or 0)
local supersedes, may_pass = args.supersede, args.while_closed
local what = args.once and {field = args.once, span = tonumber(args.span), asked = math.max(0, now - args.asked),
                            max = tonumber(args.max_failures)}
local known = what and once_of(read_line(owner))
if known then what.asked = math.min(what.asked, known.asked) end

-- A newcomer that is refused leaves no tombstone: the memory shows that the last one was counted, in case it asks again.
local function note_refusal(how)
  local counted = string.sub(owner, 1, 8)
  if memory.skipped == counted then return end
  memory.skipped = counted
  note_skip(record, how)
end

-- Its line, as a waiter or as a new holder.
local function new_line(state)
  return add_once({state = state, limit = limit, token = 0, since = now, ttl = ttl, min_hold = tonumber(args.min_hold or 0),
                   responsive = args.responsive, supersede = supersedes, while_closed = may_pass, record = record}, what)
end

-- An owner that may pass a closure stands a year before all that may not.
local function is_ahead(ticket) return ticket < now_us - AHEAD / 2 end
local function placed(ticket)
  local passes = may_pass and not is_ahead(ticket) and closed_until()
  return passes and math.max(1, ticket - AHEAD) or ticket
end

-- Tickets grow with time, and in the queue also if the clock was set back.
local function next_ticket()
  return math.max(now_us, (call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2] or 0) + 1)
end

-- Over a quorum the client chooses the ticket: the same on all servers. A ticket of a client whose clock is ahead becomes the
-- time here, or all later waiters would be served before it.
local function choose_ticket()
  local missed = tombstone(owner)  -- EXPIRED: it missed a claim, REQUEUED: a second time
  local ticket, taken = given_ticket, supersedes and take_over()
  local urgent = args.earlier and math.max(1, now_us - args.earlier)
  if taken then
    if not may_pass and is_ahead(taken) then taken = taken + AHEAD end
    ticket = ticket > 0 and math.min(ticket, taken) or taken
    if urgent then ticket = math.min(ticket, urgent) end
  elseif stamp > 0 then
    ticket = math.min(ticket, now_us)
  elseif missed == REQUEUED then
    ticket = next_ticket()
  elseif ticket == 0 then
    ticket = urgent or next_ticket()
  elseif missed == EXPIRED then
    add_tombstone(owner, REQUEUED)
  end
  if memory.created == 0 then memory.created = now_us end
  return placed(ticket)
end

local function grant_now(ends)
  memory.keep = rows
  -- Over a quorum the write-back of the token claims it.
  local line = new_line(stamp == 0 and 'held' or 'granted')
  grant(owner, line, ends, stamp)
  if supersedes then note_newest(line.token) end
  reply = {'granted', token = line.token, slot = line.slot}
end

local function enter()
  reply = supersedes and superseded_reply() or nil
  admit()
  if reply then return note_refusal('superseded') end
  local waiters = n_waiters()
  if waiters > 0 and may_pass and closed_until() then waiters = call('ZCOUNT', QUEUE, '-inf', int(now_us - AHEAD / 2)) end
  -- An owner that waited here before only comes back to its place.
  local waited_before = stamp == 0 and given_ticket > 0 or stamp_of(owner) > 0
  local full = waiters >= max_queue and not waited_before
  if must_retry then
    reply = {'more'}
  elseif waiters == 0 and fits(limit, may_pass) then
    grant_now(now + ttl)
  elseif args.at_once or full and not (supersedes and superseding_waiter()) then
    note_refusal()
    reply = {'busy', waiters = waiters, holder = obstacle(may_pass)}
  else
    local place = choose_ticket()
    write_line(owner, new_line('waiting'))
    set_place(owner, place)
    beat(owner)
  end
end

local function queued_reply(ticket)
  local place = call('ZRANK', QUEUE, owner)
  return {'queued', ticket = ticket, position = place + 1, holder = obstacle(may_pass), slice = SLICE * slices_at(place),
          look_again = place < 5 and math.max(1, math.min(first_end() - now, HOUR) + 50 * place) or nil}
end
