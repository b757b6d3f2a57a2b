-- How a bounded number of ended leases and dead waiters is swept, and how waiters are dismissed for good.

-- Removes an owner that need not wait any longer, or claim its grant; its tombstone and the note show why.
function s.dismiss(owner, record, kind, note)
  s.unfold()
  if s.held_until(owner) then s.remove_holder(owner) end
  s.remove_waiter(owner)
  s.add_tombstone(owner, kind)
  if note then call('HSET', WHO, '!' .. owner, note) end
  s.note_skip(record, not (kind == DONE and note) and s.ended_as(kind))
  s.wake(owner, s.ended_as(kind))
end

-- Its work is done, or failed too often; it may ask again once both are forgotten.
function s.dismiss_as_done(owner, record, verdict)
  s.dismiss(owner, record, DONE, verdict[1] == 'failed' and 'failed ' .. s.int(verdict[2]) or nil)
end

-- How a hold ended whose lease is over: an operator broke it, its run ended before the runs nested in it, or the run died.
function s.lapse_of(line)
  if line and line.state == 'revoked' then return 'forced' end
  return s.line_word(line, 'result') and 'released' or 'expired'
end

-- A hold has ended without its release.
function s.note_lapse(owner, line, ends)
  local how = s.lapse_of(line)
  s.note_run(owner, line, how, '-', ends)
  if not line or line.state ~= 'held' or how ~= 'expired' then return end
  local what = not s.line_word(line, 'counted') and s.once_of(line)
  if what then s.once_part().note_failure(what) end
  s.add_tombstone(owner .. ':counted', EXPIRED)
end

-- The holders whose leases have ended, the first to end first, and when they did.
function s.ended_holders()
  if s.lone then return s.first_end <= now and {s.lone.owner} or {}, {s.first_end} end
  local owners = s.n_holders > 0 and call('ZRANGEBYSCORE', HOLDERS, '-inf', now, 'LIMIT', 0, SWEEP) or {}
  return owners, #owners > 0 and call('ZMSCORE', HOLDERS, unpack(owners)) or {}
end

function s.sweep_tombstones()
  local old = call('ZRANGEBYSCORE', RELEASED, '-inf', now * 16 + 15, 'LIMIT', 0, SWEEP)
  if #old == 0 then return end
  call('ZREM', RELEASED, unpack(old))
  if not s.several then return end
  local fields = {}
  for _, owner in ipairs(old) do
    fields[#fields + 1] = '!' .. owner
    if not (s.held_until(owner) or s.queue_ticket(owner)) then fields[#fields + 1] = '#' .. owner end
  end
  call('HDEL', WHO, unpack(fields))
end

function s.sweep_ended()
  local function sweep_holders()
    local ended, ends = s.ended_holders()
    if #ended == 0 then return end
    s.unfold()
    s.n_holders = s.n_holders - call('ZREM', HOLDERS, unpack(ended))
    s.slots_used, s.sole_end, s.holders_moved = false, false, true
    call('ZREM', LIMITS, unpack(ended))
    for i, owner in ipairs(ended) do
      if string.sub(owner, 1, 1) ~= '~' then
        local line = s.read_line(owner)
        s.note_lapse(owner, line, tonumber(ends[i]))
        if line then s.start_cooldown(owner, line) end
        s.add_tombstone(owner, s.lapse_of(line) == 'forced' and FORCED or EXPIRED)
      end
      s.forget(owner)
    end
    s.must_retry = s.must_retry or #ended == SWEEP
  end

  local function sweep_waiters()
    local gone = call('ZRANGEBYSCORE', ALIVE, '-inf', now, 'LIMIT', 0, SWEEP)
    if #gone == 0 then return end
    call('ZREM', QUEUE, unpack(gone))
    call('ZREM', ALIVE, unpack(gone))
    local ends = call('ZMSCORE', RELEASED, unpack(gone))
    local fields, tombs = {}, {}
    local mark = (now + TOMBSTONE) * 16 + EXPIRED
    for i, owner in ipairs(gone) do
      fields[#fields + 1] = owner
      fields[#fields + 1] = '+' .. owner
      if not s.kind_of(ends[i]) then
        tombs[#tombs + 1] = mark
        tombs[#tombs + 1] = owner
      end
    end
    call('HDEL', WHO, unpack(fields))
    if #tombs > 0 then
      call('ZADD', RELEASED, unpack(tombs))
      s.released_moved = true
    end
    s.must_retry = s.must_retry or #gone == SWEEP
  end

  -- Repairs LIMITS where somebody deleted keys by hand: an unknown limit counts as exclusive.
  local function rebuild_limits()
    if s.limits_complete then return end
    call('DEL', LIMITS)
    s.holders_moved = true
    for _, owner in ipairs(call('ZRANGE', HOLDERS, 0, -1)) do
      call('ZADD', LIMITS, s.read_line(owner).limit, owner)
    end
  end

  sweep_holders()
  sweep_waiters()
  rebuild_limits()
end

-- Wakes the waiters that have come near the head and still have a longer heartbeat than those there: they ask more often
-- from then on.
function s.nudge_near()
  local gone = s.n_queue - call('ZCARD', QUEUE)
  local moved = gone > 0 and call('ZRANGE', QUEUE, math.max(0, NEAR - gone), NEAR - 1) or {}
  if #moved == 0 then return end
  for i, beat in ipairs(call('ZMSCORE', ALIVE, unpack(moved))) do
    if beat and beat % 1 > 0 then s.wake(moved[i], 'look') end
  end
end

