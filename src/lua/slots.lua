-- The slots that holders have, and whether one more holder fits.

function s.is_numbered(limit) return limit > 1 and limit <= MOST_SLOTS end

function s.used_slots()
  if s.slots_used then return s.slots_used end
  s.slots_used = {}
  if s.lone then
    s.slots_used[s.slot_of(s.lone)] = true
    return s.slots_used
  end
  local fields = {}
  for _, owner in ipairs(s.n_holders > 0 and call('ZRANGE', HOLDERS, 0, -1) or {}) do
    if owner ~= CLOSED then fields[#fields + 1] = '+' .. owner end
  end
  local lines = #fields > 0 and call('HMGET', WHO, unpack(fields)) or {}
  for i = 1, #fields do
    s.slots_used[lines[i] and tonumber(string.match(lines[i], ' slot=(%d+)') or 0) or 'unknown'] = true
  end
  return s.slots_used
end

-- The words of a holder's line, with this slot.
function s.with_slot(line_words, slot)
  line_words = string.gsub(line_words, ' slot=%d+', '')
  return slot > 0 and line_words .. ' slot=' .. slot or line_words
end

-- Whether one more holder with this limit stays within the limits of all holders, its own included. The slot of a holder
-- whose line was deleted is known once it has renewed. A closure does not count for one that passes it.
function s.fits(limit, passes)
  if s.n_holders == 0 then return true end
  local others, least = s.n_holders, s.lone and s.lone.limit
  if not least then
    local two = call('ZRANGE', LIMITS, 0, 1, 'WITHSCORES')
    local closed = passes and s.closed_until()
    if closed then others = others - 1 end
    least = tonumber(two[closed and two[1] == CLOSED and 4 or 2] or limit)
  end
  return others + 1 <= math.min(limit, least) and not (s.is_numbered(limit) and s.used_slots().unknown)
end
