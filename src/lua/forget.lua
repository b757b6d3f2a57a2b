-- forget: removes the marks of what was done. No mark is written any more for a run that ended before.
-- ARGV: a field of ONCE, or '' for all of them; over a quorum up to which token, else 0
-- Returns: forgotten marks failures numbers   (how many fields: with a success, with failures since; with a number that
--          superseded others)
local field, given = unpack(ARGV)

local n_once = call('HLEN', ONCE)
if not memory and n_once == 0 and (given or '0') == '0' then return {'forgotten', 0, 0, 0} end
-- A lease may be longer than the memory would live without it.
local meta_end = now + math.max(META_LIFE, call('PTTL', META))
if memory then
  call('PEXPIREAT', META, meta_end)
  call('PEXPIREAT', HISTORY, meta_end)
  meta.kept = now
end

-- What is running now counts when it succeeds: its token is greater than that of all that ended. A closure does not run,
-- nor does one that has ended and is not swept.
local function last_ended()
  local holders = s.n_holders - (s.held_until(CLOSED) and 1 or 0)
  local holder = holders == 1 and s.some_holder()
  local line = holder and holder[2] ~= 'cooldown' and s.read_line(holder[1])
  -- Where only nested runs go on, the run that has this token has ended.
  if line and line.token ~= '0' and s.live_entries(line)['0'] then return line.token - 1 end
  return math.max(meta.last, now_us)
end

local through = (given or '0') ~= '0' and s.once_part().agreed(given) or last_ended()
local marks, failures, numbers = 0, 0, 0
local function note_forgotten(ended, failed)
  if ended > 0 then marks = marks + 1 end
  if failed > 0 then failures = failures + 1 end
end

if field ~= '' then
  local mark = s.once_part().read_mark(field)
  if mark.ended == 0 or mark.token <= through then
    note_forgotten(mark.ended, mark.failures)
    s.once_part().forget_mark({field = field, span = 0}, mark, through)
  end
else
  local all, old = n_once > 0 and call('HGETALL', ONCE) or {}, {}
  for i = 1, #all, 2 do
    local mark = s.once_part().read_mark(all[i])
    -- The token of `newest` is a number that a user chose; `waits` is of a waiter, not of what was done.
    if all[i] == 'newest' then
      old[#old + 1] = all[i]
      numbers = mark.kept > 0 and 1 or 0
    elseif all[i] ~= 'waits' and mark.token <= through then
      old[#old + 1] = all[i]
      note_forgotten(mark.ended, mark.failures)
    end
  end
  if #old > 0 then call('HDEL', ONCE, unpack(old)) end
  s.words = string.gsub(s.words, ' forgotten=%d+', '') .. ' forgotten=' .. s.int(math.max(through, s.once_part().forgotten_token()))
end
-- Later tokens are greater.
meta.last = s.int(math.max(meta.last, through))
if meta.created == '0' then meta.created = meta.last end
s.changed = true
local caller, reply = nil, {'forgotten', marks, failures, numbers}

