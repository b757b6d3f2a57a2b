--!df flags=
-- The line above makes Dragonfly run scripts atomically and with declared keys, whatever its default.
-- All scripts of the native protocol begin with this file and memory; then come the short ways of acquire, renew and
-- release, and prelude, history, once, slots, sweep, grant, loss and finish, which the usual way needs. In acquire the heartbeat of a waiter
-- at rest stands before memory. [docs/PROTOCOL.md]
-- KEYS: holders limits queue alive who meta released history never once, all tagged {NAME}.
-- All times are the server's, in ms; the numbers that are issued (tickets, tokens) are in microseconds.
local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY, NEVER, ONCE = unpack(KEYS)
local BASE = string.sub(HOLDERS, 1, -8)

local CLAIM = 2000          -- a grant expires unless it is claimed within this time
local SLICE = 5000          -- a waiter near the head asks again so often, one far from it up to MOST_SLICES times as rarely
local HEARTBEAT = 3 * SLICE -- and is dropped unless it does within three of its slices
local NEAR = 64             -- waiters that are near the head, and by how many places the slice grows
local MOST_SLICES = 4
local TOMBSTONE = 60000     -- how long the end of an owner is remembered, at least
local OVERDUE = 15000       -- how long a tombstone may stay that counts no more
local GRACE = 60000         -- keys outlive the last lease, so that a late renewal finds what happened: not less than a
                            -- heartbeat, so that WHO outlives those of all waiters
local META_LIFE = 2592000000  -- 30 days
local HOUR, DAY = 3600000, 86400000
local RUNS = 100            -- rows in the history, unless the last run asked for another number
local LONGEST_KEPT = 4096   -- the record of a success is not kept where its row is longer
local SWEEP = 256           -- removed by one script, of holders, waiters and tombstones each
local MOST_SLOTS = 1024     -- of holders that are numbered

-- Kinds of tombstones: the larger one replaces the smaller. An owner may come back up to REQUEUED. DONE: a waiter whose
-- work was done by another, or failed too often; SUPERSEDED: one that a newer one replaced.
local EXPIRED, REQUEUED, WAS_RELEASED, CANCELLED, DONE, SUPERSEDED, REMOVED, FORCED = 0, 1, 2, 3, 4, 5, 6, 7
local KINDS = {[0] = 'expired', 'expired', 'released', 'cancelled', 'done', 'superseded', 'removed', 'forced'}

local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- A hold by one, with nobody waiting, is one string in HOLDERS, and LIMITS, QUEUE, ALIVE and WHO do not exist. The usual
-- way unfolds it into them before it writes. Words `key=value` may stand before the bar; they are kept. Over a quorum one
-- of them is `try=STATE:STAMP`: granted until the majority's token is written back, and what else is in WHO as `#owner`.
local TRY = 'try=(%l+):(%d+) '
local LONE = '^1 (%S+) (%d+) (%d+) (%d+) (%d+) ([012]) ()(%d+)() ([^|]*)| (.*)$'

-- How many of these keys there are chooses a short way: straight lines for what happens most, without the functions of
-- the usual way, which cost more to make than most requests need. Where anything is in doubt the usual way decides.
local present = call('EXISTS', HOLDERS, LIMITS, QUEUE, ALIVE, WHO, NEVER)
local lone = present == 1 and redis.pcall('GET', HOLDERS)
-- Once more where it is denied: an uncaught error names its line, and the client that line's command.
if type(lone) == 'table' then lone = not string.find(lone.err, 'WRONGTYPE', 1, true) and call('GET', HOLDERS) end
local lone_owner, lone_limit, lone_token, lone_since, lone_ttl, lone_responsive, end_at, lone_end, end_after,
      lone_words, lone_record = string.match(lone or '', LONE)

