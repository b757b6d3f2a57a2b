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

-- skip COUNT FIRST LAST RECORD. All skips between two runs share a row, so that they never push runs out. Where `done` of
-- them were skipped since the work was done, COUNT is `count/done`.
local function note_skip(record, is_done)
  count(is_done and 'done' or 'skips')
  local newest = call('LINDEX', HISTORY, 0) or ''
  local count, done, first = string.match(newest, '^skip (%d+)/?(%d*) (%d+) ')
  done = (tonumber(done) or 0) + (is_done and 1 or 0)
  local row = table.concat({'skip', int((count or 0) + 1) .. (done > 0 and '/' .. int(done) or ''), first or int(now),
                            int(now), record}, ' ')
  if not count then return write_history(row) end
  call('LSET', HISTORY, 0, row)
  call('PEXPIREAT', HISTORY, int(now + META_LIFE))
end

