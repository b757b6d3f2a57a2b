-- include: holders lines entry_list words
-- Holders as replies show them.

-- Returns a holder in the form of a reply: its line, with the number of its entries instead of the entries, its owner, how long it has held
-- the lock, and how long its lease lasts. The owner of a closure is its id.
local function of(owner, ends, line)
  local holder, entries = line or lines.read(owner), 0
  for _ in pairs(entry_list.live(holder)) do entries = entries + 1 end
  holder.owner = owner == CLOSED and (holder.id or '') or string.gsub(owner, '^~', '')
  holder.held, holder.left, holder.entries = now - holder.since, ends - now, math.max(1, entries)
  holder.needs = words.unknown_rules(holder)
  return holder
end

-- Returns a live holder that is not a closure, or false.
local function some_holder()
  local two = call('ZRANGEBYSCORE', HOLDERS, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 2)
  local at = two[1] == CLOSED and 3 or 1
  return two[at] and of(two[at], tonumber(two[at + 1])) or false
end

-- Returns why the lock is not granted now: the lock is closed and the owner is not exempt, or the lock is held.
local function obstacle(passes)
  local ends = not passes and holders.closed_until()
  return ends and of(CLOSED, ends) or some_holder()
end

return {of = of, some_holder = some_holder, obstacle = obstacle}
