-- Which of several holders one is: the word `slot` of its line, the least number from 1 that no other holder has. Where a
-- holder fits, one is free up to its own limit.
local slots_used

local function slot_of(line_words) return tonumber(string.match(line_words or '', ' slot=(%d+)') or 0) end

local function used_slots()
  if slots_used then return slots_used end
  slots_used = {}
  local fields = n_holders > 0 and call('ZRANGE', HOLDERS, 0, -1) or {}
  for i, owner in ipairs(fields) do fields[i] = '+' .. owner end
  local lines = #fields > 0 and call('HMGET', WHO, unpack(fields)) or {}
  for i = 1, #fields do slots_used[slot_of(lines[i] or '')] = true end
  return slots_used
end

-- The words of a holder's line, with this slot.
local function with_slot(line_words, slot)
  line_words = string.gsub(line_words or '', ' slot=%d+', '')
  if slot > 0 then line_words = line_words .. ' slot=' .. int(slot) end
  return line_words
end

local function take_slot(line)
  local slot = 0
  if line.limit > 1 and line.limit <= MOST_SLOTS then
    local used = used_slots()
    slot = 1
    while used[slot] do slot = slot + 1 end
    used[slot] = true
  end
  line.words = with_slot(line.words, slot)
end

