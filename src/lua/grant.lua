-- include: holders slots stamps
-- How an owner becomes a holder.

-- Returns a new number, from a counter and a clock, so that neither a loss of data nor a clock that is set back repeats it.
local function issue()
  memory.last = math.max(memory.last + 1, now_us)
  if memory.created == 0 then memory.created = memory.last end
  return memory.last
end

-- Lets the keys live as long as the longest --min-hold.
local function extend_lasts(line)
  if line.min_hold > 0 then memory.lasts = math.max(memory.lasts, line.since + line.min_hold) end
end

-- Records the last grants, with which the token of a lease to be restored is compared.
local function note(token, line)
  memory.grant = math.max(memory.grant, token)
  if line.limit == 1 then memory.exclusive = math.max(memory.exclusive, token) end
  extend_lasts(line)
end

-- Makes `owner` a holder with a new token until `ends`. Its slot is the least number from 1 that no other holder has; if a holder fits, a
-- slot is free up to its own limit. Over a quorum the grant counts only once the majority's token is written back (renew), because the
-- grant of one server does not show that any owner had the lock.
local function make(owner, line, ends, stamp)
  line.token, line.since, line.entries = issue(), now, '0:' .. int(ends)
  if slots.are_numbered(line.limit) then
    local used = slots.used()
    line.slot = 1
    while used[line.slot] do line.slot = line.slot + 1 end
  end
  if stamp == 0 then note(line.token, line) end
  holders.store(owner, line, ends)
  if stamp > 0 then stamps.store(owner, stamp) end
end

return {extend_lasts = extend_lasts, note = note, make = make}
