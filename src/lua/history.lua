-- include: keys notes words
-- HISTORY: what ran under the lock and who was skipped, and the counters of the memory. A row has the word `kind`, then
--   run: token, since, ended, how (released, expired, forced), result (`exit:7`, `signal:9`, `stopped`, or `-`), renewed (when a
--     run that died was last renewed), owner (of such a run, until it restores or releases the lease), note (of the operator who broke
--     the lock or its cool-down, with %XX in it)
--   skip: times, first, last: skips between two runs share a row, so that they never push runs out; how many of them were done
--     by another and how many superseded
--   close: at, ends; open: at
-- and the record of the owner or the operator.

local function write_text(text, place)
  if memory.keep == 0 then return call('DEL', HISTORY) end
  if place then return call('LSET', HISTORY, place, text) end
  local length = call('LPUSH', HISTORY, text)
  if length == 1 then
    call('PEXPIREAT', HISTORY, now + KEPT)  -- in case the ACL denies a later command
    keys.note_new(HISTORY)
  end
  if length > memory.keep then call('LTRIM', HISTORY, 0, memory.keep - 1) end
end

local function write(row, place) write_text(words.text_of(row), place) end

-- Returns the index and the row of the run with this token, or of this owner.
local function row_of(value, name)
  for place = 0, memory.keep - 1 do
    local text = call('LINDEX', HISTORY, place)
    local row = text and words.read(text)
    if not row then return nil end
    if row.kind == 'run' and row[name or 'token'] == value then return place, row end
  end
end

-- Notes that the lease of this owner cannot be restored any more. Returns whether a row named the owner.
local function settle_row(owner)
  local place, row = row_of(owner, 'owner')
  if not place then return false end
  row.owner = nil
  write(row, place)
  return true
end

-- Returns a note as a word of a row, or nil if it is empty.
local function quoted(note)
  local text = string.gsub(note, '[%c =%%|]', function(c) return string.format('%%%02X', string.byte(c)) end)
  return text ~= '' and text or nil
end

-- Returns how long a lease with this line has held the lock at a time. The time before a restored lease was counted when it expired, and
-- after that nobody held the lock.
local function held_for(line, at) return math.max(0, at - math.max(line.since, line.counted or 0)) end

-- Counts a run. A release without a result (`-`), or of a run that was asked to stop and returned 0 (`stopped`), is neither a success nor a
-- failure. A run that was `counted` when its lease expired is not counted again, but may still be the last success.
local function count_run(row, text, line)
  local released, result = row.how == 'released', row.result
  if released and result == 'exit:0' then
    if #text > LONGEST_KEPT then text = string.match(text, '^.-| ') end
    memory.success, memory.streak = text, 0
  elseif not released or result ~= '-' and result ~= 'stopped' then
    local how = released and string.match(result, '^[%w:-]+$') or not released and row.how or '?'
    memory.failed_at, memory.failed_took, memory.failed_how = row.ended, math.max(0, (row.renewed or row.ended) - row.since), how
    if not line.counted then
      memory.streak = memory.streak + 1
      memory.failures = memory.failures + 1
      if not released or result == 'lost' then memory.losses = memory.losses + 1 end
    end
  end
  memory.held = memory.held + held_for(line, row.ended)
  if line.counted then return end
  memory.runs = memory.runs + 1
  if line.waited then memory.waited = memory.waited + line.waited end
end

-- Counts a run that ended at ENDED, and returns its row and the text of it. Returns nil for a grant that was never claimed, which ran
-- nothing, and for a holder whose line was deleted. Writes nothing, because inspect also counts runs that no script has swept.
local function run_row(owner, line, how, result, ended)
  if not line or line.state == 'granted' or line.unclaimed or line.token == 0 then return nil end
  local row = {kind = 'run', token = line.token, since = line.since, ended = ended, how = how, result = line.result or result,
               record = line.record}
  if how == 'expired' then row.renewed, row.owner = math.max(line.since, ended - line.ttl), owner end
  if how == 'forced' then row.note = quoted(notes.of(owner)) end
  local text = words.text_of(row)
  count_run(row, text, line)
  return row, text
end

local function record_run(owner, line, how, result, ended)
  local row, text = run_row(owner, line, how, result, ended or now)
  if row then write_text(text, line.counted and row_of(line.token)) end
end

-- Counts a skip, and adds it to the newest row. HOW: `done`, `superseded` or anything else.
local function count_skip(record, how)
  local counter = how == 'done' and 'done' or 'skips'
  memory[counter] = memory[counter] + 1
  if how == 'superseded' then memory.superseded = memory.superseded + 1 end
  local newest = words.read(call('LINDEX', HISTORY, 0) or '')
  local joins = newest.kind == 'skip' and newest.times
  local row = joins and newest or {kind = 'skip', times = 0, first = now}
  row.times, row.last, row.record = row.times + 1, now, record
  if how == 'done' or how == 'superseded' then row[how] = (row[how] or 0) + 1 end
  write(row, joins and 0)
end

return {held_for = held_for, write = write, row_of = row_of, quoted = quoted, settle_row = settle_row, run_row = run_row, record_run = record_run, count_skip = count_skip}
