-- inspect of rlock at commit 82714a8, the last one that stored no version words: as it was, without its comments.
local holders_from, holders_page, waiters_from, waiters_page = unpack(ARGV)
local after = '(' .. int(now)
local function page_of_holders()
  local page = {}
  local owners = call('ZRANGEBYSCORE', HOLDERS, after, '+inf', 'LIMIT', holders_from, holders_page)
  for i, owner in ipairs(owners) do page[i] = describe(owner) end
  return page
end
local function page_of_waiters()
  local page = {}
  if tonumber(waiters_page) == 0 then return page, 0 end
  local last = waiters_from + waiters_page - 1
  local places = call('ZRANGE', QUEUE, waiters_from, int(last), 'WITHSCORES')
  for i = 1, #places, 2 do
    local owner, line = places[i], read_line(places[i])
    if line and tonumber(call('ZSCORE', ALIVE, owner) or 0) > now then
      page[#page + 1] = {owner, line.limit, line.since, now - line.since,
                         line.record, tonumber(places[i + 1])}
    end
  end
  return page, call('ZCARD', QUEUE) > last + 1 and 1 or 0
end
local live = call('ZCOUNT', HOLDERS, after, '+inf')
local waiters, more_waiters = page_of_waiters()
return {call('EXISTS', META, HOLDERS, QUEUE) > 0 and 1 or 0, live, page_of_holders(),
        call('ZCOUNT', ALIVE, after, '+inf'), waiters,
        live > holders_from + holders_page and 1 or 0, more_waiters}
