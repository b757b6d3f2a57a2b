-- Locks as redsync, redis-py, node-redlock, redlock-rb and bsm/redislock store them: a string with an expiry,
-- whose value is the owner.
local KEY = KEYS[1]

-- The holder: owner, entries, ms left (negative: no expiry). Returns nothing if the lock is free.
local function holder()
  local owner = redis.call('GET', KEY)
  if owner then return owner, 1, redis.call('PTTL', KEY) end
end

local function take(owner, ttl) redis.call('SET', KEY, owner, 'NX', 'PX', ttl) end

local function free() redis.call('DEL', KEY) end
