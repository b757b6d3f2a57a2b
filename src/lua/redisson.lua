-- Locks as Redisson's RLock holds them: a hash with an expiry and one field, the owner, that counts its entries; a 0
-- is published on the lock's channel when it becomes free.
local KEY = KEYS[1]

-- The holder: owner, entries, ms left (negative: no expiry). Returns nothing if the lock is free.
local function holder()
  local fields = redis.call('HLEN', KEY)
  if fields == 0 then return nil end
  local owner, entries = unpack(fields == 1 and redis.call('HGETALL', KEY) or {})
  if not tonumber(entries) then redis.call('GET', KEY) end -- no RLock: fails with WRONGTYPE
  return owner, tonumber(entries), redis.call('PTTL', KEY)
end

-- PEXPIRE comes first: if it is denied, the script fails before it has written a lock that never expires.
local function take(owner, ttl)
  redis.call('PEXPIRE', KEY, ttl)
  redis.call('HSET', KEY, owner, 1)
  redis.call('PEXPIRE', KEY, ttl)
end

-- The message is only a hint, so it may fail: a waiter also reads the key.
local function free()
  redis.call('DEL', KEY)
  -- Redisson adds braces unless the name has its own hash tag.
  local tagged = string.find(KEY, '{', 1, true) and KEY or '{' .. KEY .. '}'
  redis.pcall('PUBLISH', 'redisson_lock__channel:' .. tagged, 0)
end
