-- include: once loss history tombstones views tasks
-- For release: what it records about work that is done once, and about a run that the server has lost.

-- Returns when a run with this token was granted the lock, and when it first asked. A server that was stopped carries out requests late: then
-- the run was granted the lock when its token was issued, and had first asked before that by the time that it waited.
local function times_of(line, token)
  local issued = math.floor(token / 1000)
  if line and line.since <= issued then return line.since, line.since end
  local granted_at = math.min(issued, now)
  return granted_at, granted_at - (args.waited or 0)
end

-- Records in ONCE how the run ended, and returns the mark.
local function note(line)
  if not request.work then return '' end
  local token = tonumber(args.token)
  if token == 0 and line then token = line.token end
  local granted_at, asked = times_of(line, token)
  local known = tasks.of(line)
  request.work.asked = math.max(0, math.min(request.work.asked, known and known.asked or asked, asked))
  if args.outcome == 'succeeded' then
    local mark = once.mark_done(request.work, token, granted_at, args.record)
    if mark == 'no_room' then tombstones.add(request.owner .. ':no_room', WAS_RELEASED) end
    return mark
  end
  if args.outcome == 'failed' and request.note ~= 'stopped' and not (line and line.counted) then once.note_failure(request.work) end
  return ''
end

-- Returns what the first of several equal releases returned as the mark.
local function mark_before()
  if not request.work or args.outcome ~= 'succeeded' then return '' end
  local mark = once.read(request.work.field)
  if mark.ended == 0 or mark.token ~= tonumber(args.token) then return '' end
  return tombstones.kind(request.owner .. ':no_room') and 'no_room' or 'marked'
end

-- Marks and lists the success of a run whose lease is gone, or that only other servers granted the lock, if no other owner can have had the
-- lock since. A holder that is left here with a smaller token has ended: its release reached the other servers only.
local function note_late_success(end_kind)
  if end_kind == WAS_RELEASED then return mark_before() end
  if not request.work or args.outcome ~= 'succeeded' then return '' end
  local number = tonumber(args.token)
  local why, other = loss.reason(request.owner, request.entry, number, 1, math.huge, end_kind), views.some_holder()
  if why and not (why == 'full' and (not other or other.token <= number)) then return '' end
  local was_counted = tombstones.kind(request.owner .. ':counted') or history.row_of(request.owner, 'owner')
  history.record_run(request.owner, {token = number, since = math.min(now, math.floor(number / 1000)), record = args.record,
                     counted = was_counted and now or nil}, request.ending, request.note)
  return note(nil)
end

-- Lists a run during which the server lost its data, because no other script does. The memory is then younger than the lease.
local function note_lost_run()
  local number = tonumber(args.run)
  if not number or request.unused or memory.created > 0 and memory.created <= number or history.row_of(number) then return end
  history.record_run(request.owner, {token = number, since = math.min(now, math.floor(number / 1000)), record = args.record}, request.ending, 'lost')
end

return {note = note, mark_before = mark_before, note_late_success = note_late_success, note_lost_run = note_lost_run}
