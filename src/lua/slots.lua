-- include: holders words
-- Whether one more holder fits, and which slot it gets.

local function are_numbered(limit) return limit > 1 and limit <= MOST_SLOTS end

-- Returns the slots of the holders, each as an index, and `unknown` if the line of a holder was deleted: its renewal writes the slot again.
local function used()
  local owners, taken = call('ZRANGE', HOLDERS, 0, -1), {}
  for i, text in ipairs(#owners > 0 and call('HMGET', WHO, unpack(owners)) or {}) do
    local line = text and words.read(text)
    if line and line.slot then
      taken[line.slot] = true
    elseif owners[i] ~= CLOSED and (not line or are_numbered(line.limit)) then
      taken.unknown = true
    end
  end
  return taken
end

-- Returns whether one more holder with this limit stays within the limits of all holders, its own included. A closure does not count for
-- an exempt owner (PASSES).
local function fits(limit, passes)
  local others = holders.count()
  if others > 0 and holders.closed_until() then
    if not passes then return false end
    others = others - 1
  end
  if others == 0 then return true end
  if limit == 1 or call('ZCARD', LIMITS) < others then return false end  -- it is exclusive, or one of them is
  local least = tonumber(call('ZRANGE', LIMITS, 0, 0, 'WITHSCORES')[2])
  if others + 1 > math.min(limit, least) then return false end
  return not (are_numbered(limit) and used().unknown)
end

return {are_numbered = are_numbered, used = used, fits = fits}
