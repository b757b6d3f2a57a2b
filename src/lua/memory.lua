-- include: begin
-- META: what a lock remembers while no owner holds it. A number is 0 and a text is empty if nothing is stored.
local stored = {
  form = FORM,                           -- of everything that is stored; a script of another form stops
  last = 0,                              -- the last number that was issued
  grant = 0, exclusive = 0,              -- tokens of the last grant, and of the last exclusive one
  created = 0,                           -- the number at which this memory began
  lasts = 0,                             -- the latest end of a min-hold or a tombstone: the keys live longer
  expires = 0,                           -- when the keys end
  head = NOBODY,                         -- of the queue
  keep = RUNS,                           -- rows in the history
  runs = 0, failures = 0, losses = 0, skips = 0, superseded = 0, done = 0,  -- counters
  held = 0, waited = 0,                  -- how long the runs that have ended held the lock and waited for it
  streak = 0,                            -- failures since the last success
  failed_at = 0, failed_took = 0, failed_how = '',          -- of the last failure
  success = '',                          -- the row of the last success
  skipped = '',                          -- the beginning of the last owner that was refused
  forgotten = 0,                         -- everything was forgotten up to this token
}
-- A script keeps the words that it does not know, in META and in lines, so that a later version can store more. A word `!word` must be
-- respected: if a script does not know it, in META the script grants the lock to no owner, and in a waiter's line not to that waiter. The
-- value of the word is the version that knows it.
local unknown_rules  -- of META: `!word version !word version...`, or nil
for i = 1, #fields, 2 do
  local name, value = fields[i], fields[i + 1]
  if type(stored[name]) == 'number' then value = tonumber(value) or value end
  if stored[name] == nil and string.sub(name, 1, 1) == '!' then
    unknown_rules = (unknown_rules and unknown_rules .. ' ' or '') .. name .. ' ' .. value
  end
  stored[name] = value
end
local is_known = #fields > 0

-- Scripts read and change `memory`. It contains only changes, which keys.expire() stores; false deletes a field. What a script has not
-- changed is read from `stored`.
local memory = setmetatable({}, {__index = stored})
if not is_known then stored.form, memory.form = nil, FORM end
if memory.form ~= FORM then return redis.error_reply('FORM ' .. memory.form) end
