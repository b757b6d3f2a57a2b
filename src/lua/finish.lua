-- include: admit queue holders keys wakes replies
-- The end of each script that writes: admits waiters, stores the memory and the expiry, then pushes the wakes. Returns the reply in the
-- form that the client reads: `return finish.with(reply)` is the last line of a script. The head of the queue is woken to check again if its
-- timer may be too late. CALLER: the owner that reads the reply; it needs no wake.

local function with(reply, caller)
  local head
  if call('ZCARD', QUEUE) > 0 then
    admit.waiters()
    head = queue.head()
    local is_late = head ~= memory.head or must_retry or holders.first_end() < at_start.first_end
    if head and head ~= caller and is_late then wakes.add(head, 'look') end
    queue.nudge_near()
  end
  memory.head = head or NOBODY
  keys.expire()
  -- The client pushes the wakes that a server refused: the reply is then `wakes REPLY owner event...`.
  local answer = replies.encoded(reply)
  local with_wakes = {'wakes', answer}
  wakes.push_all(caller, with_wakes)
  return with_wakes[3] and with_wakes or answer
end

return {with = with}
