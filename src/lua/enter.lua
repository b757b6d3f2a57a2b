-- include: grant admit once supersede
-- For acquire: how a newcomer is granted the lock, is refused, or joins the queue, and how a grant is claimed.

-- A refused newcomer leaves no tombstone: the memory shows that the last refusal was counted, in case the owner asks again.
local function note_refusal(how)
  local counted = string.sub(owner, 1, 8)
  if memory.skipped == counted then return end
  memory.skipped = counted
  count_skip(record, how)
end

-- The line of the owner, as a waiter or as a new holder.
local function new_line(state)
  return add_once({state = state, limit = limit, token = 0, since = now, ttl = ttl, min_hold = tonumber(args.min_hold or 0),
                   responsive = args.responsive, supersede = supersedes, while_closed = may_pass, record = record}, work)
end

-- An owner that may pass a closure stands a year ahead of all owners that may not.
local function is_ahead(ticket) return ticket < now_us - AHEAD / 2 end
local function placed(ticket)
  local passes = may_pass and not is_ahead(ticket) and closed_until()
  return passes and math.max(1, ticket - AHEAD) or ticket
end

-- Tickets grow with time, and in the queue even if the clock was set back.
local function next_ticket()
  return math.max(now_us, (call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2] or 0) + 1)
end

-- The ticket of an owner that joins, by the first of these that applies:
--   it supersedes a waiter   the least of that one's, its own and that of an urgent one
--   a quorum                 its own, the same on all servers; if its clock is ahead, the time here, or all later ones would be first
--   it missed two claims     the last
--   it had a ticket before   that ticket
--   it is urgent             by so much before the time here
--   otherwise                the last
local function ticket_for(taken, missed)
  local urgent = args.earlier and math.max(1, now_us - args.earlier)
  if taken then
    if not may_pass and is_ahead(taken) then taken = taken + AHEAD end
    return math.min(taken, given_ticket > 0 and given_ticket or taken, urgent or taken)
  end
  if stamp > 0 then return math.min(given_ticket, now_us) end
  if missed == REQUEUED then return next_ticket() end
  if given_ticket > 0 then return given_ticket end
  return urgent or next_ticket()
end

local function join()
  local missed = tombstone(owner)  -- EXPIRED: a claim, REQUEUED: a second one
  local taken = supersedes and take_over()
  if missed == EXPIRED and given_ticket > 0 and stamp == 0 and not taken then add_tombstone(owner, REQUEUED) end
  if memory.created == 0 then memory.created = now_us end
  local ticket = placed(ticket_for(taken, missed))
  write_line(owner, new_line('waiting'))
  set_place(owner, ticket)
  beat(owner)
end

local function grant_now(ends)
  memory.keep = rows
  -- Over a quorum the write-back of the token claims it.
  local line = new_line(stamp == 0 and 'held' or 'granted')
  grant(owner, line, ends, stamp)
  if supersedes then note_newest(line.token) end
  return {'granted', token = line.token, slot = line.slot}
end

-- The owner claims its grant, or holds the lock already.
local function claim(held)
  local line = read_line(owner)
  if line.state == 'revoked' then return {'gone', kind = 'forced', note = note_of(owner)} end
  if line.token == 0 then
    if not is_numbered(limit) or n_holders() == 1 then return grant_now(math.max(held, now + ttl)) end
    -- The line was deleted, and its token with it. It is not known which slot it had, and which slots the others have.
    return {'queued', ticket = math.max(1, given_ticket), position = 1, look_again = math.max(1, held - now),
            holder = describe(owner, held), slice = SLICE}
  end
  local superseded = supersedes and overtaken(line)
  if superseded then return superseded end
  if supersedes then note_newest(line.token) end
  memory.keep = rows  -- a sweep may write the row of this run
  local entries = live_entries(line)
  entries['0'] = math.max(entries['0'] or 0, now + ttl)
  if stamp == 0 then line.state = 'held' end
  store_holder(owner, line, math.max(held, set_entries(line, entries)))
  store_stamp(owner, stamp)
  return {'granted', token = line.token, slot = line.slot}
end

-- An owner in the queue is granted the lock, or waits.
local function wait()
  store_stamp(owner, stamp)
  local ticket = queue_ticket(owner)
  admit()
  local held, place = held_until(owner), call('ZRANK', QUEUE, owner)
  if held then return claim(held) end
  if must_retry then return {'more'} end
  return {'queued', ticket = ticket, position = place + 1, holder = obstacle(may_pass), slice = SLICE * slices_at(place),
          look_again = place < 5 and math.max(1, math.min(first_end() - now, HOUR) + 50 * place) or nil, needs = unknown_rules(memory)}
end

local function enter()
  local superseded = supersedes and superseded_reply()
  admit()
  if superseded then
    note_refusal('superseded')
    return superseded
  end
  local waiters = n_waiters()
  if waiters > 0 and may_pass and closed_until() then waiters = call('ZCOUNT', QUEUE, '-inf', int(now_us - AHEAD / 2)) end
  if must_retry then return {'more'} end
  if waiters == 0 and fits(limit, may_pass) then return grant_now(now + ttl) end
  -- An owner that waited here before only returns to its position.
  local waited_before = stamp == 0 and given_ticket > 0 or stamp_of(owner) > 0
  local full = waiters >= max_queue and not waited_before
  if args.at_once or full and not (supersedes and superseding_waiter()) then
    note_refusal()
    return {'busy', waiters = waiters, holder = obstacle(may_pass)}
  end
  join()
  return wait()
end
