-- Granting: whether one more holder fits, and the waiters in front of the queue.

-- Whether one more holder with this limit stays within the limits of all holders, its own included.
local function fits(limit)
  if n_holders == 0 then return true end
  local least = tonumber(call('ZRANGE', LIMITS, 0, 0, 'WITHSCORES')[2] or limit)
  return call('ZCARD', HOLDERS) + 1 <= math.min(limit, least)
end

-- The keys must live as long as the longest --min-hold.
local function note_hold(line)
  if line.min_hold > 0 then meta.hold = math.max(meta.hold, line.since + line.min_hold) end
end

local function note_grant(token, line)
  meta.grant = math.max(meta.grant, token)
  if line.limit == 1 then meta.exclusive = math.max(meta.exclusive, token) end
  note_hold(line)
end

-- Makes `owner` a holder with a new token until `ends`; further fields of WHO may follow. Over a quorum the grant
-- counts only once the majority's token is written back (renew): the grant of one server does not show that anybody
-- had the lock.
local function grant(owner, line, ends, stamp, ...)
  line.token = issue()
  line.since = now
  take_slot(line)
  if stamp == 0 then note_grant(line.token, line) end
  add_holder(owner, line, ends)
  call('HSET', WHO, '+' .. owner, line_text(line), '@' .. owner, '0=' .. int(ends), ...)
end

-- One that need not wait any longer, or claim its grant, leaves for good; its tombstone and the note show why.
local function dismiss(owner, record, kind, note)
  if held_until(owner) then remove_holder(owner) end
  remove_waiter(owner)
  add_tombstone(owner, kind)
  if note then call('HSET', WHO, '!' .. owner, note) end
  note_skip(record, kind == DONE and not note)
  wake(owner, KINDS[kind])
end

-- Its work is done, or failed too often; it may ask again once both are forgotten.
local function dismiss_as_done(owner, record, verdict)
  dismiss(owner, record, DONE, verdict[1] == 'failed' and 'failed ' .. int(verdict[2]) or nil)
end

local admit
do
  -- Not within the heartbeat of a waiter near the head: it may have died long ago.
  local function is_silent(beat) return math.floor(beat) - now <= HEARTBEAT * (beat % 1 * 4) end

  -- Leaves the queue until it asks again with its ticket, which it is woken to do.
  local function pass_by(owner)
    remove_waiter(owner)
    -- What else is known of the owner goes with its tombstone.
    if stamp_of(owner) > 0 then add_tombstone(owner, EXPIRED) end
    wake(owner, 'look')
  end

  -- Grants to the waiters in front as far as they fit, and drops dead ones on the way, and those whose work is done.
  -- `excluded` has just cancelled its grant and would get it again at once.
  function admit(excluded)
    if n_queue == 0 then return end
    local ADMIT = 64  -- granted by one script, or found to be done
    for _ = 1, ADMIT do
      local head = call('ZRANGE', QUEUE, 0, 0)[1]
      if not head then return end
      local line = read_line(head)
      local what = once_of(line)
      local verdict = what and decided(what)
      local beat = tonumber(call('ZSCORE', ALIVE, head) or 0)
      if not line or beat <= now then
        remove_waiter(head)
        add_tombstone(head, EXPIRED)
      elseif verdict then
        dismiss_as_done(head, line.record, verdict)
      elseif head == excluded or not fits(line.limit) then
        return
      elseif is_silent(beat) then
        pass_by(head)
      else
        call('ZREM', QUEUE, head)
        call('ZREM', ALIVE, head)
        line.state = 'granted'
        grant(head, line, now + CLAIM, stamp_of(head))
        granted[#granted + 1] = head
        wake(head, 'granted')
      end
    end
    must_retry = true
  end
end
