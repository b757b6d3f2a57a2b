-- The history: what was held and skipped, newest first.

local function note_of(owner) return call('HGET', WHO, '!' .. owner) or '' end

-- A row of HISTORY: its kind, numbers, and the record of the owner. AT: the place of the row that it replaces, or nil.
local function write_history(row, at)
  if keep == 0 then return call('DEL', HISTORY) end
  if at then
    call('LSET', HISTORY, at, row)
  elseif call('LPUSH', HISTORY, row) > keep then
    call('LTRIM', HISTORY, 0, keep - 1)
  end
  call('PEXPIREAT', HISTORY, int(now + META_LIFE))
end

-- The place of the row of the run with this token, and the row.
local function row_of(token)
  local beginning = 'run ' .. int(token) .. ' '
  for at = 0, keep - 1 do
    local row = call('LINDEX', HISTORY, at)
    if not row then return nil end
    if string.sub(row, 1, #beginning) == beginning then return at, row end
  end
end

-- How many rows it keeps from now on.
local function note_keep(rows)
  if keep == rows then return end
  words = string.gsub(words, ' keep=%d+', '')
  if rows ~= RUNS then words = words .. ' keep=' .. rows end
end

-- Where an operator broke the lock or its cool-down, RESULT ends in `+` and the length of the operator's note, and the
-- note stands before the record.
local function with_note(result, note) return note == '' and result or result .. '+' .. #note .. ' ' .. note end

-- A word of a holder's line: `result` of a run that has ended while runs nested in it go on, or `counted`: its lease
-- ended before, and was put back.
local function line_word(line, name) return line and string.match(line.words or '', ' ' .. name .. '=(%S+)') end

-- run TOKEN SINCE END HOW RESULT RECORD. A grant that was never claimed ran nothing and leaves no row.
local function note_run(owner, line, how, result)
  if not line or line.state == 'granted' then return end
  local counted = line_word(line, 'counted')
  result = line_word(line, 'result') or result
  local noted = with_note(result, how == 'forced' and note_of(owner) or '')
  local row = table.concat({'run', int(line.token), int(line.since), int(now), how, noted, line.record}, ' ')
  count_run(line.since, how, result, row, counted)
  write_history(row, counted and row_of(line.token))
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
  write_history(row, count and 0)
end

