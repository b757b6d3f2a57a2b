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

-- META is `1 last grant exclusive created hold kept head`, then words `key=value`, which are kept, then perhaps a bar and
-- the history's row of the last success. It is a string, so that an rlock that knows no version word finds a wrong type,
-- whatever else there is.
local MEMORY = '^1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([^%s|]+)([^|]*)(.*)$'
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
local last, last_grant, last_exclusive, created, hold_end, kept, old_head, words, last_success =
  string.match(memory or '1 0 0 0 0 0 0 -', MEMORY)
if not last then return redis.error_reply('WRONGTYPE not a memory of rlock: ' .. META) end

-- How many rows HISTORY keeps: as the last run said it.
local keep = string.find(words, ' keep=', 1, true) and tonumber(string.match(words, ' keep=(%d+)')) or RUNS

-- Counters are words of META: runs, failures, losses, skips, done; streak: failures since the last success.
local function count(name)
  local before, number, after = string.match(words, '^(.- ' .. name .. '=)(%d+)(.*)$')
  words = number and before .. number + 1 .. after or ' ' .. name .. '=1' .. words
end

-- A run has ended, and ROW lists it; HOW is released, expired or forced. Each loss is a failure, too; a release without
-- a result (`-`), or of a run that was asked to stop and returned 0 (`stopped`), is neither a success nor a failure. A
-- run that was COUNTED when its lease ended is counted no more, but may still be the last success.
local function count_run(since, how, result, row, counted)
  if result == 'exit:0' and how == 'released' then
    last_success = '|' .. (#row <= LONGEST_KEPT and row or string.match(row, '^%l+ %d+ %d+ %d+ %l+ %S+ '))
    if string.find(words, ' streak=', 1, true) then words = string.gsub(words, ' streak=%d+', '') end
  elseif result ~= '-' and result ~= 'stopped' or how ~= 'released' then
    if how ~= 'released' then result = how end
    words = string.gsub(words, ' failed=%S+', '') .. ' failed=' .. now .. ',' .. math.max(0, now - since) .. ',' ..
            (string.match(result, '^[%w:-]+$') or '?')
    if counted then return end
    count('streak')
    count('failures')
    if how ~= 'released' or result == 'lost' then count('losses') end
  end
  if not counted then count('runs') end
end

-- META and HISTORY live 30 days from the last use. The short ways move their ends once an hour.
local function write_memory(new_last, grant, exclusive, head)
  local moves = now - kept >= HOUR
  local text = '1 ' .. new_last .. ' ' .. grant .. ' ' .. exclusive .. ' ' .. (created == '0' and new_last or created) ..
               ' ' .. hold_end .. ' ' .. (moves and now or kept) .. ' ' .. head .. words .. last_success
  if moves then
    call('SET', META, text, 'PXAT', now + META_LIFE)
    call('PEXPIREAT', HISTORY, now + META_LIFE)
  else
    call('SET', META, text, 'KEEPTTL')
  end
end

