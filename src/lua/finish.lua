-- The end of every script that writes: META, expiries, then the wakes, which must come last. The head of the queue is
-- woken to look again where its timer may be too late. The caller needs no wake: it reads the reply.
do
  local head = s.n_queue > 0 and call('ZRANGE', QUEUE, 0, 0)[1] or NOBODY
  if head ~= NOBODY and head ~= caller and
     (head ~= meta.head or s.must_retry or s.holders_moved and s.n_holders > 0 and
      tonumber(s.n_holders == 1 and s.sole_end or call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2] or math.huge) < first_end) then
    s.wake(head, 'look')
  end
  if s.n_queue > NEAR and call('ZCARD', QUEUE) < s.n_queue then s.nudge_near() end

  -- META and HISTORY live 30 days from the last use; their ends move once an hour. META lives as long as each lease.
  local moves = now - meta.kept >= HOUR
  local longest = now + META_LIFE
  if s.changed or memory and (head ~= meta.head or moves) then
    local text = '1 ' .. meta.last .. ' ' .. meta.grant .. ' ' .. meta.exclusive .. ' ' .. meta.created .. ' ' ..
                 meta.hold .. ' ' .. (moves and now or meta.kept) .. ' ' .. head .. s.words .. s.last_success
    if moves then
      if s.several and s.n_holders > 0 then
        longest = math.max(longest, call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2] or 0)
      end
      call('SET', META, text, 'PXAT', longest)
      call('PEXPIREAT', HISTORY, longest)
    else
      call('SET', META, text, 'KEEPTTL')
    end
  end

  local ends = 0
  if s.released_moved then
    if call('ZCOUNT', RELEASED, '-inf', (now - OVERDUE) * 16 + 15) > 0 then s.sweep_tombstones() end
    ends = math.floor((call('ZRANGE', RELEASED, -1, -1, 'WITHSCORES')[2] or 0) / 16)
    call('PEXPIREAT', RELEASED, ends)
  end
  if s.holders_moved and s.n_holders > 0 then
    s.live_until(s.n_holders == 1 and s.sole_end or call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2] or 0)
  end
  local lease = s.lone and s.lone.ends or s.lease_end - META_LIFE
  if lease > now + META_LIFE - HOUR then call('PEXPIREAT', META, math.max(lease, longest)) end
  if s.several then
    -- QUEUE and ALIVE live as long as WHO, so that the lines of the dead are found, and RELEASED, so that their notes and
    -- stamps are. A heartbeat moves the ends so far that the next heartbeats need not.
    local lasting = s.latest_beat > 0 and not s.queue_is_new and ALIVE or WHO
    local left = call('PTTL', lasting)
    if left == -1 then  -- it is new
      if s.n_holders > 0 and s.lease_end == 0 then
        s.live_until(call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2] or 0)
      end
      if s.n_queue > 0 then
        s.latest_beat = math.max(s.latest_beat, call('ZRANGE', ALIVE, -1, -1, 'WITHSCORES')[2] or 0)
      end
    end
    local before = now + left
    local moves_on = s.latest_beat > before or s.queue_is_new and s.n_queue > 0
    ends = math.max(ends, s.lease_end)
    if moves_on then ends = math.max(ends, before, math.ceil(s.latest_beat) + HEARTBEAT) end
    if moves_on or ends > before then
      if not s.released_moved then ends = math.max(ends, now + call('PTTL', RELEASED)) end
      call('PEXPIREAT', WHO, ends)
      call('PEXPIREAT', RELEASED, ends)
      if s.n_queue > 0 then
        call('PEXPIREAT', QUEUE, ends)
        call('PEXPIREAT', ALIVE, ends)
      end
    elseif s.released_moved then
      local is_left = s.n_holders == 0 and head == NOBODY
      call('PEXPIREAT', is_left and WHO or RELEASED, is_left and ends or before)
    end
  end
end

-- The client pushes what a server refused: the reply is then `wakes REPLY owner event...`.
if s.wakes then
  local wakes, unsent = s.wakes, nil
  for i = 1, #wakes, 2 do
    if wakes[i] ~= caller and not s.push_wake(wakes[i], wakes[i + 1]) then
      unsent = unsent or {'wakes', reply}
      unsent[#unsent + 1] = wakes[i]
      unsent[#unsent + 1] = wakes[i + 1]
    end
  end
  return unsent or reply
end
return reply
