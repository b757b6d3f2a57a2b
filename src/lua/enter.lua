-- include: admit beats entry_list grant history holders lines notes queue slots stamps supersede tasks tickets tombstones views
-- For acquire: how a newcomer is granted the lock, is refused, or joins the queue, and how a grant is claimed.

-- Counts a skip. The memory has the owner that was counted last, because a skipped newcomer that asks again left no tombstone.
local function note_refusal(how)
  local counted = string.sub(request.owner, 1, 8)
  if memory.skipped == counted then return end
  memory.skipped = counted
  history.count_skip(request.record, how)
end

-- Returns the line of the owner, as a waiter or as a new holder.
local function new_line(state)
  local line = {state = state, limit = request.limit, token = 0, since = now, ttl = request.ttl,
                min_hold = tonumber(args.min_hold or 0), responsive = args.responsive, supersede = request.supersedes,
                while_closed = request.may_pass, record = request.record}
  return request.work and tasks.add_to(line, request.work) or line
end

local function join()
  local missed = tombstones.kind(request.owner)  -- EXPIRED: a claim, REQUEUED: a second one
  local taken = request.supersedes and supersede.take_over()
  if missed == EXPIRED and request.given_ticket > 0 and request.stamp == 0 and not taken then tombstones.add(request.owner, REQUEUED) end
  if memory.created == 0 then memory.created = now_us end
  local ticket = tickets.placed(tickets.for_newcomer(taken, missed))
  lines.write(request.owner, new_line('waiting'))
  queue.set_place(request.owner, ticket)
  queue.beat(request.owner)
end

local function grant_now(ends)
  memory.keep = request.rows
  -- Over a quorum the write-back of the token claims the grant.
  local line = new_line(request.stamp == 0 and 'held' or 'granted')
  grant.make(request.owner, line, ends, request.stamp)
  if request.supersedes then supersede.note_newest(line.token) end
  return {'granted', token = line.token, slot = line.slot}
end

-- Extends the lease of an owner that claims its grant, or that holds the lock already. Returns the reply.
local function claim(held)
  local line = lines.read(request.owner)
  if line.state == 'revoked' then return {'gone', kind = 'forced', note = notes.of(request.owner)} end
  if line.token == 0 then
    if not slots.are_numbered(request.limit) or holders.count() == 1 then return grant_now(math.max(held, now + request.ttl)) end
    -- The line was deleted, with its token and its slot. The slots of other holders may be unknown, too.
    return {'queued', ticket = math.max(1, request.given_ticket), position = 1, look_again = math.max(1, held - now),
            holder = views.of(request.owner, held), slice = SLICE}
  end
  local superseded = request.supersedes and supersede.overtaken(line)
  if superseded then return superseded end
  if request.supersedes then supersede.note_newest(line.token) end
  memory.keep = request.rows  -- a sweep may write the row of this run
  local entries = entry_list.live(line)
  entries['0'] = math.max(entries['0'] or 0, now + request.ttl)
  if request.stamp == 0 then line.state = 'held' end
  local latest = entry_list.set(line, entries)
  holders.store(request.owner, line, math.max(held, latest))
  if request.stamp > 0 then stamps.store(request.owner, request.stamp) end
  return {'granted', token = line.token, slot = line.slot}
end

-- Grants the lock to an owner in the queue, or lets it wait. Returns the reply.
local function wait()
  if request.stamp > 0 then stamps.store(request.owner, request.stamp) end
  local ticket = queue.ticket(request.owner)
  admit.waiters()
  local held, place = holders.held_until(request.owner), call('ZRANK', QUEUE, request.owner)
  if held then return claim(held) end
  if must_retry then return {'more'} end
  return {'queued', ticket = ticket, position = place + 1, holder = views.obstacle(request.may_pass), slice = SLICE * beats.slices_at(place),
          look_again = place < 5 and math.max(1, math.min(holders.first_end() - now, HOUR) + 50 * place) or nil, needs = unknown_rules}
end

local function newcomer()
  local superseded = request.supersedes and supersede.refusal()
  local waiters = 0
  if at_start.waiters > 0 then  -- no waiter joins before this owner
    admit.waiters()
    waiters = queue.count()
  end
  if superseded then
    note_refusal('superseded')
    return superseded
  end
  if waiters > 0 and request.may_pass and holders.closed_until() then waiters = call('ZCOUNT', QUEUE, '-inf', int(now_us - AHEAD / 2)) end
  if must_retry then return {'more'} end
  if waiters == 0 and slots.fits(request.limit, request.may_pass) then return grant_now(now + request.ttl) end
  -- An owner that waited here before only returns to its position.
  local waited_before = request.stamp == 0 and request.given_ticket > 0 or stamps.of(request.owner) > 0
  local full = waiters >= request.max_queue and not waited_before
  if args.at_once or full and not (request.supersedes and supersede.other_waiter()) then
    note_refusal()
    return {'busy', waiters = waiters, holder = views.obstacle(request.may_pass)}
  end
  join()
  return wait()
end

return {note_refusal = note_refusal, new_line = new_line, claim = claim, wait = wait, newcomer = newcomer}
