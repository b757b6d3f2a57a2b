-- include: holders
-- The cool-down that keeps a lock held after a run, until its min-hold has passed.

-- The cool-down that follows a lease with this line, and its end; nil if there is none. If the clock was set back since the lease
-- began, its min-hold counts from now.
local function after(line)
  local ends = math.min(line.since, now) + line.min_hold
  if line.state ~= 'held' or ends <= now then return nil end
  return {state = 'cooldown', limit = line.limit, token = line.token, since = line.since, ttl = 0, min_hold = 0, responsive = '0',
          slot = line.slot, record = line.record}, ends
end

-- After a run that started something, the lock stays held until its min-hold has passed: the cool-down replaces the lease, and an earlier
-- cool-down of this owner.
local function start(owner, line)
  local cooldown, ends = after(line)
  if cooldown then holders.store('~' .. owner, cooldown, math.max(ends, holders.held_until('~' .. owner) or 0)) end
end

return {after = after, start = start}
