-- force_unlock: an operator breaks a lock. A holder that responds is revoked, and counts until it confirms or its
-- lease ends; one that does not respond is freed at once, and with `now` every holder is.
-- ARGV: confirmed|now, note (who does it and why), then owner and token of each that is to be broken; token 0: any
-- Returns: forced holders counting next-or-false broken-before | free | nomatch | more
--          (broken-before: the owners that this very request, known by its note, had broken; its reply was lost)
local when, note = ARGV[1], ARGV[2]

if older then return older end
touch()
unfold()
sweep()
if must_retry then
  finish()
  return with_wakes({'more'})
end

-- The run of a cool-down is in the history already: its row gets the note.
local function note_cooldown(line)
  local at, row = row_of(line.token)
  local before, result, record = string.match(row or '', '^(run %d+ %d+ %d+ %l+ )([^ +]+) (.*)$')
  if before then call('LSET', HISTORY, at, before .. with_note(result, note) .. ' ' .. record) end
end

local function break_hold(owner)
  local line = read_line(owner)
  if call('HEXISTS', WHO, '!' .. owner) == 0 then call('HSET', WHO, '!' .. owner, note) end
  wake(owner, 'revoked')
  if line and line.responsive ~= '0' and when ~= 'now' then
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

-- The holders of this owner: itself, or the cool-down that it left.
local function holders_of(owner, token)
  local found = {}
  for _, holder in ipairs({owner, '~' .. owner}) do
    local line = read_line(holder)
    if held_until(holder) and (token == '0' or (line and int(line.token) == token)) then
      found[#found + 1] = holder
    end
  end
  return found
end

-- The same note means that this request was carried out before, and its reply was lost.
local function broken_before(owner)
  if note == '' then return false end
  for _, holder in ipairs({owner, '~' .. owner}) do
    if tombstone(holder) == FORCED and note_of(holder) == note then return true end
  end
  return false
end

local broken, counting, before = {}, {}, {}
local free = n_holders == 0
for i = 3, #ARGV, 2 do
  local found = holders_of(ARGV[i], ARGV[i + 1])
  for _, holder in ipairs(found) do
    broken[#broken + 1] = describe(holder)
    if break_hold(holder) then counting[#counting + 1] = holder end
  end
  if #found == 0 and broken_before(ARGV[i]) then before[#before + 1] = ARGV[i] end
end
if #broken > 0 then admit() end
finish()
if #broken == 0 and #before == 0 then return with_wakes({free and 'free' or 'nomatch'}) end
return with_wakes({'forced', broken, counting, granted[1] or false, before})
