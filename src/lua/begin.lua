-- The beginning of each script of the native protocol. [rlock-protocol(7), docs/PROTOCOL.md]
-- The names of this file and of memory.lua are known to all files. Everything else has the name of its file in front: `queue.count()`.
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
-- What acquire and release make of their arguments, for their parts: see the heads of these files.
local request = {}

-- The text of a whole number, and the number of a text. Both conversions are slow in Lua 5.1, so a number that was a text keeps it.
local texts = {}
local function int(n)
  if type(n) ~= 'number' then return n end
  local text = texts[n]
  if not text then
    text = string.format('%.0f', n)  -- `..` rounds to 14 digits
    texts[n] = text
  end
  return text
end
local function number(text)
  local n = tonumber(text)
  if n and n == n then texts[n] = text end  -- not a number is no index
  return n
end

-- The server does not undo the writes of a failed script, so a key of a wrong type must stop the script here, before the first write.
-- Before 1.0 the memory was a text, and so was a held lock without waiters: `1 ` and more.
local fields, n_holders = redis.pcall('HGETALL', META), redis.pcall('ZCARD', HOLDERS)
if fields.err or type(n_holders) == 'table' then
  for _, key in ipairs({META, HOLDERS}) do
    local text = redis.pcall('GET', key)
    if type(text) == 'string' and string.match(text, '^1 %w') then return redis.error_reply('FORM 0') end
  end
  call('HGETALL', META)  -- raises the error with its line, which shows a command that the ACL denies
  call('ZCARD', HOLDERS)
end
-- Each command names its key in its own line, from which rlock reads which key has a wrong type.
call('HLEN', WHO)
call('HLEN', ONCE)
call('LLEN', HISTORY)
-- What a script finds.
local at_start = {
  first_end = n_holders > 0 and tonumber(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2]) or math.huge,  -- of a lease
  waiters = call('ZCARD', QUEUE), beats = call('ZCARD', ALIVE), tombstones = call('ZCARD', RELEASED),
  limits_differ = call('ZCARD', LIMITS) ~= n_holders,  -- somebody deleted keys by hand
}
-- Whether something has ended that no script has swept so far: a lease, a heartbeat or a tombstone.
local is_due = at_start.first_end <= now or at_start.beats > 0 and call('ZCOUNT', ALIVE, '-inf', now) > 0 or
               at_start.tombstones > 0 and call('ZCOUNT', RELEASED, '-inf', now * 16 + 15) > 0 or at_start.limits_differ
local must_retry = false  -- there is more to sweep or to grant: for the reply, and for the head of the queue
