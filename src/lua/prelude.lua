-- What the usual way reads first, and how it reads the fields.

-- `..` and tostring round to 14 digits, which would break tokens.
local function int(n) return string.format('%.0f', n) end

-- Each key is read before anything is written, so that a key of the wrong type stops the script here.
-- The counts are upper bounds from here on: 0 is certain, and saves the reads of an empty key.
local folded = lone_owner ~= nil
local several = present > 0 and not folded
local n_holders = folded and 1 or several and call('ZCARD', HOLDERS) or 0
local n_queue = several and call('ZCARD', QUEUE) or 0
local n_alive = several and call('ZCARD', ALIVE) or 0
local n_released = call('ZCARD', RELEASED)
local limits_complete = not several or call('ZCARD', LIMITS) == n_holders
if several then call('HLEN', WHO) end
call('LLEN', HISTORY)
local n_once = call('HLEN', ONCE)
local meta = {
  last = tonumber(last),                 -- number issued
  grant = tonumber(last_grant),          -- token of the last grant
  exclusive = tonumber(last_exclusive),  -- token of the last exclusive grant
  created = tonumber(created),           -- when this memory began
  head = old_head,                       -- of the queue
  hold = tonumber(hold_end),             -- latest end of a --min-hold
}

local meta_as_read, words_as_read = {}, words
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
  if folded then return owner == lone_owner and lone_end or nil end
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

-- The fields of WHO: `+owner` is `1 state limit token since ttl min-hold responsive`, then words `key=value`, which are
-- kept; `@owner` the entries as id=end, separated by semicolons; `owner` the record.
local LINE = '^1 (%l+) (%d+) (%d+) (%d+) (%d+) (%d+) ([012])(.*)$'
local function read_line(owner)
  if folded then
    if owner ~= lone_owner then return nil end
    return {state = string.match(lone_words, TRY) or 'held', limit = tonumber(lone_limit), token = tonumber(lone_token), since = tonumber(lone_since),
            ttl = tonumber(lone_ttl), min_hold = 0, responsive = lone_responsive,
            words = string.gsub(' ' .. string.gsub(lone_words, TRY, ''), ' $', ''), entries = '0=' .. lone_end, record = lone_record}
  end
  local found = call('HMGET', WHO, '+' .. owner, '@' .. owner, owner)
  local state, limit, token, since, ttl, min_hold, responsive, line_words = string.match(found[1] or '', LINE)
  if not state then return nil end
  return {state = state, limit = tonumber(limit), token = tonumber(token), since = tonumber(since),
          ttl = tonumber(ttl), min_hold = tonumber(min_hold), responsive = responsive, words = line_words,
          entries = found[2] or '', record = found[3] or ''}
end

local function line_text(l)
  return table.concat({'1', l.state, int(l.limit), int(l.token), int(l.since), int(l.ttl), int(l.min_hold),
                       l.responsive .. (l.words or '')}, ' ')
end

-- Over a quorum an owner numbers its attempts from 1. `#owner` in WHO is the newest stamp seen: twice the attempt,
-- plus one once that attempt was cancelled. A request with an older stamp is late and changes nothing. Over one
-- server there are no stamps: 0.
local function stamp_of(owner)
  if folded then return owner == lone_owner and tonumber(select(2, string.match(lone_words, TRY)) or 0) or 0 end
  return tonumber(call('HGET', WHO, '#' .. owner) or 0)
end
local function is_late(owner, stamp) return stamp > 0 and stamp < stamp_of(owner) end
local function note_stamp(owner, stamp)
  if stamp > 0 then call('HSET', WHO, '#' .. owner, int(stamp)) end
end

-- Before the first write. A server whose memory is full refuses HSET, and then nothing has changed.
local function unfold()
  if not folded then return end
  local line, stamp = read_line(lone_owner), stamp_of(lone_owner)
  folded = false
  call('HSET', WHO, lone_owner, line.record, '+' .. lone_owner, line_text(line), '@' .. lone_owner, line.entries)
  note_stamp(lone_owner, stamp)
  call('DEL', HOLDERS)
  call('ZADD', HOLDERS, lone_end, lone_owner)
  call('ZADD', LIMITS, lone_limit, lone_owner)
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
  local INNER_LEASE = 30000  -- the longest of a nested run's entry
  if entry == '0' then return ttl end
  return math.min(ttl, INNER_LEASE)
end

-- The kind of a tombstone, or nil; one that is overdue counts no more.
local function kind_of(score)
  score = tonumber(score or 0)
  return math.floor(score / 16) > now and score % 16 or nil
end
local function tombstone_score(owner) return n_released > 0 and call('ZSCORE', RELEASED, owner) or nil end
local function tombstone(owner) return kind_of(tombstone_score(owner)) end

-- Scores are keep-until * 16 + kind. Where an owner ended twice the larger kind and the later time stay.
local function add_tombstone(owner, kind, lease_end)
  local before = tombstone_score(owner)
  local keep = math.max(now + TOMBSTONE, lease_end or 0, before and math.floor(tonumber(before) / 16) or 0)
  kind = math.max(kind, kind_of(before) or kind)
  n_released = n_released + 1
  call('ZADD', RELEASED, int(keep * 16 + kind), owner)
end
