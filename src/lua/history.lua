-- The history and the counters: what was held and skipped, newest first.

-- The place of the row of the run with this token, and the row.
function s.row_of(token)
  local beginning = 'run ' .. token .. ' '
  for at = 0, s.keep - 1 do
    local row = call('LINDEX', HISTORY, at)
    if not row then return nil end
    if string.sub(row, 1, #beginning) == beginning then return at, row end
  end
end

-- How many rows it keeps from now on.
function s.note_keep(rows)
  if s.keep == rows then return end
  s.words = string.gsub(s.words, ' keep=%d+', '')
  if rows ~= RUNS then s.words = s.words .. ' keep=' .. rows end
  s.changed = true
end

-- Where an operator broke the lock or its cool-down, RESULT ends in `+` and the length of the operator's note, and the
-- note stands before the record.
function s.with_note(result, note) return note == '' and result or result .. '+' .. #note .. ' ' .. note end

-- Each loss is a failure, too; a release without a result (`-`), or of a run that was asked to stop and returned 0
-- (`stopped`), is neither a success nor a failure. A run that was COUNTED when its lease ended is counted no more, but may
-- still be the last success.
function s.count_failure(ends, took, how, result, counted)
  if how ~= 'released' then result = how end
  s.words = string.gsub(s.words, ' failed=%S+', '') .. ' failed=' .. ends .. ',' .. math.max(0, took) .. ',' ..
            (string.match(result, '^[%w:-]+$') or '?')
  if counted then return end
  s.count('streak')
  s.count('failures')
  if how ~= 'released' or result == 'lost' then s.count('losses') end
end

-- skip COUNT FIRST LAST RECORD. All skips between two runs share a row, so that they never push runs out. Where some were
-- skipped since the work was done, or since a newer run superseded them, COUNT is `count/done` or `count/done/superseded`.
-- HOW: `done`, `superseded` or anything else.
function s.note_skip(record, how)
  s.count(how == 'done' and 'done' or 'skips')
  s.changed = true
  local newest = call('LINDEX', HISTORY, 0) or ''
  local times, done, superseded, first = string.match(newest, '^skip (%d+)/?(%d*)/?(%d*) (%d+) ')
  done = (tonumber(done) or 0) + (how == 'done' and 1 or 0)
  superseded = (tonumber(superseded) or 0) + (how == 'superseded' and 1 or 0)
  local kinds = superseded > 0 and '/' .. done .. '/' .. superseded or done > 0 and '/' .. done or ''
  s.write_history('skip ' .. (times or 0) + 1 .. kinds .. ' ' .. (first or now) .. ' ' .. now .. ' ' .. record, times and 0)
end

