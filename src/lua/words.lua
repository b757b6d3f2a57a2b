-- include: begin
-- The only form in which a lock's facts are stored as text: `name=value name=value | record`.
local NUMBERS = {
  limit = true, token = true, since = true, ttl = true, min_hold = true, slot = true, span = true, asked = true, max = true,
  kept = true, granted = true, ended = true, failures = true, failed = true, ends = true, times = true, first = true,
  done = true, superseded = true, renewed = true, last = true, at = true, ticket = true,
}

local function read_words(text)
  local bar = string.find(text, '| ', 1, true)
  if not bar then return {record = ''} end
  local facts = {record = string.sub(text, bar + 2)}
  for name, value in string.gmatch(string.sub(text, 1, bar - 1), '(!?[%w_]+)=(%S*)') do
    facts[name] = NUMBERS[name] and tonumber(value) or value
  end
  return facts
end

local function words_of(facts)
  local words = {}
  for name, value in pairs(facts) do
    if name ~= 'record' then words[#words + 1] = name .. '=' .. int(value) end
  end
  return table.concat(words, ' ') .. ' | ' .. facts.record
end

-- A reply in the form that the client reads: the items of a list, then each name and its value; nested tables in the same way.
local function reply_of(value)
  if type(value) ~= 'table' then return value end
  local list = {}
  for _, item in ipairs(value) do list[#list + 1] = reply_of(item) end
  for name, item in pairs(value) do
    if type(name) == 'string' then
      list[#list + 1] = name
      list[#list + 1] = reply_of(item)
    end
  end
  return list
end
