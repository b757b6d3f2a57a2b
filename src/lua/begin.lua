--!df flags=
-- The line above makes Dragonfly run scripts atomically and with declared keys, whatever its default.
-- All scripts of the native protocol begin with this file. CMakeLists.txt lists what else each of them needs, and which of
-- its functions are made only where they are called. [docs/PROTOCOL.md]
-- KEYS: holders limits queue alive who meta released history never once, all tagged {NAME}.
-- All times are the server's, in ms; the numbers that are issued (tickets, tokens) are in microseconds.
local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY, NEVER, ONCE = unpack(KEYS)
local NOBODY = '-'

local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- A lone hold that nobody waits for is folded: HOLDERS is one string, and LIMITS, QUEUE, ALIVE and WHO do not exist. Words
-- `key=value` may stand before the bar; scripts keep them. Over a quorum one of them is `try=STATE:STAMP`: the state is
-- granted until the majority's token is written back, and WHO has the stamp of other holds as `#owner`.
local present = call('EXISTS', HOLDERS, LIMITS, QUEUE, ALIVE, WHO, NEVER)
local lone = present == 1 and redis.pcall('GET', HOLDERS) or nil
-- Where the ACL denies GET, it is called again: an uncaught error names its line, and the client reads the command there.
if type(lone) == 'table' then lone = not string.find(lone.err, 'WRONGTYPE', 1, true) and call('GET', HOLDERS) or nil end
if lone then
  local owner, limit, token, since, ttl, responsive, ends, words, record =
    string.match(lone, '^1 (%S+) (%d+) (%d+) (%d+) (%d+) ([012]) (%d+) ([^|]*)| (.*)$')
  lone = owner and {owner = owner, state = 'held', stamp = 0, limit = tonumber(limit), token = token,
                    since = tonumber(since), ttl = tonumber(ttl), min_hold = 0, responsive = responsive, words = '',
                    entries = '0=' .. ends, ends = tonumber(ends), record = record}
  if owner and words ~= '' then
    local TRY = 'try=(%l+):(%d+) '
    local state, stamp = string.match(words, TRY)
    if state then
      lone.state, lone.stamp = state, tonumber(stamp)
      words = string.gsub(words, TRY, '')
    end
    lone.words = string.gsub(' ' .. words, ' $', '')
  end
end

-- META is `1 last grant exclusive created hold kept head`, then words `key=value`, which are kept, then perhaps a bar and
-- the history's row of the last success. A newer version word, or another type, stops each script. last: number issued;
-- grant, exclusive: tokens of the last grant and of the last exclusive one; created: when this memory began; hold: latest
-- end of a --min-hold; kept: when the ends of META and HISTORY were moved; head: of the queue. Numbers are text: a number
-- of 16 digits costs more to write.
local memory = call('GET', META)
local meta = {}
local words, last_success
meta.last, meta.grant, meta.exclusive, meta.created, meta.hold, meta.kept, meta.head, words, last_success =
  string.match(memory or '1 0 0 0 0 0 0 -', '^1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([^%s|]+)([^|]*)(.*)$')
if not words then return redis.error_reply('WRONGTYPE not a memory of rlock: ' .. META) end
-- The ends were never moved, or a clock that was ahead moved them.
if meta.kept == '0' or tonumber(meta.kept) > now then meta.kept = -HOUR end

-- Each key is read before anything is written, so that a key of the wrong type stops the script here.
local n_holders, n_queue, limits_complete, dead = lone and 1 or 0, 0, true, 0
local first_holder, first_end = lone and lone.owner, lone and lone.ends or math.huge
if present > 0 and not lone then
  local two = call('ZRANGE', HOLDERS, 0, 1, 'WITHSCORES')
  n_holders = two[3] and call('ZCARD', HOLDERS) or #two / 2
  if two[1] then first_holder, first_end = two[1], tonumber(two[2]) end
  n_queue, limits_complete = call('ZCARD', QUEUE), call('ZCARD', LIMITS) == n_holders
  dead = call('ZCOUNT', ALIVE, '-inf', now)
  call('HLEN', WHO)
end
local unswept = n_holders > 0 and first_end <= now or dead > 0 or not limits_complete
if unswept then
  call('LLEN', HISTORY)
  call('ZCARD', RELEASED)
end

-- What the script knows and changes, and the functions that it calls. A value that is not known is false, because a field
-- that is missing creates the rare functions. These 26 fields and the functions that are always created are at most 32:
-- with one more Lua would double the table at each request.
local s = {
  now = now, now_us = now_us,
  present = present,           -- how many keys of holders and waiters there are
  lone = lone or false,        -- the line of a folded hold
  several = present > 0 and not lone,
  n_holders = n_holders, limits_complete = limits_complete,
  n_queue = n_queue,           -- at least as many as wait
  first_holder = first_holder or false, first_end = first_end,  -- the lease that ended first, as the script began
  unswept = unswept,           -- whether something has ended
  meta = meta, words = words, last_success = last_success,
  keep = string.find(words, ' keep=', 1, true) and tonumber(string.match(words, ' keep=(%d+)')) or RUNS,
  changed = false,             -- whether META is to be written
  wakes = false,               -- owner, event, owner, event...
  granted = false,             -- the first waiter that this script granted the lock
  must_retry = false,          -- whether there is more to sweep or to grant
  holders_moved = false,       -- whether the first and the last end of a lease are to be read anew
  sole_end = false,            -- the lease of the only holder, if this script wrote it
  lease_end = 0,               -- how long the keys of holders live, if this script wrote it
  released_moved = false,      -- whether there are new tombstones
  latest_beat = 0, queue_is_new = false, slots_used = false,
}
