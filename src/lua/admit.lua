-- include: beats grant lines once queue slots stamps sweep tasks tombstones wakes words
-- Which waiter is granted the lock next.

local first, excluded

-- Returns the first waiter that this script granted the lock, or nil.
local function first_granted() return first end

-- Keeps this script from granting the lock to an owner.
local function exclude(owner) excluded = owner end

-- Grants the lock to the waiters at the head as long as they fit. Removes the dead waiters among them, and those whose work is done.
local function waiters()
  local ADMIT = 64  -- how many waiters one script handles
  if unknown_rules then return end
  for _ = 1, ADMIT do
    -- Usually a holder excludes all others: then it does not matter who is at the head.
    local head = slots.fits(math.huge, true) and queue.head()
    if not head then return end
    local line = lines.read(head)
    local work = tasks.of(line)
    local verdict = work and once.decided(work)
    local beat_ends = tonumber(call('ZSCORE', ALIVE, head) or 0)
    -- It has not asked within the heartbeat of a waiter near the head, and may have died long ago.
    local is_silent = math.floor(beat_ends) - now <= HEARTBEAT * (beats.slices_of(beat_ends) - 1)
    if beat_ends <= now then
      queue.remove(head)
      tombstones.add(head, EXPIRED)
    elseif not line then
      -- The line was deleted; the next request of the waiter writes it again.
      return wakes.add(head, 'look')
    elseif verdict then
      sweep.dismiss_as_done(head, line.record, verdict)
    elseif head == excluded or words.unknown_rules(line) or not slots.fits(line.limit, line.while_closed) then
      return
    elseif is_silent then
      -- It leaves the queue and is woken to ask again with its ticket. The sweep of its tombstone removes its stamp.
      queue.remove(head)
      if stamps.of(head) > 0 then tombstones.add(head, EXPIRED) end
      wakes.add(head, 'look')
    else
      if line.supersede then line.ticket = queue.ticket(head) end
      queue.leave(head)
      line.state = 'granted'
      if now > line.since then line.waited = now - line.since end
      grant.make(head, line, now + CLAIM, stamps.of(head))
      first = first or head
      wakes.add(head, 'granted')
    end
  end
  must_retry = true
end

return {first_granted = first_granted, exclude = exclude, waiters = waiters}
