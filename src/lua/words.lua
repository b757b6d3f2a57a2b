-- The only form in which a lock's facts are stored as text: `name=value name=value | record`.

local NUMBERS = {
  limit = true, token = true, since = true, ttl = true, min_hold = true, slot = true, span = true, asked = true, max = true,
  kept = true, granted = true, ended = true, failures = true, failed = true, ends = true, times = true, first = true,
  done = true, superseded = true, renewed = true, last = true, at = true, ticket = true, counted = true, waited = true,
}

local function read(text)
  local bar = string.find(text, '| ', 1, true)
  if not bar then return {record = ''} end
  local facts = {record = string.sub(text, bar + 2)}
  for name, value in string.gmatch(string.sub(text, 1, bar - 1), '([^= ]+)=(%S*)') do
    facts[name] = NUMBERS[name] and tonumber(value) or value
  end
  return facts
end

local function text_of(facts)
  local list = {}
  for name, value in pairs(facts) do
    if name ~= 'record' then list[#list + 1] = name .. '=' .. int(value) end
  end
  return table.concat(list, ' ') .. ' | ' .. facts.record
end

-- Returns the rules of a line that this version does not know, or nil: see memory.lua.
local function unknown_rules(facts)
  local rules = {}
  for name, value in pairs(facts) do
    if string.sub(name, 1, 1) == '!' then rules[#rules + 1] = name .. ' ' .. value end
  end
  return rules[1] and table.concat(rules, ' ')
end

return {read = read, text_of = text_of, unknown_rules = unknown_rules}
