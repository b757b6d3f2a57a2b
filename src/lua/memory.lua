-- include: begin
-- META: what a lock remembers while no owner holds it. A number is 0 and a text is empty if nothing is stored.
local memory = {
  form = FORM,                           -- of everything that is stored; a script of another form stops
  last = 0,                              -- the last number that was issued
  grant = 0, exclusive = 0,              -- tokens of the last grant, and of the last exclusive one
  created = 0,                           -- the number at which this memory began
  lasts = 0,                             -- the latest end of a min-hold or a tombstone: the keys live longer
  expires = 0,                           -- when the keys end
  head = NOBODY,                         -- of the queue
  keep = RUNS,                           -- rows in the history
  runs = 0, failures = 0, losses = 0, skips = 0, superseded = 0, done = 0,  -- counters
  streak = 0,                            -- failures since the last success
  failed_at = 0, failed_took = 0, failed_how = '',          -- of the last failure
  success = '',                          -- the row of the last success
  skipped = '',                          -- the beginning of the last owner that was refused
  forgotten = 0,                         -- everything was forgotten up to this token
}

-- A script keeps the words that it does not know, in META and in lines, so that a later version can store more. A word `!word` must be
-- respected: if a script does not know it, in META the script grants the lock to no owner, and in a waiter's line not to that waiter. The
-- value of the word is the version that knows it. Returns `!word version !word version...`, or nil.
local function unknown_rules(facts)
  local rules = {}
  for name, value in pairs(facts) do
    if string.sub(name, 1, 1) == '!' then rules[#rules + 1] = name .. ' ' .. value end
  end
  return rules[1] and table.concat(rules, ' ')
end

local stored = {}
for name, value in pairs(memory) do stored[name] = value end
for i = 1, #fields, 2 do
  local name, value = fields[i], fields[i + 1]
  if type(memory[name]) == 'number' then value = tonumber(value) or value end
  memory[name], stored[name] = value, value
end
if #fields == 0 then stored.form = nil end
if memory.form ~= FORM then return redis.error_reply('FORM ' .. memory.form) end
local function is_known() return stored.form ~= nil end

local function save_memory()
  local fields = {}
  for name, value in pairs(memory) do
    if value ~= stored[name] then
      fields[#fields + 1] = name
      fields[#fields + 1] = int(value)
    end
  end
  if #fields > 0 then call('HSET', META, unpack(fields)) end
  for name in pairs(stored) do if memory[name] == nil then call('HDEL', META, name) end end
end

-- The first write of a script that must work even if memory is full: the server does not refuse PEXPIREAT, and accepts the writes after it.
local function touch() call('PEXPIREAT', META, math.max(memory.expires, now + KEPT)) end

-- All keys expire together, 30 days after the last use, lease, min-hold and tombstone. They are set up to an hour later, so that scripts
-- move them only once an hour; a key that may be new gets the same time. The memory comes last, because if the ACL denies HSET, the other
-- keys have an expiry already.
local function set_expiry()
  local last_lease = tonumber(call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2] or 0)
  local needed = math.max(now, last_lease, memory.lasts) + KEPT
  local must_move = needed > memory.expires
  if must_move then memory.expires = needed + HOUR end
  for _, key in ipairs({HOLDERS, LIMITS, QUEUE, ALIVE, WHO, RELEASED, HISTORY}) do
    if must_move or grown[key] then call('PEXPIREAT', key, memory.expires) end
  end
  save_memory()
  if must_move then call('PEXPIREAT', META, memory.expires) end
end

-- Numbers come from a counter and a clock, so that neither a loss of data nor a clock that is set back repeats a number.
local function issue()
  memory.last = math.max(memory.last + 1, now_us)
  if memory.created == 0 then memory.created = memory.last end
  return memory.last
end
