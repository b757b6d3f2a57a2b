-- force_unlock: an operator breaks a lock. A holder that responds is revoked, and counts until it confirms or its
-- lease ends; one that does not respond is freed at once, and with `now` every holder is.
-- ARGV: sole|owner|token|every, owner or token or '', confirmed|now, note (who does it and why)
-- Returns: forced holders counting next-or-false | free | nomatch | several n | more
--          (forced without holders: this request had broken its owner before, and its reply was lost)
local target, value, pace, note = unpack(ARGV)

touch()
sweep()
if must_retry then
  finish()
  return with_wakes({'more'})
end

local function is_target(owner)
  if target == 'owner' then return owner == value or owner == '~' .. value end
  if target == 'token' then
    local line = read_line(owner)
    return line and int(line.token) == value
  end
  return true
end

-- The run of a cool-down is in the history already: its row gets the note.
local function note_cooldown(line)
  local mark = 'run ' .. int(line.token) .. ' '
  for i = 0, RUNS - 1 do
    local row = call('LINDEX', HISTORY, i)
    if not row then return end
    local before, result, record = string.match(row, '^(run %d+ %d+ %d+ %l+ )([^ +]+) (.*)$')
    if before and string.sub(row, 1, #mark) == mark then
      call('LSET', HISTORY, i, before .. with_note(result, note) .. ' ' .. record)
      return
    end
  end
end

local function break_hold(owner)
  local line = read_line(owner)
  if call('HEXISTS', WHO, '!' .. owner) == 0 then call('HSET', WHO, '!' .. owner, note) end
  wake(owner, 'revoked')
  if line and line.responsive ~= '0' and pace ~= 'now' then
    line.state = 'revoked'
    call('HSET', WHO, '+' .. owner, line_text(line))
    return true
  end
  local ends = tonumber(call('ZSCORE', HOLDERS, owner))
  remove_holder(owner)
  if line and line.state == 'cooldown' then note_cooldown(line) else note_run(owner, line, 'forced', '-') end
  forget(owner)
  add_tombstone(owner, FORCED, ends)
  return false
end

-- The same note means that this request was carried out before, and its reply was lost.
local function done_before()
  if target ~= 'owner' or note == '' then return false end
  for _, owner in ipairs({value, '~' .. value}) do
    if tombstone(owner) == FORCED and note_of(owner) == note then return true end
  end
  return false
end

local holders = call('ZRANGE', HOLDERS, 0, -1)
local targets = {}
for _, owner in ipairs(holders) do
  if is_target(owner) then targets[#targets + 1] = owner end
end
if #holders == 0 or #targets == 0 or (target == 'sole' and #holders > 1) then
  finish()
  if done_before() then return with_wakes({'forced', {}, {}, false}) end
  if #holders == 0 then return with_wakes({'free'}) end
  if #targets == 0 then return with_wakes({'nomatch'}) end
  return with_wakes({'several', #holders})
end

local broken, counting = {}, {}
for _, owner in ipairs(targets) do
  broken[#broken + 1] = describe(owner)
  if break_hold(owner) then counting[#counting + 1] = owner end
end
admit()
finish()
return with_wakes({'forced', broken, counting, granted[1] or false})
