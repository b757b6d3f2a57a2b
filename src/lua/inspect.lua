-- inspect: reads one page of the state of a lock, and writes nothing. It shows holders whose leases have expired as the next script that
-- writes will leave them: their runs are listed and counted, and their cool-downs have begun.
-- include: memory beats cooldowns history holders lines once queue replies sweep views words
-- Arguments:
--   holders_from, holders   the first holder of a page, and the number of holders
--   waiters_from, waiters   the same for waiters
--   rows                    number of rows of the history
-- Replies: the facts at the end of this file. views.of() makes holders and the closure, and list_waiters() makes waiters.
local holders_from, holders_page = tonumber(args.holders_from or 0), tonumber(args.holders or 0)
local waiters_from, waiters_page = tonumber(args.waiters_from or 0), tonumber(args.waiters or 0)
local rows_wanted = tonumber(args.rows or 0)
local after = '(' .. now
local live, closed = call('ZCOUNT', HOLDERS, after, '+inf'), holders.closed_until()
local ended, ends = sweep.ended_holders()

-- The cool-downs after expired leases that no script has swept.
local unswept_cooldowns = {}
for _, owner in ipairs(ended) do
  local cooldown, cools_until = cooldowns.after(lines.read(owner))
  if cooldown and not holders.held_until('~' .. owner) then unswept_cooldowns[#unswept_cooldowns + 1] = views.of('~' .. owner, cools_until, cooldown) end
end
local live_holders = live + #unswept_cooldowns - (closed and 1 or 0)

local function list_holders()
  local page = holders_from == 0 and holders_page > 0 and unswept_cooldowns or {}
  local owners = call('ZRANGEBYSCORE', HOLDERS, after, '+inf', 'WITHSCORES', 'LIMIT', holders_from, holders_page)
  for i = 1, #owners, 2 do
    if owners[i] ~= CLOSED then page[#page + 1] = views.of(owners[i], tonumber(owners[i + 1])) end
  end
  return page
end

-- Returns how long the present holders have held the lock, in sum. A grant that is not claimed and a holder whose line was deleted do not
-- count.
local function held_so_far(page)
  local sum = 0
  local function add(line)
    local counts = (line.state == 'held' or line.state == 'revoked') and not line.unclaimed and line.token > 0
    if counts then sum = sum + history.held_for(line, now) end
  end
  for _, holder in ipairs(page) do add(holder) end
  if holders_from == 0 and live > holders_page then
    for _, owner in ipairs(call('ZRANGEBYSCORE', HOLDERS, after, '+inf', 'LIMIT', holders_page, -1)) do add(lines.read(owner)) end
  end
  return sum
end

-- Returns how long a waiter has been silent, or 0 unless it is late by half of its slice or more.
local function silence(beat_ends)
  local slices = beats.slices_of(beat_ends)
  local silent = now - (math.floor(beat_ends) - HEARTBEAT * slices)
  return silent > SLICE * slices * 3 / 2 and silent or 0
end

-- Returns a page of waiters, and whether more follow. Pages count positions, with dead waiters, so that no live waiter is read twice.
local function list_waiters()
  local page = {}
  if waiters_page == 0 then return page, false end
  local last = waiters_from + waiters_page - 1
  local queue_rows = call('ZRANGE', QUEUE, waiters_from, int(last), 'WITHSCORES')
  for i = 1, #queue_rows, 2 do
    local owner, line = queue_rows[i], lines.read(queue_rows[i])
    local beat_ends = tonumber(call('ZSCORE', ALIVE, owner) or 0)
    if line and beat_ends > now then
      line.silent = silence(beat_ends)
      line.owner, line.waited, line.ticket = owner, now - line.since, tonumber(queue_rows[i + 1])
      line.needs = words.unknown_rules(line)
      page[#page + 1] = line
    end
  end
  return page, queue.count() > last + 1
end

-- Returns the newest rows: as many as requested, and at least four if a run has failed, because runs may have been stopped since. Counts the
-- runs that no script has swept.
local function list_rows()
  local added = {}
  for i, owner in ipairs(ended) do
    local line = string.sub(owner, 1, 1) ~= '~' and lines.read(owner)
    local row = line and history.run_row(owner, line, sweep.lapse_of(line), '-', tonumber(ends[i]))
    if row then added[#added + 1] = {row, replaces = line.counted} end
  end
  local most = math.min(math.max(rows_wanted, memory.failed_at > 0 and 4 or 0), memory.keep)
  local rows = {}
  for i, text in ipairs(most > 0 and call('LRANGE', HISTORY, 0, most - 1) or {}) do rows[i] = words.read(text) end
  for _, new in ipairs(added) do
    local place
    for i, row in ipairs(new.replaces and rows or {}) do
      if row.kind == 'run' and row.token == new[1].token then place = i end
    end
    if place then rows[place] = new[1] else table.insert(rows, 1, new[1]) end
  end
  while #rows > most do table.remove(rows) end
  return rows
end

local function failed_record(rows)
  for _, row in ipairs(rows) do
    if row.kind == 'run' and row.ended == memory.failed_at then return row.record end
  end
  return ''
end

local waiters, more_waiters = list_waiters()
local rows, page = list_rows(), list_holders()
local success, newest = words.read(memory.success), once.read('newest')
return replies.encoded({
  known = call('EXISTS', META, HOLDERS, QUEUE) > 0, now = now, form = memory.form, last_grant = memory.grant,
  live_holders = live_holders, holders = page, more_holders = live > holders_from + holders_page,
  live_waiters = call('ZCOUNT', ALIVE, after, '+inf'), waiters = waiters, more_waiters = more_waiters,
  closure = closed and views.of(CLOSED, closed), needs = unknown_rules,
  runs = memory.runs, failures = memory.failures, losses = memory.losses, skips = memory.skips,
  superseded = memory.superseded, done = memory.done, held = memory.held + held_so_far(page), waited = memory.waited,
  streak = memory.streak, failed_at = memory.failed_at, failed_took = memory.failed_took, failed_how = memory.failed_how,
  failed_record = failed_record(rows),
  succeeded_from = success.since, succeeded_at = success.ended, succeeded_record = success.record,
  newest = newest.token, newest_at = newest.granted, newest_record = newest.record,
  rows = rows_wanted > 0 and rows or {},
})
