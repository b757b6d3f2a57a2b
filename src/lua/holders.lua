-- include: keys lines
-- HOLDERS, owner to the end of its lease, and LIMITS, owner to the largest number of holders that it allows. A holder that LIMITS does not
-- have is exclusive, and so is one whose limit was deleted, until it renews. A cool-down is the holder ~owner and a closure the holder
-- ~closed, so that nothing else decides whether a lock is free.

local function held_until(owner) return tonumber(call('ZSCORE', HOLDERS, owner) or nil) end

local function count() return call('ZCARD', HOLDERS) end
local function first_end() return tonumber(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2] or math.huge) end

local function store(owner, line, ends)
  -- The limits of holders that somebody deleted do not let another holder share the lock. If the script found none, all are its own. A
  -- closure has no limit there.
  if at_start.limits > 0 and count() == (held_until(CLOSED) and 1 or 0) then call('DEL', LIMITS) end
  keys.put_lease(owner, ends)
  if line.limit > 1 then keys.put_score(LIMITS, line.limit, owner) end
  lines.write(owner, line)
end

local function remove(owner)
  call('ZREM', HOLDERS, owner)
  call('ZREM', LIMITS, owner)
end

-- Returns until when the lock is closed, or nil if it is open.
local function closed_until()
  local ends = held_until(CLOSED)
  return ends and ends > now and ends or nil
end

return {held_until = held_until, count = count, first_end = first_end, store = store, remove = remove,
        closed_until = closed_until}
