-- release, cancel: ends an owner, whatever it has: a lease, a grant, a position in the queue, nothing. Always leaves a tombstone,
-- so that a late acquire cannot make the owner a holder again. A repeat succeeds.
-- include: memory tombstones lines holders queue history once sweep loss finish
-- Arguments:
--   owner, entry
--   how      released
--            unused: the command never started, so that there is no cool-down
--            by_id: by a client that knows the owner id; refused for a live run, because the next holder would start while that run continues
--            cancelled, timed_out
--            removed: by an operator, from the queue only
--            yielded: an attempt over a quorum got no majority; its grant here is cancelled, and the owner may come back
--   note     who removed it and why, or the result of the run in one word, `exit:7`, `signal:9`; without it `-`
--   attempt, ticket  with yielded: the attempt, and the ticket if the owner keeps its position
--   run      the token of the outer run; absent over a quorum. If the server has lost the lease, the history lists the run as lost
--   record   of the run
--   and for work that is done once: once, a field of ONCE; span; asked: how long ago the owner first asked; token; outcome:
--            succeeded, failed, or `-`: a failure that is not counted; waited: how long the run had waited for the lock
-- Replies:
--   freed       mark: `marked` as done, or `no_room`: marked, and the least recently used keys are forgotten
--   kept        mark, left: other entries keep the lock, for so long unless they renew it
--   left_queue  mark
--   holds       with removed: nothing was done
--   runs        holder; with by_id: nothing was done
--   absent      kind: how the owner had ended, see tombstones.lua, or unknown; note, mark; left: as with kept, if the lock is broken
local owner, entry, ending, note = args.owner, args.entry, args.how, args.note or '-'
local by_id, unused = ending == 'by_id', ending == 'unused'
if by_id or unused then ending = 'released' end
local ended_kind = ending == 'released' and WAS_RELEASED or ending == 'removed' and REMOVED or CANCELLED
local work = ending == 'released' and entry == '0' and not unused and args.once and
             {field = args.once, span = tonumber(args.span), asked = math.max(0, now - args.asked), max = 0}
-- include: outcome

-- Ends only one entry: the others keep the lock until their own leases expire.
local function drop_entry(line, others)
  local repeated, latest = line.result, set_entries(line, others)
  -- The outer run decides how the run ended, however nested runs end.
  if entry == '0' and not repeated then line.result = string.match(note, '^[%w:-]+$') or '?' end
  store_holder(owner, line, latest)
  add_tombstone(owner .. ':' .. entry, WAS_RELEASED)
  local left = latest - now
  if line.state ~= 'revoked' then return {'kept', left = left, mark = repeated and mark_before() or note_outcome(line)} end
  -- Others still run under this lock: they learn about the break now, and the last of them confirms.
  wake(owner, 'revoked')
  return {'absent', kind = 'forced', note = note_of(owner), left = left}
end

local function end_hold(line)
  local others = live_entries(line)
  others[entry] = nil
  if ending == 'released' and next(others) then return drop_entry(line, others) end
  local forced = line.state == 'revoked'
  remove_holder(owner)
  if ending == 'released' then
    if entry ~= '0' and not forced then
      note_lapse(owner, line, now)
    else
      record_run(owner, line, forced and 'forced' or ending, note)
    end
    if not unused then start_cooldown(owner, line) end
  end
  forget_line(owner)
  add_tombstone(owner, forced and FORCED or ended_kind)
  if forced then return {'absent', kind = 'forced', note = note_of(owner)} end
  return {'freed', mark = note_outcome(line)}
end

local function leave_queue()
  local line = read_line(owner)
  local known = work and once_of(line)
  if known then work.asked = math.min(work.asked, known.asked) end
  remove_waiter(owner)
  local mark = note_late_success(tombstone(owner))
  if ending == 'timed_out' then count_skip(line and line.record or '') end
  add_tombstone(owner, ended_kind)
  if ended_kind == REMOVED then
    store_note(owner, note)
    wake(owner, 'removed')
  end
  return {'left_queue', mark = mark}
end

-- An attempt over a quorum got no majority. With a ticket the owner keeps its position in the queue, or gets it back.
local function cancel_attempt(line, held_now, queued)
  local ticket = tonumber(args.ticket or 0)
  if held_now then remove_holder(owner) end
  store_stamp(owner, 2 * args.attempt + 1)
  if ticket == 0 or not line then
    remove_waiter(owner)
    add_tombstone(owner, EXPIRED)
  elseif held_now then
    set_place(owner, math.min(ticket, now_us))
    set_heartbeat(owner, now + HEARTBEAT)
    line.state, line.token, line.entries, line.slot = 'waiting', 0, nil, nil
    write_line(owner, line)
  end
  return {held_now and 'freed' or queued and 'left_queue' or 'absent'}
end

-- The outer run may be about to restore its lease, so a nested run ends only its own entry.
local function report_absent()
  local before = tombstone(owner)
  local mark = note_late_success(before)
  if not before then note_lost_run() end
  if entry == '0' then settle_row(owner) end
  add_tombstone(entry == '0' and owner or owner .. ':' .. entry, ended_kind)
  return {'absent', kind = before and ended_as(before) or 'unknown', note = note_of(owner), mark = mark}
end

local held, queued = held_until(owner), queue_ticket(owner)
local held_now = held and held > now
local line = (held_now or queued) and read_line(owner)
if held_now and ended_kind == REMOVED then return {'holds'} end
if held_now and by_id and line.responsive == RLOCK_RUN then return reply_of({'runs', holder = describe(owner, held)}) end
if ended_kind == REMOVED and not queued then
  -- The same note means that this request was carried out before, and its reply was lost.
  local again = note ~= '' and tombstone(owner) == REMOVED and note_of(owner) == note
  return again and {'left_queue'} or {'absent'}
end
if ending == 'yielded' and 2 * args.attempt + 1 <= stamp_of(owner) then return {'absent'} end

local reply
touch()
if ending == 'yielded' then excluded = owner end  -- it has just cancelled its grant, and would get it again immediately
if ending == 'yielded' and not (line and line.state == 'revoked') then
  reply = cancel_attempt(line, held_now, queued)
  sweep()
elseif held_now then
  sweep()  -- a run whose lease ended before is listed before this one
  reply = end_hold(line)
else
  if queued then reply = leave_queue() end
  sweep()
end
return finish(reply or report_absent(), ending == 'yielded' and owner)
