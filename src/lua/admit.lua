-- The waiters in front of the queue, and how waiters are woken.

-- Grants the lock to the waiters at the head as far as they fit; drops the dead on the way, and those whose work is done.
-- `excluded` has just cancelled its grant and would get it again at once.
function s.admit(excluded)
  if s.n_queue == 0 then return end
  local ADMIT = 64  -- granted by one script, or found to be done
  for _ = 1, ADMIT do
    local head = call('ZRANGE', QUEUE, 0, 0)[1]
    if not head then return end
    local line = s.read_line(head)
    local what = line and string.find(line.words, ' once=', 1, true) and s.once_of(line)
    local verdict = what and s.once_part().decided(what)
    local beat = tonumber(call('ZSCORE', ALIVE, head) or 0)
    if beat <= now then
      s.remove_waiter(head)
      s.add_tombstone(head, EXPIRED)
    elseif not line then
      -- The line was deleted: the next request of the waiter brings it back.
      return s.wake(head, 'look')
    elseif verdict then
      s.dismiss_as_done(head, line.record, verdict)
    elseif head == excluded or s.n_holders > 0 and not s.fits(line.limit, s.line_word(line, 'while_closed')) then
      return
    elseif math.floor(beat) - now <= HEARTBEAT * (beat % 1 * 4) then
      -- It has not asked within the heartbeat of a waiter near the head, and may have died long ago. It leaves the queue,
      -- and is woken to ask again with its ticket. The sweep of its tombstone removes its stamp.
      s.remove_waiter(head)
      if line.stamp > 0 then s.add_tombstone(head, EXPIRED) end
      s.wake(head, 'look')
    else
      call('ZREM', QUEUE, head)
      call('ZREM', ALIVE, head)
      line.state = 'granted'
      s.grant(head, line, now + CLAIM, line.stamp)
      s.granted = s.granted or head
      s.wake(head, 'granted')
      if line.limit == 1 then return end
    end
  end
  s.must_retry = true
end

function s.wake(owner, event)
  local wakes = s.wakes
  if not wakes then
    s.wakes = {owner, event}
    return
  end
  wakes[#wakes + 1] = owner
  wakes[#wakes + 1] = event
end

-- Returns whether the wake was pushed: a server that wants all keys declared refuses, because these lists are not.
function s.push_wake(owner, event)
  local WAKE_LIFE = 10000
  local key = string.sub(HOLDERS, 1, -8) .. 'wake:' .. owner
  local length = redis.pcall('LPUSH', key, event)
  if type(length) == 'table' then return false end
  if length ~= 1 then redis.pcall('LTRIM', key, 0, 0) end
  redis.pcall('PEXPIRE', key, WAKE_LIFE)
  return true
end

