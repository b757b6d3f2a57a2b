-- The beginning of each script of the native protocol. [rlock-protocol(7), docs/PROTOCOL.md]
-- The names of this file and of memory.lua are known to all files. Everything else has the name of its file in front: `queue.count()`.
-- KEYS, all tagged {NAME}:
--   holders   sorted set: owner to the end of its lease; ~owner is a cool-down, ~closed the closure
--   limits    sorted set: owner to the largest number of holders that it allows, if that is above 1
--   queue     sorted set: owner to its ticket
--   alive     sorted set: owner to the end of its heartbeat
--   who       hash: owner to its line (lines.lua); !owner to an operator's note; #owner to a stamp of a quorum
--   meta      hash: the fields of memory.lua
--   released  sorted set: owner, owner:entry, owner:counted, owner:no_room to a tombstone (tombstones.lua)
--   history   list: rows, the newest first (history.lua)
--   never     does not exist: it is declared so that the server answers TRYAGAIN while the slot migrates
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
-- The arguments of acquire and release in the form that their modules use. Its fields stand below the heads of the two.
local request = {}

-- The text of a whole number: `..` rounds to 14 digits, and `%.0f` takes the server twice as long as two numbers of 32 bits.
local function int(n)
  if type(n) ~= 'number' then return n end
  if n >= 10000000 and n < 2 ^ 53 then return string.format('%d%07d', math.floor(n / 10000000), n % 10000000) end
  return string.format('%.0f', n)
end

-- The server does not undo the writes of a failed script, so a key of a wrong type must stop the script here, before the first write.
-- Before 1.0 the memory was a text that began with `1 `, and so was a held lock without waiters.
local fields = redis.pcall('HGETALL', META)
local found_holders = redis.pcall('ZCARD', HOLDERS)
if fields.err or type(found_holders) == 'table' then
  for _, key in ipairs({META, HOLDERS}) do
    local text = redis.pcall('GET', key)
    if type(text) == 'string' and string.match(text, '^1 %w') then return redis.error_reply('FORM 0') end
  end
  call('HGETALL', META)  -- raises the error with its line, which shows a command that the ACL denies
  call('ZCARD', HOLDERS)
end
-- A line has one command, because rlock reads in it which key has a wrong type, and which command is denied.
call('HLEN', WHO)
call('HLEN', ONCE)
call('LLEN', HISTORY)
-- What the script finds before it changes anything.
local at_start = {
  holders = found_holders,
  first_end = found_holders > 0 and tonumber(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2]) or math.huge,  -- of a lease
  waiters = call('ZCARD', QUEUE),
  beats = call('ZCARD', ALIVE),
  tombstones = call('ZCARD', RELEASED),
  limits = call('ZCARD', LIMITS),
}
-- Whether something has ended that no script has swept so far: a lease, a heartbeat or a tombstone.
local is_due = at_start.first_end <= now or
               at_start.beats > 0 and call('ZCOUNT', ALIVE, '-inf', now) > 0 or
               at_start.tombstones > 0 and call('ZCOUNT', RELEASED, '-inf', now * 16 + 15) > 0
local must_retry = false  -- there is more to sweep or to grant: for the reply, and for the head of the queue
