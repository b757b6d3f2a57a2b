-- The form of replies.

-- Returns a reply as the client reads it: the items of a list, then each name and its value; nested tables in the same way.
local function encoded(value)
  if type(value) ~= 'table' then return value end
  local list = {}
  for _, item in ipairs(value) do list[#list + 1] = encoded(item) end
  for name, item in pairs(value) do
    if type(name) == 'string' then
      list[#list + 1] = name
      list[#list + 1] = encoded(item)
    end
  end
  return list
end

return {encoded = encoded}
