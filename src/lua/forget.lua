-- forget: removes the marks of work that was done. After that no mark is written for a run that ended before. May be sent again.
-- include: memory entry_list finish holders keys lines once views
-- Arguments:
--   field    of ONCE; without it all fields
--   through  over a quorum: the token up to which to forget
-- Replies:
--   forgotten  marks: the number of fields with a success; failures: with failures since; numbers: with a number that superseded others
local field, given = args.field, tonumber(args.through or 0)
if not is_known and call('HLEN', ONCE) == 0 and given == 0 then return {'forgotten'} end
keys.touch()

-- Returns the token up to which work is forgotten. If one run is left, its success counts, because its token is greater than that of all
-- ended runs. If several are left, none of them counts, because a mark between their tokens would stay. A closure and a holder whose lease
-- has expired are no runs.
local function last_ended()
  local live = call('ZCOUNT', HOLDERS, '(' .. now, '+inf') - (holders.closed_until() and 1 or 0)
  local holder = live == 1 and views.some_holder()
  local line = holder and holder.state ~= 'cooldown' and lines.read(holder.owner)
  -- If only nested runs are left, the run with this token has ended.
  if line and line.token ~= 0 and entry_list.live(line)['0'] then return line.token - 1 end
  return math.max(memory.last, now_us)
end

local through = given > 0 and once.agreed(given) or last_ended()
local marks, failures, numbers = 0, 0, 0
local function note_forgotten(mark)
  if mark.ended > 0 then marks = marks + 1 end
  if mark.failures > 0 then failures = failures + 1 end
end

if field then
  local mark = once.read(field)
  if mark.ended == 0 or mark.token <= through then
    note_forgotten(mark)
    once.forget(field, mark, through)
  end
else
  local all = call('HGETALL', ONCE)
  for i = 1, #all, 2 do
    local mark = once.read(all[i])
    -- The token of `newest` is a number that a user chose; `waits` belongs to a waiter, not to work that was done.
    if all[i] == 'newest' then
      numbers = mark.kept > 0 and 1 or 0
      call('HDEL', ONCE, all[i])
    elseif all[i] ~= 'waits' and mark.token <= through then
      note_forgotten(mark)
      call('HDEL', ONCE, all[i])
    end
  end
  memory.forgotten = math.max(through, memory.forgotten)
end
-- Later tokens are greater.
memory.last = math.max(memory.last, through)
if memory.created == 0 then memory.created = memory.last end
return finish.with({'forgotten', marks = marks, failures = failures, numbers = numbers})
