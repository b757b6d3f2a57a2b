-- The history: what was held and skipped, newest first.

local function note_of(owner) return call('HGET', WHO, '!' .. owner) or '' end

-- A row of HISTORY: its kind, numbers, and the record of the owner.
local function write_history(row)
  if keep == 0 then return call('DEL', HISTORY) end
  if call('LPUSH', HISTORY, row) > keep then call('LTRIM', HISTORY, 0, keep - 1) end
  call('PEXPIREAT', HISTORY, int(now + META_LIFE))
end

-- Where an operator broke the lock or its cool-down, RESULT ends in `+` and the length of the operator's note, and the
-- note stands before the record.
local function with_note(result, note) return note == '' and result or result .. '+' .. #note .. ' ' .. note end

-- run TOKEN SINCE END HOW RESULT RECORD. A grant that was never claimed ran nothing and leaves no row.
local function note_run(owner, line, how, result)
  if not line or line.state == 'granted' then return end
  local noted = with_note(result, how == 'forced' and note_of(owner) or '')
  local row = table.concat({'run', int(line.token), int(line.since), int(now), how, noted, line.record}, ' ')
  count_run(line.since, how, result, row)
  write_history(row)
end

-- skip COUNT FIRST LAST RECORD. All skips between two runs share a row, so that they never push runs out.
local function note_skip(record)
  count('skips')
  local newest = call('LINDEX', HISTORY, 0) or ''
  local count, first = string.match(newest, '^skip (%d+) (%d+) ')
  if not count then return write_history('skip 1 ' .. int(now) .. ' ' .. int(now) .. ' ' .. record) end
  call('LSET', HISTORY, 0, 'skip ' .. int(count + 1) .. ' ' .. first .. ' ' .. int(now) .. ' ' .. record)
  call('PEXPIREAT', HISTORY, int(now + META_LIFE))
end

