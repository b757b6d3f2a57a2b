--!df flags=
-- The line above makes Dragonfly run scripts atomically and with declared keys, whatever its default.
-- All scripts of the native protocol begin with this file; then come the short ways of acquire, renew and release, and
-- prelude, history, sweep, grant and finish, which the usual way needs. [docs/PROTOCOL.md]
-- KEYS: holders limits queue alive who meta released history never once, all tagged {NAME}. Nothing uses `once` yet.
-- All times are the server's, in ms; the numbers that are issued (tickets, tokens) are in microseconds.
local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY, NEVER = unpack(KEYS)
local BASE = string.sub(HOLDERS, 1, -8)

local CLAIM = 2000          -- a grant expires unless it is claimed within this time
local HEARTBEAT = 15000     -- a waiter is dropped unless it asks again within this time
local TOMBSTONE = 60000     -- how long the end of an owner is remembered, at least
local OVERDUE = 15000       -- how long a tombstone may stay that counts no more
local GRACE = 60000         -- keys outlive the last lease, so that a late renewal finds what happened
local META_LIFE = 2592000000  -- 30 days
local HOUR, DAY = 3600000, 86400000
local WAKE_LIFE = 10000
local INNER_LEASE = 30000   -- longest lease of a nested run's entry
local RUNS = 100            -- rows in the history
local SWEEP = 256           -- removed by one script, of holders, waiters and tombstones each
local ADMIT = 64            -- granted by one script

-- Kinds of tombstones: the larger one replaces the smaller. An owner may come back up to REQUEUED. 4 and 5 are kept for
-- waiters that end because the work was done, or because a newer one replaced them.
local EXPIRED, REQUEUED, WAS_RELEASED, CANCELLED, REMOVED, FORCED = 0, 1, 2, 3, 6, 7
local KINDS = {[0] = 'expired', 'expired', 'released', 'cancelled', 'done', 'superseded', 'removed', 'forced'}

local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- A hold by one, with nobody waiting, is one string in HOLDERS, and LIMITS, QUEUE, ALIVE and WHO do not exist. The usual
-- way unfolds it into them before it writes. Words `key=value` may stand before the bar; they are kept.
local LONE = '^1 (%S+) (%d+) (%d+) (%d+) (%d+) ([012]) ()(%d+)() ([^|]*)| (.*)$'

-- How many of these keys there are chooses a short way: straight lines for what happens most, without the functions of
-- the usual way, which cost more to make than most requests need. Where anything is in doubt the usual way decides.
local present = call('EXISTS', HOLDERS, LIMITS, QUEUE, ALIVE, WHO, NEVER)
local lone = present == 1 and redis.pcall('GET', HOLDERS)
-- Once more where it is denied: an uncaught error names its line, and the client that line's command.
if type(lone) == 'table' then lone = not string.find(lone.err, 'WRONGTYPE', 1, true) and call('GET', HOLDERS) end
local lone_owner, lone_limit, lone_token, lone_since, lone_ttl, lone_responsive, end_at, lone_end, end_after,
      lone_words, lone_record = string.match(lone or '', LONE)

local unsent = {}  -- wakes that the client has to push: owner, event, owner, event...

-- The lists are not declared as keys: a server that wants all keys declared refuses the LPUSH.
local function push_wake(owner, event)
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

