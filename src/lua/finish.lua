-- The end of a script: expiries, wakes, and the reply.

local finish
do
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
    -- So much later that waiters far from the head need not move it with each heartbeat.
    if n_queue > 0 then alive = largest(ALIVE) + HEARTBEAT end
    if n_released > 0 then
      released = math.floor(largest(RELEASED) / 16)
      call('PEXPIREAT', RELEASED, int(released))
    end
    -- The dead are swept as long as WHO has lines of them.
    local who = int(math.max(holders, alive, released))
    if n_queue > 0 then
      call('PEXPIREAT', QUEUE, who)
      call('PEXPIREAT', ALIVE, who)
    end
    call('PEXPIREAT', WHO, who)
    call('PEXPIREAT', META, int(math.max(now + META_LIFE, holders)))
  end

  -- Whether a waiter's heartbeat is longer than that of those near the head.
  local function is_far(beat) return beat and tonumber(beat) % 1 > 0 or false end

  -- Those that come near the head are woken to look again, which they do more often from then on.
  local function nudge_near()
    local gone = n_queue > NEAR and n_queue - call('ZCARD', QUEUE) or 0
    if gone == 0 then return end
    local moved = call('ZRANGE', QUEUE, math.max(0, NEAR - gone), NEAR - 1)
    if #moved == 0 then return end
    for i, beat in ipairs(call('ZMSCORE', ALIVE, unpack(moved))) do
      if is_far(beat) then wake(moved[i], 'look') end
    end
  end

  -- The end of every script that writes: META, expiries, then the wakes, which must come last. The head of the queue
  -- is woken to look again where its timer may be too late. The caller needs no wake: it reads the reply.
  function finish(caller)
    local head = n_queue > 0 and call('ZRANGE', QUEUE, 0, 0)[1] or NOBODY
    if head ~= NOBODY and head ~= caller and
       (head ~= meta.head or must_retry or earliest_end() < end_before) then
      wake(head, 'look')
    end
    nudge_near()
    local said = words ~= words_as_read
    local changed = migrates or head ~= meta.head or said
    for name, value in pairs(meta) do changed = changed or value ~= meta_as_read[name] end
    if changed and (meta.created > 0 or said) then
      created, hold_end = int(meta.created), int(meta.hold)
      write_memory(int(meta.last), int(meta.grant), int(meta.exclusive), head)
    end
    set_ends()
    for _, w in ipairs(wakes) do
      if w[1] ~= caller then push_wake(w[1], w[2]) end
    end
  end
end

local function count_entries(line)
  local n = 0
  for _ in pairs(live_entries(line)) do n = n + 1 end
  return n
end

-- A holder as replies have it: owner state limit token since held left entries responsive record ttl slot.
local function describe(owner)
  local line = read_line(owner) or {state = 'held', limit = 1, token = 0, since = now, ttl = 0,
                                    responsive = '1', entries = '',
                                    record = call('HGET', WHO, owner) or ''}
  local ends = tonumber(held_until(owner) or now)
  return {(string.gsub(owner, '^~', '')), line.state, line.limit, line.token, line.since,
          now - line.since, ends - now, count_entries(line), line.responsive, line.record, line.ttl, slot_of(line.words)}
end

-- One live holder, or false.
local function some_holder()
  if folded then return tonumber(lone_end) > now and describe(lone_owner) or false end
  local owner = call('ZRANGEBYSCORE', HOLDERS, '(' .. int(now), '+inf', 'LIMIT', 0, 1)[1]
  return owner and describe(owner) or false
end

