-- include: holders
-- The cool-down that keeps a lock held after a run, until its min-hold has passed.

-- Returns the line of the cool-down that follows a lease with this line, and its end; nil if none follows. If the clock was set back since
-- the lease began, its min-hold counts from now.
local function after(line)
  local ends = math.min(line.since, now) + line.min_hold
  if line.state ~= 'held' or ends <= now then return nil end
  return {state = 'cooldown', limit = line.limit, token = line.token, since = line.since, ttl = 0, min_hold = 0, responsive = '0',
          slot = line.slot, record = line.record}, ends
end

-- Stores the cool-down that follows a lease, if one does. It replaces an earlier cool-down of this owner.
local function start(owner, line)
  local cooldown, ends = after(line)
  if cooldown then holders.store('~' .. owner, cooldown, math.max(ends, holders.held_until('~' .. owner) or 0)) end
end

return {after = after, start = start}
