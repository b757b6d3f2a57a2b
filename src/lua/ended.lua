-- A release that does more than end the only entry of a hold.
local owner, entry, how, note, outcome = args.owner, args.entry, args.how, args.note, args.outcome
local unused = how == 'unused'
if how == 'by_id' or unused then how = 'released' end
local kind = how == 'released' and WAS_RELEASED or how == 'removed' and REMOVED or CANCELLED
local stamp = 2 * (args.attempt or 0) + 1  -- of an attempt that is cancelled
local what = how == 'released' and entry == '0' and not unused and args.once and
             {field = args.once, span = tonumber(args.span), asked = math.max(0, now - args.asked), max = 0}

-- The entries that go on without this one; nil where there are none.
function s.other_entries(line)
  local entries = s.live_entries(line)
  entries[entry] = nil
  return next(entries) and entries or nil
end

-- Ends one entry only: the others keep the lock until their own leases end.
function s.drop_entry(line, entries)
  local repeated = s.line_word(line, 'result')
  local latest = s.set_entries(line, entries)
  -- The end of the outer run is that of the run, however nested runs end.
  if entry == '0' and not repeated then
    line.words = line.words .. ' result=' .. (string.match(note, '^[%w:-]+$') or '?')
  end
  s.touch()
  s.unfold()
  s.store_hold(owner, line, latest, 0)
  s.add_tombstone(owner .. ':' .. entry, WAS_RELEASED)
  if line.state ~= 'revoked' then return {'kept', repeated and s.mark_before() or s.note_outcome(line)} end
  -- Others still run under this lock: they learn of it now, and the last of them confirms.
  s.wake(owner, 'revoked')
  return {'absent', 'forced', s.note_of(owner)}
end

-- Notes in ONCE how the run ended. A server that was stopped carries out this request late: the run was granted the lock
-- when its token was issued, and had first asked before that by the time that it waited.
function s.note_outcome(line)
  if not what then return '' end
  local known, number = s.once_of(line), tonumber(args.token)
  if number == 0 and line then number = tonumber(line.token) end
  local issued = math.floor(number / 1000)
  local in_time = line and line.since <= issued
  local since = in_time and line.since or math.min(issued, now)
  what.asked = math.max(0, math.min(what.asked, known and known.asked or since, in_time and since or since - (args.waited or 0)))
  if outcome == 'succeeded' then
    local mark = s.once_part().mark_done(what, number, since, args.record)
    if mark == 'no_room' then s.add_tombstone(owner .. ':no_room', WAS_RELEASED) end
    return mark
  end
  if outcome == 'failed' and note ~= 'stopped' and not s.line_word(line, 'counted') then s.once_part().note_failure(what) end
  return ''
end

-- The mark that the first of several equal releases returned.
function s.mark_before()
  if not what or outcome ~= 'succeeded' then return '' end
  local mark = s.once_part().read_mark(what.field)
  if mark.ended == 0 or mark.token ~= tonumber(args.token) then return '' end
  return s.tombstone(owner .. ':no_room') and 'no_room' or 'marked'
end

-- The success of a run whose hold is gone, or that only other servers granted the lock: marked and listed once, and if
-- nobody can have had the lock since. A holder that is left here with a smaller token is over: its release reached the other
-- servers only.
function s.note_late_success(end_kind)
  if end_kind == WAS_RELEASED then return s.mark_before() end
  if not what or outcome ~= 'succeeded' then return '' end
  local number = tonumber(args.token)
  local why, other = s.loss_reason(owner, entry, number, 1, math.huge, end_kind), s.some_holder()
  if why and not (why == 'full' and (not other or other[4] <= number)) then return '' end
  local counted = s.tombstone(owner .. ':counted') and ' counted=1' or ''
  s.note_run(owner, {token = s.int(number), since = math.min(now, math.floor(number / 1000)), record = args.record,
                     words = counted}, how, note)
  return s.note_outcome(nil)
end

function s.leave_queue()
  local record, known = call('HGET', WHO, owner) or '', what and s.once_of(s.read_line(owner))
  if known then what.asked = math.min(what.asked, known.asked) end
  s.remove_waiter(owner)
  local mark = s.note_late_success(s.tombstone(owner))
  if how == 'timed_out' then s.note_skip(record) end
  s.add_tombstone(owner, kind)
  if kind == REMOVED then
    call('HSET', WHO, '!' .. owner, note)
    s.wake(owner, 'removed')
  end
  return {'left_queue', mark}
end

-- With a ticket the owner keeps its position in the queue, or gets it back.
function s.cancel_attempt(line, held_now, queued)
  s.note_stamp(owner, stamp)
  if not args.ticket or not line then
    s.remove_waiter(owner)
    s.add_tombstone(owner, EXPIRED)
  elseif held_now then
    s.n_queue, s.latest_beat, s.queue_is_new = s.n_queue + 1, now + HEARTBEAT, true
    call('ZADD', QUEUE, s.int(math.min(args.ticket, now_us)), owner)
    call('ZADD', ALIVE, now + HEARTBEAT, owner)
    line.state = 'waiting'
    call('HSET', WHO, '+' .. owner, s.line_text(line))
    call('HDEL', WHO, '@' .. owner)
  end
  return {held_now and 'freed' or queued and 'left_queue' or 'absent', 'unknown', ''}
end

-- The outer run may be about to restore its lease, so a nested run ends only its own entry.
function s.report_absent()
  local before = s.tombstone(owner)
  local mark = s.note_late_success(before)
  s.add_tombstone(entry == '0' and owner or owner .. ':' .. entry, kind)
  return {'absent', before and s.ended_as(before) or 'unknown', s.note_of(owner), mark}
end

