-- The beginning of each script of the native protocol. [rlock-protocol(7), docs/PROTOCOL.md]
-- KEYS, all tagged {NAME}:
--   holders   sorted set: owner to the end of its lease; ~owner is a cool-down, ~closed the closure
--   limits    sorted set: owner to the largest number of holders that it allows
--   queue     sorted set: owner to its ticket
--   alive     sorted set: owner to the end of its heartbeat
--   who       hash: owner to its line (lines.lua); !owner to an operator's note; #owner to a stamp of a quorum
--   meta      hash: the fields of memory.lua
--   released  sorted set: owner, owner:entry, owner:counted, owner:no_room to a tombstone (tombstones.lua)
--   history   list: rows, the newest first (history.lua)
--   never     nothing: it is declared only, so that a slot that migrates is answered with TRYAGAIN
--   once      hash: a field for each mark (once.lua)
-- Times are the server's, in ms. The numbers that scripts issue (tickets, tokens) are in us.
local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY, NEVER, ONCE = unpack(KEYS)
local NOBODY = '-'

local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- Arguments are alternating names and values. An argument that is left out does not apply.
local args = {}
for i = 1, #ARGV, 2 do args[ARGV[i]] = ARGV[i + 1] end

local function int(n) return type(n) == 'number' and string.format('%.0f', n) or n end  -- `..` rounds to 14 digits

-- The keys with a new member, for set_expiry(): they may be new themselves and then have no expiry.
local grown = {}
local function put_score(key, score, member) if call('ZADD', key, score, member) == 1 then grown[key] = true end end
local function put_text(key, field, text) if call('HSET', key, field, text) == 1 then grown[key] = true end end

local function n_holders() return call('ZCARD', HOLDERS) end
local function n_waiters() return call('ZCARD', QUEUE) end
local function least(set) return tonumber(call('ZRANGE', set, 0, 0, 'WITHSCORES')[2] or math.huge) end
local function first_end() return least(HOLDERS) end  -- of a lease

-- The server does not undo the writes of a failed script, so a key of a wrong type must stop the script here, before the first write.
-- Before 1.0 the memory was a text, and so was a held lock without waiters: `1 ` and more.
local fields, first = redis.pcall('HGETALL', META), redis.pcall('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')
if fields.err or first.err then
  for _, key in ipairs({META, HOLDERS}) do
    local text = redis.pcall('GET', key)
    if type(text) == 'string' and string.match(text, '^1 %w') then return redis.error_reply('FORM 0') end
  end
  call('HGETALL', META)  -- raises the error with its line, which shows a command that the ACL denies
  call('ZRANGE', HOLDERS, 0, 0)
end
local first_end_before = tonumber(first[2] or math.huge)
-- Each command names its key in its own line, from which rlock reads which key has a wrong type.
local first_beat = tonumber(call('ZRANGE', ALIVE, 0, 0, 'WITHSCORES')[2] or math.huge)
local first_tombstone = math.floor((call('ZRANGE', RELEASED, 0, 0, 'WITHSCORES')[2] or math.huge) / 16)
local limits_differ = call('ZCARD', LIMITS) ~= n_holders()  -- somebody deleted keys by hand
call('ZCARD', QUEUE)
call('HLEN', WHO)
call('HLEN', ONCE)
call('LLEN', HISTORY)

-- Whether something has ended that no script has swept so far.
local is_due = math.min(first_end_before, first_beat, first_tombstone) <= now or limits_differ

-- Only state that the server cannot be asked for is kept in variables. Lua allows 200 variables outside functions, and acquire has most of
-- them.
local wakes = {}          -- owner, event, owner, event...: of wake(), pushed by finish()
local left_queue = 0      -- how many owners have left the queue: of dequeue(), for nudge_near()
local must_retry = false  -- there is more to sweep or to grant: of sweep() and admit(), for the reply, and for the head
local first_granted       -- the first waiter that admit() granted the lock: for the reply of force_unlock
local excluded            -- an owner that admit() must not grant the lock: release sets it
