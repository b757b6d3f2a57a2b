-- What remains of a run that has ended: its row in the history, the counters, and a tombstone.

-- Scores are keep-until * 16 + kind. Where an owner ended twice the larger kind and the later time stay. BEFORE: its score
-- before, if that is known.
function s.add_tombstone(owner, kind, lease_end, before)
  if before == nil then before = call('ZSCORE', RELEASED, owner) end
  local kept_until = math.max(now + TOMBSTONE, lease_end or 0, before and math.floor(before / 16) or 0)
  call('ZADD', RELEASED, kept_until * 16 + (before and math.max(kind, s.kind_of(before) or kind) or kind), owner)
  s.released_moved = true
end

-- A row of HISTORY: its kind, numbers, and the record of the owner. AT: the place of the row that it replaces, or nil.
function s.write_history(row, at)
  if s.keep == 0 then return call('DEL', HISTORY) end
  if at then return call('LSET', HISTORY, at, row) end
  local rows = call('LPUSH', HISTORY, row)
  if rows > s.keep then call('LTRIM', HISTORY, 0, s.keep - 1) end
  if rows == 1 then call('PEXPIREAT', HISTORY, now + META_LIFE) end
end

-- Counters are words of META: runs, failures, losses, skips, done; streak: failures since the last success.
function s.count(name)
  local before, number, after = string.match(s.words, '^(.- ' .. name .. '=)(%d+)(.*)$')
  s.words = number and before .. number + 1 .. after or ' ' .. name .. '=1' .. s.words
end

-- Counts a run that has ended at ENDS, and alone decides whether it has a row. Returns its row, `run TOKEN SINCE END HOW
-- RESULT RECORD` (HOW is released, expired or forced), and whether it was counted before. A grant that was never claimed
-- ran nothing and leaves no row; nothing is known of a holder whose line was deleted. It writes nothing, because inspect
-- counts runs that nobody has swept yet.
function s.run_row(owner, line, how, result, ends)
  if not line or line.state == 'granted' or line.token == '0' then return nil end
  local last_sign, noted, counted = ends, nil, nil
  if how == 'expired' then  -- it died: when its lease was last renewed
    last_sign = math.max(line.since, ends - line.ttl)
    result = 'renewed:' .. last_sign
  end
  if line.words ~= '' then
    result = string.match(line.words, ' result=(%S+)') or result
    counted = string.match(line.words, ' counted=(%S+)')
  end
  noted = how == 'forced' and s.with_note(result, s.note_of(owner)) or result
  local row = 'run ' .. line.token .. ' ' .. line.since .. ' ' .. ends .. ' ' .. how .. ' ' .. noted .. ' ' .. line.record
  if result == 'exit:0' and how == 'released' then
    s.last_success = '|' .. (#row <= LONGEST_KEPT and row or string.match(row, '^%l+ %d+ %d+ %d+ %l+ %S+ '))
    if string.find(s.words, ' streak=', 1, true) then s.words = string.gsub(s.words, ' streak=%d+', '') end
  elseif result ~= '-' and result ~= 'stopped' or how ~= 'released' then
    s.count_failure(ends, last_sign - line.since, how, result, counted)
  end
  if not counted then s.count('runs') end
  s.changed = true
  return row, counted
end

function s.note_run(owner, line, how, result, ends)
  local row, counted = s.run_row(owner, line, how, result, ends or now)
  if row then s.write_history(row, counted and s.row_of(line.token)) end
end

function s.remove_holder(owner)
  s.slots_used = false
  if s.lone then
    call('DEL', HOLDERS)
    s.lone, s.n_holders, s.present = false, 0, 0
    return
  end
  s.sole_end, s.holders_moved = false, true
  if s.n_holders == 1 and owner == s.first_holder then
    call('DEL', HOLDERS, LIMITS)
    s.n_holders = 0
    return
  end
  s.n_holders = s.n_holders - call('ZREM', HOLDERS, owner)
  call('ZREM', LIMITS, owner)
end

