-- forget: removes what was marked as done, and has no mark written for what ended before.
-- ARGV: a field of ONCE, or '' for all of them
-- Returns: forgotten marks
local field = ARGV[1]

if older then return older end
touch()

-- What is running now counts when it succeeds: its token is greater than that of all that ended.
local function last_ended()
  local holder = folded and lone_owner or call('ZRANGE', HOLDERS, 0, 0)[1]
  local line = holder and read_line(holder)
  if n_holders == 1 and line and line.state ~= 'cooldown' then return line.token - 1 end
  return math.max(meta.last, now_us)
end

local upto, marks = last_ended(), 0
if field ~= '' then
  local what, mark = {field = field, span = 0}, read_mark(field)
  if mark.ended > 0 then marks = 1 end
  write_mark(what, {kept = 0, token = math.max(upto, mark.token), asked = 0, granted = 0, ended = 0, failures = 0,
                    failed = 0, record = '', new = mark.new})
else
  local all = n_once > 0 and call('HGETALL', ONCE) or {}
  for i = 2, #all, 2 do
    if not string.find(all[i], '^1 %d+ %d+ %d+ %d+ 0 ') then marks = marks + 1 end
  end
  call('DEL', ONCE)
  words = string.gsub(words, ' forgotten=%d+', '') .. ' forgotten=' .. int(math.max(upto, forgotten_token()))
end
-- Later tokens are greater.
write_memory(int(math.max(meta.last, upto)), last_grant, last_exclusive, old_head)
return {'forgotten', marks}
