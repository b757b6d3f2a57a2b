-- include: admit
-- The end of each script that writes: admits waiters, stores the memory and the expiry, then pushes the wakes. Returns the reply in the
-- form that the client reads: `return finish(reply)` is the last line of a script. The head of the queue is woken to check again if its
-- timer may be too late. CALLER: the owner that reads the reply, and so needs no wake.
local function finish(reply, caller)
  admit()
  local head = head_of_queue()
  if head and head ~= caller and (head ~= memory.head or must_retry or first_end() < first_end_before) then wake(head, 'look') end
  nudge_near()
  memory.head = head or NOBODY
  set_expiry()
  -- The client pushes the wakes that a server refused: the reply is then `wakes REPLY owner event...`.
  local unsent = {'wakes', reply_of(reply)}
  for i = 1, #wakes, 2 do
    if wakes[i] ~= caller and not push_wake(wakes[i], wakes[i + 1]) then
      unsent[#unsent + 1] = wakes[i]
      unsent[#unsent + 1] = wakes[i + 1]
    end
  end
  return unsent[3] and unsent or unsent[2]
end
