-- forget: removes what was marked as done, and has no mark written for what ended before.
-- ARGV: a field of ONCE, or '' for all of them; over a quorum up to which token, else 0
-- Returns: forgotten marks
local field, given = unpack(ARGV)

if older then return older end
if not memory and n_once == 0 and (given or '0') == '0' then return {'forgotten', 0} end
touch()

-- What is running now counts when it succeeds: its token is greater than that of all that ended.
local function last_ended()
  local holder = folded and lone_owner or call('ZRANGE', HOLDERS, 0, 0)[1]
  local line = holder and read_line(holder)
  -- Where only nested runs go on, the run that has this token has ended.
  if n_holders == 1 and line and line.state ~= 'cooldown' and live_entries(line)['0'] then return line.token - 1 end
  return math.max(meta.last, now_us)
end

local through, marks = (given or '0') ~= '0' and agreed(given) or last_ended(), 0
if field ~= '' then
  local what, mark = {field = field, span = 0}, read_mark(field)
  if mark.ended > 0 and mark.token <= through then marks = 1 end
  if mark.ended == 0 or marks == 1 then
    write_mark(what, {kept = 0, token = math.max(through, mark.token), asked = 0, granted = 0, ended = 0, failures = 0,
                      failed = 0, record = '', new = mark.new})
  end
else
  local all, old = n_once > 0 and call('HGETALL', ONCE) or {}, {}
  for i = 1, #all, 2 do
    local token, ended = string.match(all[i + 1], '^1 %d+ (%d+) %d+ %d+ (%d+) ')
    -- The token of `newest` is a number that a user chose; `waits` is of a waiter, not of what was done.
    if all[i] == 'newest' or all[i] ~= 'waits' and tonumber(token or 0) <= through then
      old[#old + 1] = all[i]
      if ended ~= '0' then marks = marks + 1 end
    end
  end
  if #old > 0 then call('HDEL', ONCE, unpack(old)) end
  words = string.gsub(words, ' forgotten=%d+', '') .. ' forgotten=' .. int(math.max(through, forgotten_token()))
end
-- Later tokens are greater.
write_memory(int(math.max(meta.last, through)), last_grant, last_exclusive, old_head)
return {'forgotten', marks}
