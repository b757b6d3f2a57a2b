--!df flags=
-- The line above makes Dragonfly run scripts atomically and with declared keys, whatever its default.
-- All scripts of the native protocol begin with prelude, history, sweep, grant and finish. [docs/PROTOCOL.md]
-- KEYS: holders limits queue alive who meta released history never, all tagged {NAME}.
-- All times are the server's, in ms; the numbers that are issued (tickets, tokens) are in microseconds.
local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY, NEVER = unpack(KEYS)
local BASE = string.sub(HOLDERS, 1, -8)

local CLAIM = 2000          -- a grant is withdrawn unless it is claimed within this time
local HEARTBEAT = 15000     -- a waiter is dropped unless it asks again within this time
local TOMBSTONE = 60000     -- how long the end of an owner is remembered, at least
local GRACE = 60000         -- keys outlive the last lease, so that a late renewal finds what happened
local META_LIFE = 2592000000  -- 30 days
local WAKE_LIFE = 10000
local INNER_LEASE = 30000   -- longest lease of a nested run's entry
local RUNS = 100            -- rows in the history
local SWEEP = 256           -- removed by one script, of holders, waiters and tombstones each
local ADMIT = 64            -- granted by one script

-- Kinds of tombstones: the larger one replaces the smaller. An owner may come back up to REQUEUED.
local EXPIRED, REQUEUED, WAS_RELEASED, CANCELLED, REMOVED, FORCED = 0, 1, 2, 3, 4, 5
local KINDS = {[0] = 'expired', 'expired', 'released', 'cancelled', 'removed', 'forced'}

local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- `..` and tostring round to 14 digits, which would break tokens.
local function int(n) return string.format('%.0f', n) end

-- Each key is read before anything is written, so that a key of the wrong type stops the script here.
-- The counts are upper bounds from here on: 0 is certain, and saves the reads of an empty key.
local n_holders = call('ZCARD', HOLDERS)
local has_waiters = call('EXISTS', QUEUE, ALIVE, NEVER) > 0
local n_queue = has_waiters and call('ZCARD', QUEUE) or 0
local n_alive = has_waiters and call('ZCARD', ALIVE) or 0
local n_released = call('ZCARD', RELEASED)
local limits_complete = call('ZCARD', LIMITS) == n_holders
call('HLEN', WHO)
call('LLEN', HISTORY)
local stored = call('HMGET', META, 'last', 'grant', 'exclusive', 'created', 'head', 'hold')
local meta = {
  last = tonumber(stored[1] or 0),       -- number issued
  grant = tonumber(stored[2] or 0),      -- token of the last grant
  exclusive = tonumber(stored[3] or 0),  -- token of the last exclusive grant
  created = tonumber(stored[4] or 0),    -- when this memory began
  head = stored[5] or '',
  hold = tonumber(stored[6] or 0),       -- latest end of a --min-hold
}

local meta_as_read = {}
for name, value in pairs(meta) do meta_as_read[name] = value end

local wakes = {}
local granted = {}
local must_retry = false

local function earliest_end()
  if n_holders == 0 then return math.huge end
  return tonumber(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2] or math.huge)
end
local end_before = n_queue > 0 and earliest_end() or math.huge

-- The first write of a script that must also work when memory is full: PEXPIREAT is not refused then,
-- and the server lets the writes after it pass.
local function touch() call('PEXPIREAT', META, int(now + META_LIFE)) end

local function held_until(owner)
  return n_holders > 0 and call('ZSCORE', HOLDERS, owner) or nil
end

local function queue_ticket(owner) return n_queue > 0 and call('ZSCORE', QUEUE, owner) or nil end

local function issue()
  meta.last = math.max(meta.last + 1, now_us)
  if meta.created == 0 then meta.created = meta.last end
  return meta.last
end

-- Who responds when a holder's lock is broken: nobody (0), a process that renews for the steps of another (1), or
-- rlock run (2), whose command does not outlive its lease.
local RUN = '2'

-- The fields of WHO: `+owner` is state limit token since ttl min-hold responsive; `@owner` the entries as id=end,
-- separated by semicolons; `owner` the record.
local function read_line(owner)
  local found = call('HMGET', WHO, '+' .. owner, '@' .. owner, owner)
  local state, limit, token, since, ttl, min_hold, responsive =
    string.match(found[1] or '', '^(%l+) (%d+) (%d+) (%d+) (%d+) (%d+) ([012])$')
  if not state then return nil end
  return {state = state, limit = tonumber(limit), token = tonumber(token), since = tonumber(since),
          ttl = tonumber(ttl), min_hold = tonumber(min_hold), responsive = responsive,
          entries = found[2] or '', record = found[3] or ''}
end

local function line_text(l)
  return table.concat({l.state, int(l.limit), int(l.token), int(l.since), int(l.ttl),
                       int(l.min_hold), l.responsive}, ' ')
end

local function live_entries(line)
  local entries = {}
  for id, ends in string.gmatch(line.entries, '(%w+)=(%d+)') do
    if tonumber(ends) > now then entries[id] = tonumber(ends) end
  end
  return entries
end

-- Writes the entries and returns the latest end of them.
local function write_entries(owner, entries)
  local words, latest = {}, 0
  for id, ends in pairs(entries) do
    words[#words + 1] = id .. '=' .. int(ends)
    latest = math.max(latest, ends)
  end
  call('HSET', WHO, '@' .. owner, table.concat(words, ';'))
  return latest
end

local function lease_of(entry, ttl)
  if entry == '0' then return ttl end
  return math.min(ttl, INNER_LEASE)
end

-- The kind of a tombstone, or nil.
local function kind_of(score) return score and tonumber(score) % 8 or nil end
local function tombstone_score(owner) return n_released > 0 and call('ZSCORE', RELEASED, owner) or nil end
local function tombstone(owner) return kind_of(tombstone_score(owner)) end

-- Scores are keep-until * 8 + kind. Where an owner ended twice the larger kind and the later time stay.
local function add_tombstone(owner, kind, lease_end)
  local before = tombstone_score(owner)
  local keep = math.max(now + TOMBSTONE, lease_end or 0, before and math.floor(tonumber(before) / 8) or 0)
  kind = math.max(kind, kind_of(before) or kind)
  n_released = n_released + 1
  call('ZADD', RELEASED, int(keep * 8 + kind), owner)
end

-- Over a quorum an owner numbers its attempts from 1. `#owner` in WHO is the newest stamp seen: twice the attempt,
-- plus one once that attempt was cancelled. A request with an older stamp is late and changes nothing. Over one
-- server there are no stamps: 0.
local function stamp_of(owner) return tonumber(call('HGET', WHO, '#' .. owner) or 0) end
local function is_late(owner, stamp) return stamp > 0 and stamp < stamp_of(owner) end
local function note_stamp(owner, stamp)
  if stamp > 0 then call('HSET', WHO, '#' .. owner, int(stamp)) end
end

