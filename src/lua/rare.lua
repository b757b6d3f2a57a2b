-- What most requests do not need: these functions are made when the first of them is called.
local function rare()
  setmetatable(s, nil)
  local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY, NEVER, ONCE = unpack(KEYS)
  local call, now, now_us, meta = redis.call, s.now, s.now_us, s.meta
  if not s.read_line then several() end
  -- (the files that are listed with this one)
  setmetatable(s, {__index = function(_, name) error('no field ' .. name) end})
end
setmetatable(s, {__index = function(_, name)
  rare()
  return s[name]
end})

