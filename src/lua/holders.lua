-- include: lines
-- HOLDERS, owner to the end of its lease, and LIMITS, owner to the largest number of holders that it allows. A cool-down is the holder
-- ~owner and a closure the holder ~closed, so that nothing else decides whether a lock is free.

local function held_until(owner) return tonumber(call('ZSCORE', HOLDERS, owner) or nil) end

local function store_holder(owner, line, ends)
  put_score(HOLDERS, ends, owner)
  put_score(LIMITS, line.limit, owner)
  write_line(owner, line)
end

local function remove_holder(owner)
  call('ZREM', HOLDERS, owner)
  call('ZREM', LIMITS, owner)
end

-- The cool-down that follows a lease with this line, and its end; nil if there is none. If the clock was set back since the lease
-- began, its min-hold counts from now.
local function cooldown_after(line)
  local ends = math.min(line.since, now) + line.min_hold
  if line.state ~= 'held' or ends <= now then return nil end
  return {state = 'cooldown', limit = line.limit, token = line.token, since = line.since, ttl = 0, min_hold = 0, responsive = '0',
          slot = line.slot, record = line.record}, ends
end

-- After a run that started something, the lock stays held until its min-hold has passed: the cool-down replaces the lease, and an earlier
-- cool-down of this owner.
local function start_cooldown(owner, line)
  local cooldown, ends = cooldown_after(line)
  if cooldown then store_holder('~' .. owner, cooldown, math.max(ends, held_until('~' .. owner) or 0)) end
end

-- Until when the lock is closed; nil if it is open.
local function closed_until()
  local ends = held_until(CLOSED)
  return ends and ends > now and ends or nil
end

-- A holder in the form of a reply: its line, with the number of its entries instead of the entries, its owner, how long it has held the
-- lock, and how long its lease lasts. The owner of a closure is its id.
local function describe(owner, ends, line)
  local holder, entries = line or read_line(owner), 0
  for _ in pairs(live_entries(holder)) do entries = entries + 1 end
  holder.owner = owner == CLOSED and (holder.id or '') or string.gsub(owner, '^~', '')
  holder.held, holder.left, holder.entries = now - holder.since, ends - now, math.max(1, entries)
  holder.needs = unknown_rules(holder)
  return holder
end

-- A live holder that is not a closure, or false.
local function some_holder()
  local two = call('ZRANGEBYSCORE', HOLDERS, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 2)
  local at = two[1] == CLOSED and 3 or 1
  return two[at] and describe(two[at], tonumber(two[at + 1])) or false
end

-- Returns why the lock is not granted now: the lock is closed and the owner is not exempt, or the lock is held.
local function obstacle(passes)
  local ends = not passes and closed_until()
  return ends and describe(CLOSED, ends) or some_holder()
end

local function is_numbered(limit) return limit > 1 and limit <= MOST_SLOTS end

-- The slots of the holders. The slot of a holder whose line was deleted is known once its outer run has renewed.
local function used_slots()
  local owners, used = call('ZRANGE', HOLDERS, 0, -1), {}
  for i, text in ipairs(#owners > 0 and call('HMGET', WHO, unpack(owners)) or {}) do
    local line = text and read_words(text)
    if line and line.slot then
      used[line.slot] = true
    elseif owners[i] ~= CLOSED and (not line or is_numbered(line.limit)) then
      used.unknown = true
    end
  end
  return used
end

-- Whether one more holder with this limit stays within the limits of all holders, its own included. A closure does not count for an owner
-- that may pass it.
local function fits(limit, passes)
  local others, two = n_holders(), call('ZRANGE', LIMITS, 0, 1, 'WITHSCORES')
  if others == 0 then return true end
  local closed = passes and closed_until()
  if closed then others = others - 1 end
  local least = tonumber(two[closed and two[1] == CLOSED and 4 or 2] or limit)
  return others + 1 <= math.min(limit, least) and not (is_numbered(limit) and used_slots().unknown)
end
