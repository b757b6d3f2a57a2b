-- probe: tries each command that the scripts of the native format use, on keys that nobody uses, and removes them.
-- KEYS: a sorted set, a hash, a list
-- Returns: {command error}… for those that failed
local SET, HASH, LIST = unpack(KEYS)
local failed = {}

local function try(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then failed[#failed + 1] = {command, reply.err} end
  return reply
end

-- A command that needs memory comes first: after another write a full server no longer refuses it.
try('ZADD', SET, 1, 'a')
local time = try('TIME')
try('PEXPIREAT', SET, time.err and 1 or time[1] * 1000 + 60000)
try('PEXPIRE', SET, 60000)
try('PTTL', SET)
try('EXISTS', SET)
try('ZCARD', SET)
try('ZCOUNT', SET, '-inf', '+inf')
try('ZRANGE', SET, 0, -1)
try('ZRANGEBYSCORE', SET, '-inf', '+inf')
try('ZRANK', SET, 'a')
try('ZSCORE', SET, 'a')
try('ZMSCORE', SET, 'a')
try('ZREM', SET, 'a')

try('HSET', HASH, 'a', 1)
try('HGET', HASH, 'a')
try('HGETALL', HASH)
try('HMGET', HASH, 'a')
try('HEXISTS', HASH, 'a')
try('HLEN', HASH)
try('HDEL', HASH, 'a')

try('LPUSH', LIST, 'b')
try('LINDEX', LIST, 0)
try('LLEN', LIST)
try('LSET', LIST, 0, 'c')
try('LTRIM', LIST, 1, 0)

try('SET', LIST, 'a')
try('GET', LIST)

try('DEL', SET, HASH, LIST)
return failed
