-- Adding and removing holders and waiters, and sweeping those that have ended, a bounded number at a time.

local function forget(owner) call('HDEL', WHO, owner, '+' .. owner, '@' .. owner) end

local function wake(owner, event) wakes[#wakes + 1] = {owner, event} end

local function add_holder(owner, line, ends)
  n_holders = n_holders + 1
  if slots_used then slots_used[slot_of(line.words)] = true end
  call('ZADD', HOLDERS, int(ends), owner)
  call('ZADD', LIMITS, int(line.limit), owner)
end

-- After a hold that ran something the lock stays taken until its min-hold is over. Where the clock was set back
-- since, min-hold counts from now.
local function start_cooldown(owner, line)
  local ends = math.min(line.since, now) + line.min_hold
  if line.state ~= 'held' or ends <= now then return end
  local cooldown_owner = '~' .. owner
  call('HSET', WHO, cooldown_owner, line.record, '+' .. cooldown_owner,
       line_text({state = 'cooldown', limit = line.limit, token = line.token, since = line.since,
                  ttl = 0, min_hold = 0, responsive = '0',
                  words = with_slot('', slot_of(line.words))}))
  add_holder(cooldown_owner, line, ends)
end

local function remove_holder(owner)
  n_holders = n_holders - call('ZREM', HOLDERS, owner)
  slots_used = nil
  call('ZREM', LIMITS, owner)
end

local function remove_waiter(owner)
  call('ZREM', QUEUE, owner)
  call('ZREM', ALIVE, owner)
  forget(owner)
end

-- A hold has ended without its release: its run has died, or ended before those that are nested in it.
local function note_lapse(owner, line)
  local ended = line_word(line, 'result')
  note_run(owner, line, ended and 'released' or 'expired', '-')
  if not line or line.state ~= 'held' or ended then return end
  if not line_word(line, 'counted') then note_failure(once_of(line)) end
  add_tombstone(owner .. ':counted', EXPIRED)
end

local sweep
do
  local function sweep_holders()
    if n_holders == 0 then return end
    local ended = call('ZRANGEBYSCORE', HOLDERS, '-inf', now, 'LIMIT', 0, SWEEP)
    if #ended == 0 then return end
    n_holders = n_holders - call('ZREM', HOLDERS, unpack(ended))
    slots_used = nil
    call('ZREM', LIMITS, unpack(ended))
    for _, owner in ipairs(ended) do
      if string.sub(owner, 1, 1) ~= '~' then
        local line = read_line(owner)
        local forced = line and line.state == 'revoked'
        if forced then note_run(owner, line, 'forced', '-') else note_lapse(owner, line) end
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
    local mark = int((now + TOMBSTONE) * 16 + EXPIRED)
    for i, owner in ipairs(dead) do
      fields[#fields + 1] = owner
      fields[#fields + 1] = '+' .. owner
      if not kind_of(ends[i]) then
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
    if #call('ZRANGEBYSCORE', RELEASED, '-inf', int((now - OVERDUE) * 16 + 15), 'LIMIT', 0, 1) == 0 then return end
    local old = call('ZRANGEBYSCORE', RELEASED, '-inf', int(now * 16 + 15), 'LIMIT', 0, SWEEP)
    n_released = n_released - call('ZREM', RELEASED, unpack(old))
    local fields = {}
    for _, owner in ipairs(old) do
      fields[#fields + 1] = '!' .. owner
      if not (held_until(owner) or queue_ticket(owner)) then fields[#fields + 1] = '#' .. owner end
    end
    call('HDEL', WHO, unpack(fields))
  end

  -- Repairs LIMITS where somebody deleted keys by hand: an unknown limit counts as exclusive.
  local function rebuild_limits()
    if limits_complete then return end
    call('DEL', LIMITS)
    for _, owner in ipairs(call('ZRANGE', HOLDERS, 0, -1)) do
      local line = read_line(owner)
      call('ZADD', LIMITS, line and int(line.limit) or 1, owner)
    end
  end

  function sweep()
    sweep_holders()
    sweep_waiters()
    sweep_tombstones()
    rebuild_limits()
  end
end
