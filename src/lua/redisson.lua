--!df flags=
-- Locks as Redisson's RLock holds them: a hash that expires, with one field, the owner, counting its entries; a 0
-- on the lock's channel when it becomes free.
local KEY = KEYS[1]

-- Who holds it: owner, entries, ms left (negative: without end). Nothing where it is free.
local function holder()
  local fields = redis.call('HLEN', KEY)
  if fields == 0 then return nil end
  local owner, entries = unpack(fields == 1 and redis.call('HGETALL', KEY) or {})
  if not tonumber(entries) then redis.call('GET', KEY) end -- no RLock: fails with WRONGTYPE
  return owner, tonumber(entries), redis.call('PTTL', KEY)
end

-- PEXPIRE first: where it is denied the script fails before it has left a lock without an end.
local function take(owner, ttl)
  redis.call('PEXPIRE', KEY, ttl)
  redis.call('HSET', KEY, owner, 1)
  redis.call('PEXPIRE', KEY, ttl)
end

-- The message is a hint, the state the truth.
local function free()
  redis.call('DEL', KEY)
  redis.pcall('PUBLISH', 'redisson_lock__channel:{' .. KEY .. '}', 0)
end

