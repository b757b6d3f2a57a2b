-- include: keys lines beats wakes
-- QUEUE, owner to its ticket, and ALIVE, owner to the end of its heartbeat.

local left = 0  -- how many owners have left the queue in this script

local function ticket(owner) return tonumber(call('ZSCORE', QUEUE, owner) or nil) end
local function set_place(owner, number) keys.put_score(QUEUE, int(number), owner) end
local function set_heartbeat(owner, ends) keys.put_score(ALIVE, ends, owner) end

local function count() return call('ZCARD', QUEUE) end
local function head() return call('ZRANGE', QUEUE, 0, 0)[1] end

local function leave(owner)
  left = left + call('ZREM', QUEUE, owner)
  call('ZREM', ALIVE, owner)
end

local function remove(owner)
  leave(owner)
  lines.forget(owner)
end

local function beat(owner) set_heartbeat(owner, beats.score(now, beats.slices_at(call('ZRANK', QUEUE, owner)))) end

-- Wakes the waiters that have come near the head and still have the longer heartbeat of an idle waiter, so that they ask more often. If the
-- script found fewer than NEAR, all of them were near; a waiter that has joined since knows its position.
local function nudge_near()
  if left == 0 or at_start.waiters < NEAR then return end
  local moved = call('ZRANGE', QUEUE, math.max(0, NEAR - left), NEAR - 1)
  for i, ends in ipairs(#moved > 0 and call('ZMSCORE', ALIVE, unpack(moved)) or {}) do
    if ends and beats.slices_of(ends) > 1 then wakes.add(moved[i], 'look') end
  end
end

return {ticket = ticket, set_place = set_place, set_heartbeat = set_heartbeat, count = count, head = head, leave = leave,
        remove = remove, beat = beat, nudge_near = nudge_near}
