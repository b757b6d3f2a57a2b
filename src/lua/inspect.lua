-- inspect: one page of the state of a lock. Reads only: what has ended is left out, not swept.
-- ARGV: first holder, holders per page, first waiter, waiters per page
-- Returns: known 0|1, live holders, {holder…}, live waiters, {owner limit since waiting record ticket}…,
--          more holders 0|1, more waiters 0|1, token of the last grant or 0, now,
--          {runs failures losses skips done, failures since the last success, end duration result of the last failure,
--           start end record of the last success; 0 and empty where there was none}
local holders_from, holders_page, waiters_from, waiters_page = unpack(ARGV)
local after = '(' .. int(now)

local live = folded and (tonumber(lone_end) > now and 1 or 0) or call('ZCOUNT', HOLDERS, after, '+inf')

local function list_holders()
  local page = {}
  if folded then
    if live > 0 and tonumber(holders_from) == 0 and tonumber(holders_page) > 0 then page[1] = describe(lone_owner) end
    return page
  end
  local owners = call('ZRANGEBYSCORE', HOLDERS, after, '+inf', 'LIMIT', holders_from, holders_page)
  for i, owner in ipairs(owners) do page[i] = describe(owner) end
  return page
end

-- Pages count positions in the queue, dead waiters included, so that no live waiter is read twice.
local function list_waiters()
  local page = {}
  if tonumber(waiters_page) == 0 then return page, 0 end
  local last = waiters_from + waiters_page - 1
  local queue_rows = call('ZRANGE', QUEUE, waiters_from, int(last), 'WITHSCORES')
  for i = 1, #queue_rows, 2 do
    local owner, line = queue_rows[i], read_line(queue_rows[i])
    if line and tonumber(call('ZSCORE', ALIVE, owner) or 0) > now then
      page[#page + 1] = {owner, line.limit, line.since, now - line.since,
                         line.record, tonumber(queue_rows[i + 1])}
    end
  end
  return page, call('ZCARD', QUEUE) > last + 1 and 1 or 0
end

local function read_counts()
  local counts = {}
  for i, name in ipairs({'runs', 'failures', 'losses', 'skips', 'done', 'streak'}) do
    counts[i] = tonumber(string.match(words, ' ' .. name .. '=(%d+)') or 0)
  end
  local failed_at, failed_took, how = string.match(words, ' failed=(%d+),(%d+),(%S+)')
  local since, ended, record = string.match(last_success, '^|run %d+ (%d+) (%d+) %l+ %S+ (.*)$')
  counts[7], counts[8], counts[9] = tonumber(failed_at or 0), tonumber(failed_took or 0), how or ''
  counts[10], counts[11], counts[12] = tonumber(since or 0), tonumber(ended or 0), record or ''
  return counts
end

local waiters, more_waiters = list_waiters()
return {call('EXISTS', META, HOLDERS, QUEUE) > 0 and 1 or 0, live, list_holders(),
        call('ZCOUNT', ALIVE, after, '+inf'), waiters,
        live > holders_from + holders_page and 1 or 0, more_waiters, meta.grant, now, read_counts()}
