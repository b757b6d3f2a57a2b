-- What is needed where there are several holders, or somebody waits.
local function several()
  local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META, RELEASED, HISTORY = unpack(KEYS)
  local call, now, now_us, meta = redis.call, s.now, s.now_us, s.meta
  -- (the files that are listed with this one)
end
if s.several then several() end

