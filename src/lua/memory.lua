-- What is remembered of the lock in META, and how wakes are pushed.

local unsent = {}  -- wakes that the client has to push: owner, event, owner, event...

-- The lists are not declared as keys: a server that wants all keys declared refuses the LPUSH.
local function push_wake(owner, event)
  local WAKE_LIFE = 10000
  local key = BASE .. 'wake:' .. owner
  local length = redis.pcall('LPUSH', key, event)
  if type(length) == 'table' then
    unsent[#unsent + 1] = owner
    unsent[#unsent + 1] = event
    return
  end
  if length ~= 1 then redis.pcall('LTRIM', key, 0, 0) end
  redis.pcall('PEXPIRE', key, WAKE_LIFE)
end

-- A script's reply; with wakes that the client has to push, `wakes REPLY owner event...`.
local function with_wakes(reply)
  if #unsent == 0 then return reply end
  return {'wakes', reply, unpack(unsent)}
end

-- META is `1 last grant exclusive created hold kept head`, then words `key=value`, which are kept. It is a string, so that
-- an rlock that knows no version word finds a wrong type, whatever else there is.
local MEMORY = '^1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)(.*)$'
local NOBODY = '-'
local memory = redis.pcall('GET', META)
-- The hash of an rlock that knows no version word: becomes a string where the lock is free, and else stops each script.
local migrates, older = type(memory) == 'table', nil
if migrates then
  if not string.find(memory.err, 'WRONGTYPE', 1, true) then return call('GET', META) end
  local fields = redis.pcall('HMGET', META, 'last', 'grant', 'exclusive', 'created')
  if fields.err or not fields[1] then return memory end
  if present > 0 then older = redis.error_reply('WRONGTYPE an older rlock uses this lock') end
  memory = table.concat({'1', fields[1], fields[2] or 0, fields[3] or 0, fields[4] or 0, '0 0 -'}, ' ')
end
local last, last_grant, last_exclusive, created, hold_end, kept, old_head, words =
  string.match(memory or '1 0 0 0 0 0 0 -', MEMORY)
if not last then return redis.error_reply('WRONGTYPE not a memory of rlock: ' .. META) end

-- META and HISTORY live 30 days from the last use. The short ways move their ends once an hour.
local function write_memory(new_last, grant, exclusive, head)
  local moves = now - kept >= HOUR
  local text = table.concat({'1', new_last, grant, exclusive, created == '0' and new_last or created, hold_end,
                             moves and now or kept, head .. words}, ' ')
  if moves then
    call('SET', META, text, 'PXAT', now + META_LIFE)
    call('PEXPIREAT', HISTORY, now + META_LIFE)
  else
    call('SET', META, text, 'KEEPTTL')
  end
end

