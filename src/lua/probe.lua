-- probe: tries each command that the scripts of the native format use, on keys that nobody uses, and removes them.
-- include: commands
-- KEYS: a sorted set, a hash, a list
-- Returns: {command error}… for those that failed
local set, hash, list = unpack(KEYS)
local failed = {}
local time = redis.pcall('TIME')
for _, command in ipairs(commands_on(set, hash, list, time.err and 1 or time[1] * 1000 + 60000)) do
  -- The client tries BLPOP itself, since a script cannot wait.
  local reply = command[1] ~= 'BLPOP' and redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then failed[#failed + 1] = {command[1], reply.err} end
end
return failed
