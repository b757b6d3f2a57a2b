-- include: sweep grant
-- Grants the lock to the waiters at the head as long as they fit. Removes dead waiters on the way, and those whose work is done.
local function admit()
  local ADMIT = 64  -- granted by one script, or found to be done
  if unknown_rules(memory) then return end
  for _ = 1, ADMIT do
    local head = head_of_queue()
    if not head then return end
    local line = read_line(head)
    local work = once_of(line)
    local verdict = work and decided(work)
    local beat_ends = tonumber(call('ZSCORE', ALIVE, head) or 0)
    if beat_ends <= now then
      remove_waiter(head)
      add_tombstone(head, EXPIRED)
    elseif not line then
      -- The line was deleted; the next request of the waiter writes it again.
      return wake(head, 'look')
    elseif verdict then
      dismiss_as_done(head, line.record, verdict)
    elseif head == excluded or unknown_rules(line) or not fits(line.limit, line.while_closed) then
      return
    elseif math.floor(beat_ends) - now <= HEARTBEAT * (slices_of(beat_ends) - 1) then
      -- The waiter has not asked within the heartbeat of a waiter near the head, and may have died long ago. It leaves the queue and is
      -- woken to ask again with its ticket. The sweep of its tombstone removes its stamp.
      remove_waiter(head)
      if stamp_of(head) > 0 then add_tombstone(head, EXPIRED) end
      wake(head, 'look')
    else
      dequeue(head)
      line.state = 'granted'
      grant(head, line, now + CLAIM, stamp_of(head))
      first_granted = first_granted or head
      wake(head, 'granted')
    end
  end
  must_retry = true
end
