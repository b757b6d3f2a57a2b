-- The usual way of release.
local by_id, unused = how == 'by_id', how == 'unused'
if by_id or unused then how = 'released' end
local kind = how == 'released' and WAS_RELEASED or how == 'removed' and REMOVED or CANCELLED

local what = how == 'released' and entry == '0' and not unused and (once_field or '') ~= '' and
             {field = once_field, span = tonumber(once_span), asked = now - tonumber(asked_ago), max = 0}
local ends = tonumber(held_until(owner) or 0)
local queued = queue_ticket(owner)
if kind == REMOVED and ends > now then return {'holds'} end
if by_id and ends > now then
  local line = read_line(owner)
  if line and line.responsive == RUN then return {'runs', describe(owner)} end
end
if kind == REMOVED and not queued then
  -- The same note means that this request was carried out before, and its reply was lost.
  local again = note ~= '' and tombstone(owner) == REMOVED and note_of(owner) == note
  return again and {'left_queue'} or {'absent', 'unknown', ''}
end
local stamp = how == 'yielded' and 2 * tonumber(attempt) + 1 or 0
if stamp > 0 and stamp <= stamp_of(owner) then return {'absent', 'unknown', ''} end

-- Ends one entry only: the others keep the lock until their own leases end.
local function drop_entry(line, entries)
  call('ZREM', HOLDERS, owner)
  local latest = write_entries(owner, entries)
  call('ZADD', HOLDERS, int(latest), owner)
  add_tombstone(owner .. ':' .. entry, WAS_RELEASED, latest)
  if entry ~= '0' or line_word(line, 'result') then return end
  -- Its end is that of the run, however those end that are nested in it.
  line.words = line.words .. ' result=' .. (string.match(note, '^[%w:-]+$') or '?')
  call('HSET', WHO, '+' .. owner, line_text(line))
end

-- How the run ended, in ONCE. A server that was stopped carries out late what it was sent: a run was granted the lock when
-- its token was issued, and asked before that for as long as it waited.
local function note_outcome(line)
  if not what then return '' end
  local known, number = once_of(line), tonumber(given_token)
  if number == 0 and line then number = line.token end
  local issued = math.floor(number / 1000)
  local in_time = line and line.since <= issued
  local since = in_time and line.since or math.min(issued, now)
  what.asked = math.min(what.asked, known and known.asked or since, in_time and since or since - tonumber(waited or 0))
  if outcome == 'succeeded' then
    local mark = mark_done(what, number, since, run_record)
    if mark == 'no_room' then add_tombstone(owner .. ':no_room', WAS_RELEASED) end
    return mark
  end
  if outcome == 'failed' and note ~= 'stopped' and not line_word(line, 'counted') then note_failure(what) end
  return ''
end

-- What the release said that this one repeats.
local function mark_before()
  if not what or outcome ~= 'succeeded' then return '' end
  local mark = read_mark(what.field)
  if mark.ended == 0 or mark.token ~= tonumber(given_token) then return '' end
  return tombstone(owner .. ':no_room') and 'no_room' or 'marked'
end

-- The success of a run whose hold is gone, or that only other servers granted the lock: marked and listed once, and if
-- nobody can have had the lock since. One that holds it here with a smaller token was released where this server was not
-- reached.
local function note_late_success(end_kind)
  if end_kind == WAS_RELEASED then return mark_before() end
  if not what or outcome ~= 'succeeded' then return '' end
  local number = tonumber(given_token)
  local why, other = loss_reason(owner, entry, number, 1, math.huge, end_kind), some_holder()
  if why and not (why == 'full' and (not other or other[4] <= number)) then return '' end
  local counted = tombstone(owner .. ':counted') and ' counted=1' or ''
  note_run(owner, {token = number, since = math.min(now, math.floor(number / 1000)), record = run_record,
                   words = counted}, how, note)
  return note_outcome(nil)
end

local function free(line)
  remove_holder(owner)
  local forced = line and line.state == 'revoked'
  if how == 'released' and entry ~= '0' and not forced then
    note_lapse(owner, line)
  elseif how == 'released' then
    note_run(owner, line, forced and 'forced' or how, note)
  end
  if how == 'released' and line and not unused then start_cooldown(owner, line) end
  forget(owner)
  add_tombstone(owner, forced and FORCED or kind, ends)
  if forced then return {'absent', 'forced', note_of(owner)} end
  return {'freed', note_outcome(line)}
end

local function end_hold()
  local line = read_line(owner)
  local entries = line and live_entries(line) or {}
  entries[entry] = nil
  if how ~= 'released' or not next(entries) then return free(line) end
  local repeated = line_word(line, 'result')
  drop_entry(line, entries)
  if line.state ~= 'revoked' then return {'kept', repeated and mark_before() or note_outcome(line)} end
  -- Others still run under this lock: they learn of it now, and the last of them confirms.
  wake(owner, 'revoked')
  return {'absent', 'forced', note_of(owner)}
end

local function leave_queue()
  local record, known = call('HGET', WHO, owner) or '', what and once_of(read_line(owner))
  if known then what.asked = math.min(what.asked, known.asked) end
  remove_waiter(owner)
  local mark = note_late_success(tombstone(owner))
  if how == 'timed_out' then note_skip(record) end
  add_tombstone(owner, kind)
  if kind == REMOVED then
    call('HSET', WHO, '!' .. owner, note)
    wake(owner, 'removed')
  end
  return {'left_queue', mark}
end

-- With a ticket the owner keeps its position in the queue, or gets it back.
local function cancel_attempt(line)
  note_stamp(owner, stamp)
  if ticket == '0' or not line then
    remove_waiter(owner)
    add_tombstone(owner, EXPIRED)
  elseif ends > now then
    n_queue = n_queue + 1
    call('ZADD', QUEUE, int(math.min(tonumber(ticket), now_us)), owner)
    call('ZADD', ALIVE, int(now + HEARTBEAT), owner)
    line.state = 'waiting'
    call('HSET', WHO, '+' .. owner, line_text(line))
    call('HDEL', WHO, '@' .. owner)
  end
  return {ends > now and 'freed' or queued and 'left_queue' or 'absent', 'unknown', ''}
end

-- The outer run may be about to restore its lease, so a nested run ends only its own entry.
local function report_absent()
  local before = tombstone(owner)
  local mark = note_late_success(before)
  add_tombstone(entry == '0' and owner or owner .. ':' .. entry, kind)
  return {'absent', before and KINDS[before] or 'unknown', note_of(owner), mark}
end

if folded then touch() end
unfold()
local reply
local line = stamp > 0 and read_line(owner)
if stamp > 0 and not (line and line.state == 'revoked') then
  touch()
  if ends > now then remove_holder(owner) end
  reply = cancel_attempt(line)
elseif ends > now then
  reply = end_hold()
elseif queued then
  reply = leave_queue()
else
  touch()
end
sweep()
reply = reply or report_absent()
admit(stamp > 0 and owner or nil)
finish(stamp > 0 and owner or nil)
return with_wakes(reply)
