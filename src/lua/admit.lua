-- include: beats grant holders lines once queue slots stamps sweep tasks tombstones wakes words
-- Which waiter is granted the lock next.

local first, excluded
-- The waiter at the head, if it has to wait, and how many holders had been removed by then: only one more changes the answer.
local waits, n_removed

-- The first waiter that this script granted the lock.
local function first_granted() return first end

-- This owner is not granted the lock by this script.
local function exclude(owner) excluded = owner end

-- Grants the lock to the waiters at the head as long as they fit. Removes dead waiters on the way, and those whose work is done.
local function waiters()
  local ADMIT = 64  -- granted by one script, or found to be done
  if unknown_rules then return end
  if n_removed ~= holders.n_removed() then waits = nil end
  for _ = 1, ADMIT do
    local head = queue.head()
    if not head or head == waits then return end
    local line = lines.read(head)
    local work = tasks.of(line)
    local verdict = work and once.decided(work)
    local beat_ends = tonumber(call('ZSCORE', ALIVE, head) or 0)
    if beat_ends <= now then
      queue.remove(head)
      tombstones.add(head, EXPIRED)
    elseif not line then
      -- The line was deleted; the next request of the waiter writes it again.
      return wakes.add(head, 'look')
    elseif verdict then
      sweep.dismiss_as_done(head, line.record, verdict)
    elseif head == excluded or words.unknown_rules(line) or not slots.fits(line.limit, line.while_closed) then
      waits, n_removed = head, holders.n_removed()
      return
    elseif math.floor(beat_ends) - now <= HEARTBEAT * (beats.slices_of(beat_ends) - 1) then
      -- The waiter has not asked within the heartbeat of a waiter near the head, and may have died long ago. It leaves the queue and is
      -- woken to ask again with its ticket. The sweep of its tombstone removes its stamp.
      queue.remove(head)
      if stamps.of(head) > 0 then tombstones.add(head, EXPIRED) end
      wakes.add(head, 'look')
    else
      queue.leave(head)
      line.state = 'granted'
      grant.make(head, line, now + CLAIM, stamps.of(head))
      first = first or head
      wakes.add(head, 'granted')
    end
  end
  must_retry = true
end

return {first_granted = first_granted, exclude = exclude, waiters = waiters}
