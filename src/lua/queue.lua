-- include: lines beats
-- QUEUE, owner to its ticket, and ALIVE, owner to the end of its heartbeat; and how waiters are woken.

local function queue_ticket(owner) return tonumber(call('ZSCORE', QUEUE, owner) or nil) end
local function set_place(owner, ticket) put_score(QUEUE, int(ticket), owner) end
local function set_heartbeat(owner, ends) put_score(ALIVE, ends, owner) end

local function head_of_queue() return call('ZRANGE', QUEUE, 0, 0)[1] end

local function dequeue(owner)
  left_queue = left_queue + call('ZREM', QUEUE, owner)
  call('ZREM', ALIVE, owner)
end

local function remove_waiter(owner)
  dequeue(owner)
  forget_line(owner)
end

-- A wake is a hint, and is pushed last: a wake before the new state would send the waiter back to sleep.
local function wake(owner, event)
  wakes[#wakes + 1] = owner
  wakes[#wakes + 1] = event
end

-- Returns whether the wake was pushed: a server that requires declared keys refuses, because these lists are not declared.
local function push_wake(owner, event)
  local WAKE_LIFE = 10000
  local key = string.sub(HOLDERS, 1, -8) .. 'wake:' .. owner
  local length = redis.pcall('LPUSH', key, event)
  if type(length) == 'table' then return false end
  if length ~= 1 then redis.pcall('LTRIM', key, 0, 0) end
  redis.pcall('PEXPIRE', key, WAKE_LIFE)
  return true
end

local function beat(owner) set_heartbeat(owner, beat_score(now, slices_at(call('ZRANK', QUEUE, owner)))) end

-- Wakes the waiters that have come near the head and still have the longer heartbeat of the positions behind: from then on they ask more
-- often.
local function nudge_near()
  if left_queue == 0 or n_waiters() + left_queue <= NEAR then return end
  local moved = call('ZRANGE', QUEUE, math.max(0, NEAR - left_queue), NEAR - 1)
  for i, ends in ipairs(#moved > 0 and call('ZMSCORE', ALIVE, unpack(moved)) or {}) do
    if ends and slices_of(ends) > 1 then wake(moved[i], 'look') end
  end
end
