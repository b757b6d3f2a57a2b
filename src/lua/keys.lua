-- How members are added to the keys, and when the keys expire.

-- The keys with a new member, for expire(): they may be new themselves and then have no expiry.
local grown = {}
local function note_new(key) grown[key] = true end
local function put_score(key, score, member) if call('ZADD', key, score, member) == 1 then grown[key] = true end end
local latest_stored = 0  -- the latest end of a lease that this script stored
local function put_lease(owner, ends)
  latest_stored = math.max(latest_stored, ends)
  put_score(HOLDERS, int(ends), owner)
end
local function put_text(key, field, text) if call('HSET', key, field, text) == 1 then grown[key] = true end end

-- Begins the writes of a script that must work even if memory is full: the server does not refuse PEXPIREAT, nor the writes after it.
local function touch() call('PEXPIREAT', META, math.max(memory.expires, now + KEPT)) end

local function save_memory()
  local changed, deleted = {}, {}
  for name, value in pairs(memory) do
    if value == false then
      deleted[#deleted + 1] = name
    elseif value ~= stored[name] then
      changed[#changed + 1] = name
      changed[#changed + 1] = int(value)
    end
  end
  if #changed > 0 then call('HSET', META, unpack(changed)) end
  for _, name in ipairs(deleted) do call('HDEL', META, name) end
end

-- Returns the latest end of a lease. A script that found at most one holder need not ask, because it knows that lease and those that it
-- stored. If it has ended the latest of them since, the result is too late, which does no damage: the expiry never becomes earlier.
local function latest_end()
  if at_start.holders > 1 then return tonumber(call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2] or 0) end
  return math.max(latest_stored, at_start.holders == 1 and at_start.first_end or 0)
end

-- All keys expire together, 30 days after the last use, lease, min-hold and tombstone. They are set up to an hour later, so that scripts
-- move them only once an hour; a key that may be new gets the same time. The memory comes last, because if the ACL denies HSET, the
-- other keys have an expiry already.
local function expire()
  local last_lease = latest_end()
  local needed = math.max(now, last_lease, memory.lasts) + KEPT
  local must_move = needed > memory.expires
  if must_move then memory.expires = needed + HOUR end
  for _, key in ipairs({HOLDERS, LIMITS, QUEUE, ALIVE, WHO, RELEASED, HISTORY}) do
    if must_move or grown[key] then call('PEXPIREAT', key, int(memory.expires)) end
  end
  save_memory()
  if must_move then call('PEXPIREAT', META, int(memory.expires)) end
end

return {note_new = note_new, put_score = put_score, put_text = put_text, put_lease = put_lease, touch = touch, expire = expire}
