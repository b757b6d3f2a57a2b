-- inspect: one page of the state of a lock. Reads only: holders whose leases have ended are left out, not swept, and their
-- runs are listed and counted as the next script that writes will do it.
-- ARGV: first holder, holders per page, first waiter, waiters per page; how many rows of the history, else 0
-- Returns: known 0|1, live holders, {holder…}, live waiters, {owner limit since waiting record ticket}…,
--          more holders 0|1, more waiters 0|1, token of the last grant or 0, now,
--          {runs failures losses skips done, failures since the last success, end duration result of the last failure,
--           start end record of the last success, record of the last failure or empty where its row is not the newest
--           run's; 0 and empty where there was none}, {row of the history…}, where it is closed the closure
--           as a holder (it is none, but has a place in the pages)
local holders_from, holders_page, waiters_from, waiters_page = unpack(ARGV)
local rows_wanted = tonumber(ARGV[5] or 0)
local after = '(' .. now

local live = s.lone and (s.first_end > now and 1 or 0) or call('ZCOUNT', HOLDERS, after, '+inf')
local closed_until = s.closed_until()

local function list_holders()
  local page = {}
  if s.lone then
    if live > 0 and tonumber(holders_from) == 0 and tonumber(holders_page) > 0 then page[1] = s.describe(s.lone.owner, s.first_end) end
    return page
  end
  local owners = call('ZRANGEBYSCORE', HOLDERS, after, '+inf', 'WITHSCORES', 'LIMIT', holders_from, holders_page)
  for i = 1, #owners, 2 do
    if owners[i] ~= CLOSED then page[#page + 1] = s.describe(owners[i], tonumber(owners[i + 1])) end
  end
  return page
end

-- Pages count positions in the queue, dead waiters included, so that no live waiter is read twice.
local function list_waiters()
  local page = {}
  if tonumber(waiters_page) == 0 then return page, 0 end
  local last = waiters_from + waiters_page - 1
  local queue_rows = call('ZRANGE', QUEUE, waiters_from, s.int(last), 'WITHSCORES')
  for i = 1, #queue_rows, 2 do
    local owner, line = queue_rows[i], s.read_line(queue_rows[i])
    if line and tonumber(call('ZSCORE', ALIVE, owner) or 0) > now then
      page[#page + 1] = {owner, line.limit, line.since, now - line.since,
                         line.record, tonumber(queue_rows[i + 1])}
    end
  end
  return page, call('ZCARD', QUEUE) > last + 1 and 1 or 0
end

-- The newest rows, as many as are wanted, and some of which one may show the last failure: another run may have been
-- stopped since. Counts the runs that nobody has swept.
local function list_rows()
  local owners, ends = s.ended_holders()
  local added = {}
  for i, owner in ipairs(owners) do
    local line = string.sub(owner, 1, 1) ~= '~' and s.read_line(owner)
    local row = line and s.run_row(owner, line, s.lapse_of(line), '-', tonumber(ends[i]))
    if row then added[#added + 1] = {row, s.line_word(line, 'counted') and 'run ' .. line.token .. ' '} end
  end
  local failed = string.find(s.words, ' failed=', 1, true) and 4 or 0
  local most = math.min(math.max(rows_wanted, failed), s.keep)
  local rows = most > 0 and call('LRANGE', HISTORY, 0, most - 1) or {}
  for _, pair in ipairs(added) do
    local row, beginning = unpack(pair)
    local at
    for place, other in ipairs(beginning and rows or {}) do
      if string.sub(other, 1, #beginning) == beginning then at = place end
    end
    if at then rows[at] = row else table.insert(rows, 1, row) end
  end
  while #rows > most do table.remove(rows) end
  return rows
end

-- The record in the row of the run that ended at this time.
local function record_of_end(rows, wanted)
  for _, row in ipairs(rows) do
    local ends, result, rest = string.match(row, '^run %d+ %d+ (%d+) %l+ (%S+) (.*)$')
    local note = string.match(result or '', '%+(%d+)$')
    if ends and ends == wanted then return string.sub(rest, note and note + 2 or 1) end
  end
  return ''
end

-- It comes after list_rows(), which counts the runs that it adds.
local function read_counts(rows)
  local counts = {}
  for i, name in ipairs({'runs', 'failures', 'losses', 'skips', 'done', 'streak'}) do
    counts[i] = tonumber(string.match(s.words, ' ' .. name .. '=(%d+)') or 0)
  end
  local failed_at, failed_took, how = string.match(s.words, ' failed=(%d+),(%d+),(%S+)')
  local since, ended, record = string.match(s.last_success, '^|run %d+ (%d+) (%d+) %l+ %S+ (.*)$')
  counts[7], counts[8], counts[9] = tonumber(failed_at or 0), tonumber(failed_took or 0), how or ''
  counts[10], counts[11], counts[12] = tonumber(since or 0), tonumber(ended or 0), record or ''
  counts[13] = record_of_end(rows, failed_at)
  return counts
end

local waiters, more_waiters = list_waiters()
local rows = list_rows()
local counts = read_counts(rows)
return {call('EXISTS', META, HOLDERS, QUEUE) > 0 and 1 or 0, live - (closed_until and 1 or 0), list_holders(),
        call('ZCOUNT', ALIVE, after, '+inf'), waiters,
        live > holders_from + holders_page and 1 or 0, more_waiters, tonumber(meta.grant), now, counts, rows_wanted > 0 and rows or {},
        closed_until and s.describe(CLOSED, closed_until) or false}
