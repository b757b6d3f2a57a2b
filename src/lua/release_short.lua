-- release, cancel: ends an owner, whatever it has: a lease, a grant, a position in the queue, nothing. Always leaves a
-- tombstone, so that a late acquire cannot make the owner a holder again. A repeat succeeds.
-- ARGV: owner, entry, released|unused|by_id|cancelled|timed_out|removed|yielded, note (with removed) or the result of
--       the run (with the first three: one word, `exit:7`, `signal:9`, or `-`); with yielded: attempt, ticket or 0.
--       With released, of what is done once: two empty ones, then a field of ONCE, its span, how long ago the owner first
--       asked, its token, succeeded|failed (`-`: a failure that is not counted), its record,
--       how long it had waited for the lock
-- unused: like released, but nothing ran under the lock, so that there is no cool-down. by_id: like released, by
-- somebody who knows the owner's id; refused for a live run, since the next holder would start beside it.
-- yielded: an attempt over a quorum got no majority; what it took here is cancelled, and the owner may come back.
-- Returns: freed mark | kept (by other entries) | left_queue mark | holds (removed only, nothing done)
--          | runs holder (by_id only, nothing done)
--          | absent kind-before note mark   (kind: see KINDS, or unknown)
--          (mark: `marked` as done; `no_room`: marked, and the key that was asked for the longest time ago is forgotten)
local owner, entry, how, note, attempt, ticket, once_field, once_span, asked_ago, given_token,
      outcome, run_record, waited = unpack(ARGV)

if older then return older end
do
  local ended = entry == '0' and (how == 'released' or how == 'unused') and not once_field
  local sole = ended and lone_owner == owner and lone_end
  local waiting = present == 5
  local line, record, token, since
  local confirmed = true
  if sole then
    token, since, record = lone_token, lone_since, lone_record
    confirmed = string.match(lone_words, TRY) ~= 'granted'
  elseif ended and (present == 3 or waiting) then
    local holder = call('ZRANGE', HOLDERS, 0, 1, 'WITHSCORES')
    local entries
    line, entries, record = unpack(call('HMGET', WHO, '+' .. owner, '@' .. owner, owner))
    token, since = string.match(line or '', '^1 held %d+ (%d+) (%d+) %d+ 0 [012]')
    call('ZCARD', LIMITS)
    sole = token and holder[1] == owner and not holder[3] and entries == '0=' .. holder[2] and
           not string.find(line, ' once=', 1, true) and not string.find(line, ' counted=', 1, true) and
           not call('ZSCORE', RELEASED, owner) and holder[2]
  end

  -- The head, if it excludes all others, and so that nothing else is to be done: none has died. Another comes near the
  -- head when this one leaves the queue.
  local head, second, head_line, comer, comer_beat
  if sole and waiting then
    head, second = unpack(call('ZRANGE', QUEUE, 0, 1))
    local found, stamp = unpack(call('HMGET', WHO, '+' .. (head or ''), '#' .. (head or '')))
    local dead = call('ZCOUNT', ALIVE, '-inf', now)
    head_line = {string.match(found or '', '^1 waiting 1 %d+ %d+ (%d+) 0 ([012].*)$')}
    comer = call('ZRANGE', QUEUE, NEAR, NEAR)[1] or ''
    local beat
    beat, comer_beat = unpack(call('ZMSCORE', ALIVE, head or '', comer))
    if not head_line[1] or string.find(found, ' once=', 1, true) or stamp or dead > 0 or not beat or tonumber(beat) % 1 > 0 then sole = false end
  end

  if sole and tonumber(sole) > now then
    call('LLEN', HISTORY)
    local remembered = math.max(now + TOMBSTONE, tonumber(sole))
    local tombstone = remembered * 16 + WAS_RELEASED
    if call('ZCOUNT', RELEASED, (remembered + 1) * 16, '+inf') > 0 then
      remembered = math.floor(call('ZRANGE', RELEASED, -1, -1, 'WITHSCORES')[2] / 16)
    end
    -- Beside a lone hold there is nothing else to sweep with the tombstones.
    local overdue = call('ZCOUNT', RELEASED, '-inf', (now - OVERDUE) * 16)
    if (overdue == 0 or not line) and tonumber(hold_end) <= now then
      call('DEL', HOLDERS, LIMITS)
      if line then call('HDEL', WHO, owner, '+' .. owner, '@' .. owner) end
      if overdue > 0 then
        call('ZREM', RELEASED, unpack(call('ZRANGEBYSCORE', RELEASED, '-inf', now * 16 + 15, 'LIMIT', 0, SWEEP)))
      end
      call('ZADD', RELEASED, tombstone, owner)
      call('PEXPIREAT', RELEASED, remembered)
      if confirmed then
        local row = 'run ' .. token .. ' ' .. since .. ' ' .. now .. ' released ' .. note .. ' ' .. (record or '')
        count_run(since, 'released', note, row)
        if keep == 0 then
          call('DEL', HISTORY)
        else
          local rows = call('LPUSH', HISTORY, row)
          if rows == 1 then call('PEXPIREAT', HISTORY, now + META_LIFE) end
          if rows > keep then call('LTRIM', HISTORY, 0, keep - 1) end
        end
      end
      if head then
        local granted = string.format('%.0f', math.max(last + 1, now_us))
        local claim_by = now + CLAIM
        call('ZREM', QUEUE, head)
        call('ZREM', ALIVE, head)
        call('ZADD', HOLDERS, claim_by, head)
        call('ZADD', LIMITS, 1, head)
        call('HSET', WHO, '+' .. head, table.concat({'1 granted 1', granted, now, head_line[1], 0, head_line[2]}, ' '),
             '@' .. head, '0=' .. claim_by)
        write_memory(granted, granted, granted, second or NOBODY)
        call('PEXPIREAT', HOLDERS, claim_by + GRACE)
        call('PEXPIREAT', LIMITS, claim_by + GRACE)
        call('PEXPIREAT', WHO, math.max(claim_by + GRACE, remembered))
      else
        if line then call('PEXPIREAT', WHO, remembered) end
        write_memory(last, last_grant, last_exclusive, NOBODY)
      end
      if head then push_wake(head, 'granted') end
      if second and second ~= old_head then push_wake(second, 'look') end
      if tonumber(comer_beat or 0) % 1 > 0 then push_wake(comer, 'look') end
      return with_wakes({'freed'})
    end
  end
end

