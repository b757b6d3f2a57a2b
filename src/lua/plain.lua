--!df flags=
-- Locks as redsync, redis-py, node-redlock, redlock-rb and bsm/redislock hold them: a string, the owner's value,
-- that expires.
local KEY = KEYS[1]

-- Who holds it: owner, entries, ms left (negative: without end). Nothing where it is free.
local function holder()
  local owner = redis.call('GET', KEY)
  if owner then return owner, 1, redis.call('PTTL', KEY) end
end

local function take(owner, ttl) redis.call('SET', KEY, owner, 'NX', 'PX', ttl) end

local function free() redis.call('DEL', KEY) end

