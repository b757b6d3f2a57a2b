-- include: cooldowns history holders lines notes once queue tasks tombstones wakes
-- Removes owners permanently, and sweeps a bounded number of expired leases, dead waiters and old tombstones: the server has no timer, so
-- each script that writes, except `forget`, does what is due by then.

-- Removes an owner that need not wait any longer or claim its grant. Its tombstone and the note show why.
local function dismiss(owner, record, kind, note)
  if holders.held_until(owner) then holders.remove(owner) end
  queue.remove(owner)
  tombstones.add(owner, kind)
  if note then notes.store(owner, note) end
  history.count_skip(record, not (kind == DONE and note) and tombstones.word(kind))
  wakes.add(owner, tombstones.word(kind))
end

-- Removes an owner whose work is done or failed too often. It may ask again once that is forgotten.
local function dismiss_as_done(owner, record, verdict)
  dismiss(owner, record, DONE, verdict[1] == 'failed' and 'failed ' .. int(verdict.times) .. ' ' .. int(verdict.token) or nil)
end

-- Returns how a run with an expired lease ended: an operator broke the lease, the run ended before its nested runs, or it died.
local function lapse_of(line)
  if line.state == 'revoked' then return 'forced' end
  return line.result and 'released' or 'expired'
end

-- Records that a lease has ended without a release.
local function note_lapse(owner, line, ends)
  local how = lapse_of(line)
  history.record_run(owner, line, how, '-', ends)
  if line.state ~= 'held' or how ~= 'expired' then return end
  local work = not line.counted and tasks.of(line)
  if work then once.note_failure(work) end
  tombstones.add(owner .. ':counted', EXPIRED)
end

-- Returns the holders whose leases have expired, the first to expire first, and when they did.
local function ended_holders()
  local owners = call('ZRANGEBYSCORE', HOLDERS, '-inf', now, 'LIMIT', 0, SWEEP)
  return owners, #owners > 0 and call('ZMSCORE', HOLDERS, unpack(owners)) or {}
end

local function end_lease(owner, ends)
  local line = lines.read(owner)
  holders.remove(owner)
  if string.sub(owner, 1, 1) ~= '~' then
    note_lapse(owner, line, ends)
    cooldowns.start(owner, line)
    tombstones.add(owner, lapse_of(line) == 'forced' and FORCED or EXPIRED)
  end
  lines.forget(owner)
end

-- CALLER, if there is one, learns how its lease ended, however many leases expired before it.
local function sweep_holders(caller)
  local ended, ends = ended_holders()
  for i, owner in ipairs(ended) do
    -- Unless this loop has ended a lease and its cool-down has begun again.
    if holders.held_until(owner) == tonumber(ends[i]) then end_lease(owner, tonumber(ends[i])) end
  end
  must_retry = must_retry or #ended == SWEEP
  local own_end = caller and holders.held_until(caller)
  if own_end and own_end <= now then end_lease(caller, own_end) end
end

local function sweep_waiters()
  local gone = call('ZRANGEBYSCORE', ALIVE, '-inf', now, 'LIMIT', 0, SWEEP)
  for _, owner in ipairs(gone) do
    if holders.held_until(owner) then
      queue.leave(owner)  -- QUEUE was evicted while it waited, and it was granted the lock as a newcomer
    else
      queue.remove(owner)
      if not tombstones.kind(owner) then tombstones.add(owner, EXPIRED) end
    end
  end
  must_retry = must_retry or #gone == SWEEP
end

-- The note and the stamp of an owner are removed with its tombstone, unless the owner has come back: its next end leaves another tombstone.
local function sweep_tombstones()
  local old = call('ZRANGEBYSCORE', RELEASED, '-inf', now * 16 + 15, 'LIMIT', 0, SWEEP)
  for _, owner in ipairs(old) do
    call('ZREM', RELEASED, owner)
    if not (holders.held_until(owner) or queue.ticket(owner)) then call('HDEL', WHO, '!' .. owner, '#' .. owner) end
  end
end

-- Does what is due; scripts call it only if anything is. The lease of CALLER is then ended if it has expired.
local function run(caller)
  sweep_holders(caller)
  sweep_waiters()
  sweep_tombstones()
end

return {dismiss = dismiss, dismiss_as_done = dismiss_as_done, lapse_of = lapse_of, note_lapse = note_lapse,
        ended_holders = ended_holders, run = run}
