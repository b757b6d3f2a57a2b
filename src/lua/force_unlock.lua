-- force_unlock: an operator breaks a lock. A holder that responds is revoked, and counts until it confirms or its
-- lease ends; one that does not respond is freed at once, and with `now` every holder is.
-- ARGV: confirmed|now, note (who does it and why), then owner and token of each that is to be broken; token 0: any
-- Returns: forced holders counting next-or-false broken-before | free | nomatch | more
--          (broken-before: the owners that this very request, known by its note, had broken; its reply was lost)
local when, note = ARGV[1], ARGV[2]

local caller, reply

-- The run of a cool-down is in the history already: its row gets the note.
local function note_cooldown(line)
  local at, row = s.row_of(line.token)
  local before, result, record = string.match(row or '', '^(run %d+ %d+ %d+ %l+ )([^ +]+) (.*)$')
  if before then call('LSET', HISTORY, at, before .. s.with_note(result, note) .. ' ' .. record) end
end

local function break_hold(owner)
  local line = s.read_line(owner)
  if call('HEXISTS', WHO, '!' .. owner) == 0 then call('HSET', WHO, '!' .. owner, note) end
  s.wake(owner, 'revoked')
  if line.responsive ~= '0' and when ~= 'now' then
    line.state = 'revoked'
    call('HSET', WHO, '+' .. owner, s.line_text(line), '@' .. owner, line.entries)
    return true
  end
  local ends = s.held_until(owner)
  s.remove_holder(owner)
  if line.state == 'cooldown' then note_cooldown(line) else s.note_run(owner, line, 'forced', '-') end
  s.forget(owner)
  s.add_tombstone(owner, FORCED, ends)
  return false
end

-- The holders of this owner: itself, or the cool-down that it left.
local function holders_of(owner, token)
  local found = {}
  for _, holder in ipairs({owner, '~' .. owner}) do
    if s.held_until(holder) and (token == '0' or s.read_line(holder).token == token) then
      found[#found + 1] = holder
    end
  end
  return found
end

-- The same note means that this request was carried out before, and its reply was lost.
local function broken_before(owner)
  if note == '' then return false end
  for _, holder in ipairs({owner, '~' .. owner}) do
    if s.tombstone(holder) == FORCED and s.note_of(holder) == note then return true end
  end
  return false
end

call('LLEN', HISTORY)
call('ZCARD', RELEASED)
s.touch()
s.unfold()
if s.unswept then s.sweep_ended() end
if s.must_retry then
  reply = {'more'}
else
  local broken, counting, before = {}, {}, {}
  local free = not s.some_holder()
  for i = 3, #ARGV, 2 do
    local found = holders_of(ARGV[i], ARGV[i + 1])
    for _, holder in ipairs(found) do
      broken[#broken + 1] = s.describe(holder, s.held_until(holder))
      if break_hold(holder) then counting[#counting + 1] = holder end
    end
    if #found == 0 and broken_before(ARGV[i]) then before[#before + 1] = ARGV[i] end
  end
  if #broken > 0 and s.n_queue > 0 then s.admit() end
  if #broken == 0 and #before == 0 then
    reply = {free and 'free' or 'nomatch'}
  else
    reply = {'forced', broken, counting, s.granted, before}
  end
end

