-- How waiters and holders are woken.

local pending = {}  -- owner, event, owner, event...

-- Notes a wake. All wakes are pushed last, because a wake before the new state would send the waiter back to sleep.
local function add(owner, event)
  pending[#pending + 1] = owner
  pending[#pending + 1] = event
end

-- Pushes a wake. Returns false if the server refuses it, because it requires declared keys, and these lists are not declared.
local function push(owner, event)
  local WAKE_LIFE = 10000
  local key = string.sub(HOLDERS, 1, -8) .. 'wake:' .. owner
  local length = redis.pcall('LPUSH', key, event)
  if type(length) == 'table' then return false end
  if length ~= 1 then redis.pcall('LTRIM', key, 0, 0) end
  redis.pcall('PEXPIRE', key, WAKE_LIFE)
  return true
end

-- Pushes all wakes but those of CALLER, and appends those that a server refused to LIST.
local function push_all(caller, list)
  for i = 1, #pending, 2 do
    if pending[i] ~= caller and not push(pending[i], pending[i + 1]) then
      list[#list + 1] = pending[i]
      list[#list + 1] = pending[i + 1]
    end
  end
end

return {add = add, push = push, push_all = push_all}
