-- The entries of a lease, in its line: `id:end,id:end`. Usually there is one, 0; nested runs of other processes have their own.

-- Returns the entries of a line that have not expired, id to end.
local function live(line)
  local entries = {}
  for id, ends in string.gmatch(line.entries or '', '(%w+):(%d+)') do
    if tonumber(ends) > now then entries[id] = tonumber(ends) end
  end
  return entries
end

-- Stores entries in a line, and returns the latest of their ends.
local function set(line, entries)
  local texts, latest = {}, 0
  for id, ends in pairs(entries) do
    texts[#texts + 1] = id .. ':' .. ends
    latest = math.max(latest, ends)
  end
  line.entries = table.concat(texts, ',')
  return latest
end

return {live = live, set = set}
