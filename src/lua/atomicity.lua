-- atomicity: reads a number, spends some time, and writes it back one greater. If scripts run concurrently, one of
-- two increments is lost.
-- KEYS: a hash. Returns: the number written
-- If PEXPIRE is denied, the script ends here and leaves nothing.
redis.call('PEXPIRE', KEYS[1], 60000)
local before = tonumber(redis.call('HGET', KEYS[1], 'n') or 0)
for _ = 1, 2000 do redis.call('HGET', KEYS[1], 'n') end
redis.call('HSET', KEYS[1], 'n', before + 1)
redis.call('PEXPIRE', KEYS[1], 60000)
return before + 1
