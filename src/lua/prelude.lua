--!df flags=
-- The line above is for Dragonfly: scripts are atomic there, whatever its default, and use the keys they declare.
-- Shared by all scripts of the native protocol: reading, sweeping, granting, ending. [docs/PROTOCOL.md]
-- KEYS: holders limits queue alive who meta released history never, all tagged {NAME}.
-- All times are the server's, in ms; numbers issued (tickets, tokens) are in microseconds.
local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY, NEVER = unpack(KEYS)
local BASE = string.sub(HOLDERS, 1, -8)

local CLAIM = 2000          -- a grant nobody claims
local HEARTBEAT = 15000     -- a waiter that does not ask again
local TOMBSTONE = 60000     -- how long an end is remembered, at least
local GRACE = 60000         -- keys outlive the last lease, so that a late renewal finds what happened
local META_LIFE = 2592000000  -- 30 days
local WAKE_LIFE = 10000
local INNER_LEASE = 30000   -- entries of nested runs, at most
local RUNS = 100            -- remembered in the history
local SWEEP = 256
local ADMIT = 64

-- Kinds of tombstones, the stronger the larger. Only up to REQUEUED may an owner come back.
local EXPIRED, REQUEUED, WAS_RELEASED, CANCELLED, REMOVED, FORCED = 0, 1, 2, 3, 4, 5
local KINDS = {[0] = 'expired', 'expired', 'released', 'cancelled', 'removed', 'forced'}

local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- `..` and tostring round to 14 digits, which would break tokens.
local function int(n) return string.format('%.0f', n) end

-- Each key is read once before anything is written: a wrong type stops the script here.
-- The counts are kept as upper bounds: 0 is sure, and saves the reads of an empty key.
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

-- The first write of whatever must also work when memory is full: it is not refused then, and the
-- server lets the later ones pass.
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

-- How a holder is attended: by nobody (0), by a process that renews for the steps of another (1), or as a run (2), whose
-- command does not outlive its lease.
local RUN = '2'

-- What WHO tells: `+owner` is state limit token since ttl min-hold attended; `@owner` the entries as id=end,
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

-- Writes the entries; the latest end of them.
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

-- Kind of the tombstone, or nil.
local function kind_of(score) return score and tonumber(score) % 8 or nil end
local function tombstone_score(owner) return n_released > 0 and call('ZSCORE', RELEASED, owner) or nil end
local function tombstone(owner) return kind_of(tombstone_score(owner)) end

-- Scores are keep-until * 8 + kind. Of two ends of an owner the stronger kind and the later time stay.
local function add_tombstone(owner, kind, lease_end)
  local before = tombstone_score(owner)
  local keep = math.max(now + TOMBSTONE, lease_end or 0, before and math.floor(tonumber(before) / 8) or 0)
  kind = math.max(kind, kind_of(before) or kind)
  n_released = n_released + 1
  call('ZADD', RELEASED, int(keep * 8 + kind), owner)
end

-- Over a quorum an owner numbers its attempts from 1. `#owner` in WHO is the newest stamp seen: twice the attempt,
-- and one more once that attempt was given back. What is older comes late and changes nothing. 0: one server, no stamps.
local function stamp_of(owner) return tonumber(call('HGET', WHO, '#' .. owner) or 0) end
local function is_late(owner, stamp) return stamp > 0 and stamp < stamp_of(owner) end
local function note_stamp(owner, stamp)
  if stamp > 0 then call('HSET', WHO, '#' .. owner, int(stamp)) end
end

local function note_of(owner) return call('HGET', WHO, '!' .. owner) or '' end

-- A row of HISTORY, newest first: what it is, numbers, and the record of whoever it was.
local function write_history(row)
  if call('LPUSH', HISTORY, row) > RUNS then call('LTRIM', HISTORY, 0, RUNS - 1) end
  call('PEXPIREAT', HISTORY, int(now + META_LIFE))
end

-- Where an operator broke the lock or its cool-down, RESULT ends in `+` and the length of the note, which stands before
-- the record.
local function with_note(result, note) return note == '' and result or result .. '+' .. #note .. ' ' .. note end

-- run TOKEN SINCE END HOW RESULT RECORD; an unclaimed grant ran nothing.
local function note_run(owner, line, how, result)
  if not line or line.state == 'granted' then return end
  result = with_note(result, how == 'forced' and note_of(owner) or '')
  write_history(table.concat({'run', int(line.token), int(line.since), int(now), how, result,
                              line.record}, ' '))
end

-- skip COUNT FIRST LAST RECORD: skips between two runs share a row, so that they never push runs out.
local function note_skip(record)
  local newest = call('LINDEX', HISTORY, 0) or ''
  local count, first = string.match(newest, '^skip (%d+) (%d+) ')
  if not count then return write_history('skip 1 ' .. int(now) .. ' ' .. int(now) .. ' ' .. record) end
  call('LSET', HISTORY, 0, 'skip ' .. int(count + 1) .. ' ' .. first .. ' ' .. int(now) .. ' ' .. record)
  call('PEXPIREAT', HISTORY, int(now + META_LIFE))
end

local function forget(owner) call('HDEL', WHO, owner, '+' .. owner, '@' .. owner) end

local function wake(owner, event) wakes[#wakes + 1] = {owner, event} end

local function add_holder(owner, line, ends)
  n_holders = n_holders + 1
  call('ZADD', HOLDERS, int(ends), owner)
  call('ZADD', LIMITS, int(line.limit), owner)
end

-- After an end that counts as a use: the lock stays taken until min-hold is over, and no longer where the
-- clock was set back meanwhile.
local function start_cooldown(owner, line)
  local ends = math.min(line.since, now) + line.min_hold
  if line.state ~= 'held' or ends <= now then return end
  local cooldown_owner = '~' .. owner
  call('HSET', WHO, cooldown_owner, line.record, '+' .. cooldown_owner,
       line_text({state = 'cooldown', limit = line.limit, token = line.token, since = line.since,
                  ttl = 0, min_hold = 0, responsive = '0'}))
  add_holder(cooldown_owner, line, ends)
end

local function remove_holder(owner)
  n_holders = n_holders - call('ZREM', HOLDERS, owner)
  call('ZREM', LIMITS, owner)
end

local function remove_waiter(owner)
  call('ZREM', QUEUE, owner)
  call('ZREM', ALIVE, owner)
  forget(owner)
end

local function sweep_holders()
  if n_holders == 0 then return end
  local ended = call('ZRANGEBYSCORE', HOLDERS, '-inf', now, 'LIMIT', 0, SWEEP)
  if #ended == 0 then return end
  n_holders = n_holders - call('ZREM', HOLDERS, unpack(ended))
  call('ZREM', LIMITS, unpack(ended))
  for _, owner in ipairs(ended) do
    if string.sub(owner, 1, 1) ~= '~' then
      local line = read_line(owner)
      local forced = line and line.state == 'revoked'
      note_run(owner, line, forced and 'forced' or 'expired', '-')
      if line then start_cooldown(owner, line) end
      add_tombstone(owner, forced and FORCED or EXPIRED)
    end
    forget(owner)
  end
  must_retry = must_retry or #ended == SWEEP
end

local function sweep_waiters()
  if n_alive == 0 then return end
  local dead = call('ZRANGEBYSCORE', ALIVE, '-inf', now, 'LIMIT', 0, SWEEP)
  if #dead == 0 then return end
  call('ZREM', QUEUE, unpack(dead))
  call('ZREM', ALIVE, unpack(dead))
  local ends = call('ZMSCORE', RELEASED, unpack(dead))
  local fields, tombs = {}, {}
  local mark = int((now + TOMBSTONE) * 8 + EXPIRED)
  for i, owner in ipairs(dead) do
    fields[#fields + 1] = owner
    fields[#fields + 1] = '+' .. owner
    if not ends[i] then
      tombs[#tombs + 1] = mark
      tombs[#tombs + 1] = owner
    end
  end
  call('HDEL', WHO, unpack(fields))
  n_released = n_released + #tombs
  if #tombs > 0 then call('ZADD', RELEASED, unpack(tombs)) end
  must_retry = must_retry or #dead == SWEEP
end

local function sweep_tombstones()
  if n_released == 0 then return end
  local old = call('ZRANGEBYSCORE', RELEASED, '-inf', int(now * 8 + 7), 'LIMIT', 0, SWEEP)
  if #old == 0 then return end
  n_released = n_released - call('ZREM', RELEASED, unpack(old))
  local fields = {}
  for _, owner in ipairs(old) do
    fields[#fields + 1] = '!' .. owner
    if not (held_until(owner) or queue_ticket(owner)) then fields[#fields + 1] = '#' .. owner end
  end
  call('HDEL', WHO, unpack(fields))
end

-- Someone deleted a part by hand: an unknown limit is exclusive.
local function rebuild_limits()
  if limits_complete then return end
  call('DEL', LIMITS)
  for _, owner in ipairs(call('ZRANGE', HOLDERS, 0, -1)) do
    local line = read_line(owner)
    call('ZADD', LIMITS, line and int(line.limit) or 1, owner)
  end
end

local function sweep()
  sweep_holders()
  sweep_waiters()
  sweep_tombstones()
  rebuild_limits()
end

-- One more holder with this limit would be tolerated by all, itself included.
local function fits(limit)
  if n_holders == 0 then return true end
  local least = tonumber(call('ZRANGE', LIMITS, 0, 0, 'WITHSCORES')[2] or limit)
  return call('ZCARD', HOLDERS) + 1 <= math.min(limit, least)
end

-- Keys live as long as the longest --min-hold.
local function note_hold(line)
  if line.min_hold > 0 then meta.hold = math.max(meta.hold, line.since + line.min_hold) end
end

local function note_grant(token, line)
  meta.grant = math.max(meta.grant, token)
  if line.limit == 1 then meta.exclusive = math.max(meta.exclusive, token) end
  note_hold(line)
end

-- Makes `owner` a holder with a fresh token until `ends`. Over a quorum the grant counts when the majority's token is
-- written back (renew): one server's alone is no sign that anybody had the lock. Further fields of WHO may follow.
local function grant(owner, line, ends, stamp, ...)
  line.token = issue()
  line.since = now
  if stamp == 0 then note_grant(line.token, line) end
  add_holder(owner, line, ends)
  call('HSET', WHO, '+' .. owner, line_text(line), '@' .. owner, '0=' .. int(ends), ...)
end

-- Grants to the waiters in front as far as they fit; dead ones are dropped on the way. `aside`: who has just given a
-- grant back, and would get it again at once.
local function admit(excluded)
  if n_queue == 0 then return end
  for _ = 1, ADMIT do
    local head = call('ZRANGE', QUEUE, 0, 0)[1]
    if not head then return end
    local line = read_line(head)
    if not line or tonumber(call('ZSCORE', ALIVE, head) or 0) <= now then
      remove_waiter(head)
      add_tombstone(head, EXPIRED)
    elseif head ~= excluded and fits(line.limit) then
      call('ZREM', QUEUE, head)
      call('ZREM', ALIVE, head)
      line.state = 'granted'
      grant(head, line, now + CLAIM, stamp_of(head))
      granted[#granted + 1] = head
      wake(head, 'granted')
    else
      return
    end
  end
  must_retry = true
end

local function largest(key)
  return tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] or 0)
end

local function set_ends()
  local holders, alive, released = 0, 0, 0
  if n_holders > 0 then
    holders = math.max(largest(HOLDERS) + GRACE, meta.hold)
    call('PEXPIREAT', HOLDERS, int(holders))
    call('PEXPIREAT', LIMITS, int(holders))
  end
  if n_queue > 0 then
    alive = largest(ALIVE)
    call('PEXPIREAT', QUEUE, int(alive))
    call('PEXPIREAT', ALIVE, int(alive))
  end
  if n_released > 0 then
    released = math.floor(largest(RELEASED) / 8)
    call('PEXPIREAT', RELEASED, int(released))
  end
  call('PEXPIREAT', WHO, int(math.max(holders, alive, released)))
  call('PEXPIREAT', META, int(math.max(now + META_LIFE, holders)))
end

local unsent = {}  -- owner, word, owner, word...

-- The lists are not declared: a server that wants all keys declared refuses them here.
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

-- The end of every script that writes: memory, expiries, then the wakes, which must come last. The head
-- is nudged where its timer may be too late; the caller itself reads the reply.
local function finish(caller)
  local head = n_queue > 0 and call('ZRANGE', QUEUE, 0, 0)[1] or ''
  if head ~= '' and head ~= caller and
     (head ~= meta.head or must_retry or earliest_end() < end_before) then
    wake(head, 'look')
  end
  local changed = head ~= meta.head
  for name, value in pairs(meta) do changed = changed or value ~= meta_as_read[name] end
  if changed and meta.created > 0 then
    call('HSET', META, 'last', int(meta.last), 'grant', int(meta.grant), 'exclusive',
         int(meta.exclusive), 'created', int(meta.created), 'head', head, 'hold', int(meta.hold))
  end
  set_ends()
  for _, w in ipairs(wakes) do
    if w[1] ~= caller then push_wake(w[1], w[2]) end
  end
end

-- A script's reply; with wakes that the client has to push, `wakes REPLY owner word...`.
local function with_wakes(reply)
  if #unsent == 0 then return reply end
  return {'wakes', reply, unpack(unsent)}
end

local function count_entries(line)
  local n = 0
  for _ in pairs(live_entries(line)) do n = n + 1 end
  return n
end

-- A holder for replies: owner state limit token since held left entries attended record ttl.
local function describe(owner)
  local line = read_line(owner) or {state = 'held', limit = 1, token = 0, since = now, ttl = 0,
                                    responsive = '1', entries = '',
                                    record = call('HGET', WHO, owner) or ''}
  local ends = tonumber(call('ZSCORE', HOLDERS, owner) or now)
  return {(string.gsub(owner, '^~', '')), line.state, line.limit, line.token, line.since,
          now - line.since, ends - now, count_entries(line), line.responsive, line.record, line.ttl}
end

-- One live holder, or false.
local function some_holder()
  local owner = call('ZRANGEBYSCORE', HOLDERS, '(' .. int(now), '+inf', 'LIMIT', 0, 1)[1]
  return owner and describe(owner) or false
end

