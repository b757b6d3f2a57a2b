-- probe: tries each command of the scripts of the native format, on keys that no lock uses. They expire within a minute, even if this user
-- may not delete them.
-- include: commands
-- KEYS: a sorted set, a hash, a list
-- Returns: {command error}… for those that failed
local set, hash, list = unpack(KEYS)
local failed = {}
local time = redis.pcall('TIME')
local ends = not time.err and time[1] * 1000 + 60000
local creates = {ZADD = true, HSET = true, LPUSH = true}
for _, command in ipairs(commands.list(set, hash, list, ends or 1)) do
  -- The client tries BLPOP itself, since a script cannot wait.
  local reply = command[1] ~= 'BLPOP' and redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then failed[#failed + 1] = {command[1], reply.err} end
  if creates[command[1]] then
    -- One of the two may be denied.
    redis.pcall('PEXPIRE', command[2], 60000)
    if ends then redis.pcall('PEXPIREAT', command[2], ends) end
  end
end
return failed
