-- prelude of rlock at commit 82714a8, the last one that stored no version words: as it was, without its comments.
local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY, NEVER = unpack(KEYS)
local BASE = string.sub(HOLDERS, 1, -8)
local CLAIM = 2000
local HEARTBEAT = 15000
local TOMBSTONE = 60000
local GRACE = 60000
local META_LIFE = 2592000000
local WAKE_LIFE = 10000
local INNER_LEASE = 30000
local RUNS = 100
local SWEEP = 256
local ADMIT = 64
local EXPIRED, REQUEUED, WAS_RELEASED, CANCELLED, REMOVED, FORCED = 0, 1, 2, 3, 4, 5
local KINDS = {[0] = 'expired', 'expired', 'released', 'cancelled', 'removed', 'forced'}
local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
local function int(n) return string.format('%.0f', n) end
local n_holders = call('ZCARD', HOLDERS)
local anyone_waits = call('EXISTS', QUEUE, ALIVE, NEVER) > 0
local n_queue = anyone_waits and call('ZCARD', QUEUE) or 0
local n_alive = anyone_waits and call('ZCARD', ALIVE) or 0
local n_released = call('ZCARD', RELEASED)
local limits_complete = call('ZCARD', LIMITS) == n_holders
call('HLEN', WHO)
call('LLEN', HISTORY)
local stored = call('HMGET', META, 'last', 'grant', 'exclusive', 'created', 'head', 'hold')
local meta = {
  last = tonumber(stored[1] or 0),
  grant = tonumber(stored[2] or 0),
  exclusive = tonumber(stored[3] or 0),
  created = tonumber(stored[4] or 0),
  head = stored[5] or '',
  hold = tonumber(stored[6] or 0),
}
local meta_as_read = {}
for name, value in pairs(meta) do meta_as_read[name] = value end
local wakes = {}
local granted = {}
local more = false
local function earliest_end()
  if n_holders == 0 then return math.huge end
  return tonumber(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2] or math.huge)
end
local end_before = n_queue > 0 and earliest_end() or math.huge
local function touch() call('PEXPIREAT', META, int(now + META_LIFE)) end
local function held_until(owner)
  return n_holders > 0 and call('ZSCORE', HOLDERS, owner) or nil
end
local function place_of(owner) return n_queue > 0 and call('ZSCORE', QUEUE, owner) or nil end
local function issue()
  meta.last = math.max(meta.last + 1, now_us)
  if meta.created == 0 then meta.created = meta.last end
  return meta.last
end
local function read_line(owner)
  local found = call('HMGET', WHO, '+' .. owner, '@' .. owner, owner)
  local state, limit, token, since, ttl, min_hold, attended =
    string.match(found[1] or '', '^(%l+) (%d+) (%d+) (%d+) (%d+) (%d+) ([01])$')
  if not state then return nil end
  return {state = state, limit = tonumber(limit), token = tonumber(token), since = tonumber(since),
          ttl = tonumber(ttl), min_hold = tonumber(min_hold), attended = attended,
          entries = found[2] or '', record = found[3] or ''}
end
local function line_text(l)
  return table.concat({l.state, int(l.limit), int(l.token), int(l.since), int(l.ttl),
                       int(l.min_hold), l.attended}, ' ')
end
local function live_entries(line)
  local entries = {}
  for id, ends in string.gmatch(line.entries, '(%w+)=(%d+)') do
    if tonumber(ends) > now then entries[id] = tonumber(ends) end
  end
  return entries
end
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
local function kind_of(score) return score and tonumber(score) % 8 or nil end
local function tombstone(owner)
  return kind_of(n_released > 0 and call('ZSCORE', RELEASED, owner))
end
local function bury(owner, kind, lease_end)
  if (tombstone(owner) or -1) > kind then return end
  local keep = math.max(now + TOMBSTONE, lease_end or 0)
  n_released = n_released + 1
  call('ZADD', RELEASED, int(keep * 8 + kind), owner)
end
local function stamp_of(owner) return tonumber(call('HGET', WHO, '#' .. owner) or 0) end
local function is_late(owner, stamp) return stamp > 0 and stamp < stamp_of(owner) end
local function note_stamp(owner, stamp)
  if stamp > 0 then call('HSET', WHO, '#' .. owner, int(stamp)) end
end
local function note_of(owner) return call('HGET', WHO, '!' .. owner) or '' end
local function write_history(row)
  if call('LPUSH', HISTORY, row) > RUNS then call('LTRIM', HISTORY, 0, RUNS - 1) end
  call('PEXPIREAT', HISTORY, int(now + META_LIFE))
end
local function note_run(line, how, result)
  if not line or line.state == 'granted' then return end
  write_history(table.concat({'run', int(line.token), int(line.since), int(now), how, result,
                              line.record}, ' '))
end
local function note_skip(record)
  local newest = call('LINDEX', HISTORY, 0) or ''
  local count, first = string.match(newest, '^skip (%d+) (%d+) ')
  if not count then return write_history('skip 1 ' .. int(now) .. ' ' .. int(now) .. ' ' .. record) end
  call('LSET', HISTORY, 0, 'skip ' .. int(count + 1) .. ' ' .. first .. ' ' .. int(now) .. ' ' .. record)
  call('PEXPIREAT', HISTORY, int(now + META_LIFE))
end
local function forget(owner) call('HDEL', WHO, owner, '+' .. owner, '@' .. owner) end
local function wake(owner, word) wakes[#wakes + 1] = {owner, word} end
local function add_holder(owner, line, ends)
  n_holders = n_holders + 1
  call('ZADD', HOLDERS, int(ends), owner)
  call('ZADD', LIMITS, int(line.limit), owner)
end
local function cool_down(owner, line)
  local ends = math.min(line.since, now) + line.min_hold
  if line.state ~= 'held' or ends <= now then return end
  local ghost = '~' .. owner
  call('HSET', WHO, ghost, line.record, '+' .. ghost,
       line_text({state = 'cooldown', limit = line.limit, token = line.token, since = line.since,
                  ttl = 0, min_hold = 0, attended = '0'}))
  add_holder(ghost, line, ends)
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
      note_run(line, forced and 'forced' or 'expired', '-')
      if line then cool_down(owner, line) end
      bury(owner, forced and FORCED or EXPIRED)
    end
    forget(owner)
  end
  more = more or #ended == SWEEP
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
  more = more or #dead == SWEEP
end
local function sweep_tombstones()
  if n_released == 0 then return end
  local old = call('ZRANGEBYSCORE', RELEASED, '-inf', int(now * 8 + 7), 'LIMIT', 0, SWEEP)
  if #old == 0 then return end
  n_released = n_released - call('ZREM', RELEASED, unpack(old))
  local fields = {}
  for _, owner in ipairs(old) do
    fields[#fields + 1] = '!' .. owner
    if not (held_until(owner) or place_of(owner)) then fields[#fields + 1] = '#' .. owner end
  end
  call('HDEL', WHO, unpack(fields))
end
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
local function fits(limit)
  if n_holders == 0 then return true end
  local least = tonumber(call('ZRANGE', LIMITS, 0, 0, 'WITHSCORES')[2] or limit)
  return call('ZCARD', HOLDERS) + 1 <= math.min(limit, least)
end
local function note_hold(line)
  if line.min_hold > 0 then meta.hold = math.max(meta.hold, line.since + line.min_hold) end
end
local function note_grant(token, line)
  meta.grant = math.max(meta.grant, token)
  if line.limit == 1 then meta.exclusive = math.max(meta.exclusive, token) end
  note_hold(line)
end
local function grant(owner, line, ends, stamp, ...)
  line.token = issue()
  line.since = now
  if stamp == 0 then note_grant(line.token, line) end
  add_holder(owner, line, ends)
  call('HSET', WHO, '+' .. owner, line_text(line), '@' .. owner, '0=' .. int(ends), ...)
end
local function admit(aside)
  if n_queue == 0 then return end
  for _ = 1, ADMIT do
    local head = call('ZRANGE', QUEUE, 0, 0)[1]
    if not head then return end
    local line = read_line(head)
    if not line or tonumber(call('ZSCORE', ALIVE, head) or 0) <= now then
      remove_waiter(head)
      bury(head, EXPIRED)
    elseif head ~= aside and fits(line.limit) then
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
  more = true
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
local unsent = {}
local function push_wake(owner, word)
  local key = BASE .. 'wake:' .. owner
  local length = redis.pcall('RPUSH', key, word)
  if type(length) == 'table' then
    unsent[#unsent + 1] = owner
    unsent[#unsent + 1] = word
    return
  end
  if length ~= 1 then redis.pcall('LTRIM', key, -1, -1) end
  redis.pcall('PEXPIRE', key, WAKE_LIFE)
end
local function finish(caller)
  local head = n_queue > 0 and call('ZRANGE', QUEUE, 0, 0)[1] or ''
  if head ~= '' and head ~= caller and
     (head ~= meta.head or more or earliest_end() < end_before) then
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
local function told(reply)
  if #unsent == 0 then return reply end
  return {'wakes', reply, unpack(unsent)}
end
local function count_entries(line)
  local n = 0
  for _ in pairs(live_entries(line)) do n = n + 1 end
  return n
end
local function describe(owner)
  local line = read_line(owner) or {state = 'held', limit = 1, token = 0, since = now, ttl = 0,
                                    attended = '1', entries = '',
                                    record = call('HGET', WHO, owner) or ''}
  local ends = tonumber(call('ZSCORE', HOLDERS, owner) or now)
  return {(string.gsub(owner, '^~', '')), line.state, line.limit, line.token, line.since,
          now - line.since, ends - now, count_entries(line), line.attended, line.record, line.ttl}
end
local function some_holder()
  local owner = call('ZRANGEBYSCORE', HOLDERS, '(' .. int(now), '+inf', 'LIMIT', 0, 1)[1]
  return owner and describe(owner) or false
end
