-- release, cancel: ends an owner, whatever it has: a lease, a grant, a position in the queue, or nothing. Always leaves a tombstone,
-- so that a late acquire cannot make the owner a holder again. A repeat succeeds.
-- include: memory admit cooldowns entry_list finish history holders keys lines notes outcome queue replies stamps sweep tasks tombstones views wakes
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
local owner, entry, note = args.owner, args.entry, args.note or '-'
local by_id, unused = args.how == 'by_id', args.how == 'unused'
local ending = (by_id or unused) and 'released' or args.how
local ended_kind = ending == 'released' and WAS_RELEASED or ending == 'removed' and REMOVED or CANCELLED
local work = ending == 'released' and entry == '0' and not unused and args.once and
             {field = args.once, span = tonumber(args.span), asked = math.max(0, now - args.asked), max = 0}
request = {owner = owner, entry = entry, ending = ending, note = note, unused = unused, work = work}

-- Ends only one entry: the others keep the lock until their own leases expire.
local function drop_entry(line, others)
  keys.touch()
  local repeated, latest = line.result, entry_list.set(line, others)
  -- The outer run decides how the run ended, however nested runs end.
  if entry == '0' and not repeated then line.result = string.match(note, '^[%w:-]+$') or '?' end
  holders.store(owner, line, latest)
  tombstones.add(owner .. ':' .. entry, WAS_RELEASED)
  local left = latest - now
  if line.state ~= 'revoked' then return {'kept', left = left, mark = repeated and outcome.mark_before() or outcome.note(line)} end
  -- Others still run under this lock: they learn about the break now, and the last of them confirms.
  wakes.add(owner, 'revoked')
  return {'absent', kind = 'forced', note = notes.of(owner), left = left}
end

-- Ends the lease of the owner, or only one entry of it. The first write is a removal, because a full server refuses other first writes.
local function end_hold(line)
  local others = entry_list.live(line)
  others[entry] = nil
  if ending == 'released' and next(others) then return drop_entry(line, others) end
  local forced = line.state == 'revoked'
  holders.remove(owner)
  if ending == 'released' then
    if entry ~= '0' and not forced then
      sweep.note_lapse(owner, line, now)
    else
      history.record_run(owner, line, forced and 'forced' or ending, note)
    end
    if not unused and line.min_hold > 0 then cooldowns.start(owner, line) end
  end
  lines.forget(owner)
  tombstones.add(owner, forced and FORCED or ended_kind)
  if forced then return {'absent', kind = 'forced', note = notes.of(owner)} end
  return {'freed', mark = work and outcome.note(line) or ''}
end

local function leave_queue()
  local line = lines.read(owner)
  local known = work and tasks.of(line)
  if known then work.asked = math.min(work.asked, known.asked) end
  queue.remove(owner)
  local mark = outcome.note_late_success(tombstones.kind(owner))
  if ending == 'timed_out' then history.count_skip(line and line.record or '') end
  tombstones.add(owner, ended_kind)
  if ended_kind == REMOVED then
    notes.store(owner, note)
    wakes.add(owner, 'removed')
  end
  return {'left_queue', mark = mark}
end

-- Cancels an attempt over a quorum that got no majority. With a ticket the owner keeps its position in the queue, or returns to it.
local function cancel_attempt(line, held_now, queued)
  keys.touch()
  local ticket = tonumber(args.ticket or 0)
  if held_now then holders.remove(owner) end
  stamps.store(owner, 2 * args.attempt + 1)
  if ticket == 0 or not line then
    queue.remove(owner)
    tombstones.add(owner, EXPIRED)
  elseif held_now then
    queue.set_place(owner, math.min(ticket, now_us))
    queue.set_heartbeat(owner, now + HEARTBEAT)
    line.state, line.token, line.entries, line.slot = 'waiting', 0, nil, nil
    line.since, line.waited = line.since - (line.waited or 0), nil
    lines.write(owner, line)
  end
  return {held_now and 'freed' or queued and 'left_queue' or 'absent'}
end

-- Ends an owner that has nothing here. A nested run ends only its own entry, because its outer run may be about to restore the lease.
local function report_absent()
  keys.touch()
  local before = tombstones.kind(owner)
  local was_lost = before == WAS_RELEASED and tombstones.kind(owner .. ':lost')
  local kind = was_lost and 'expired' or before and tombstones.word(before) or history.row_of(owner, 'owner') and 'expired' or 'unknown'
  local mark = outcome.note_late_success(before)
  if not before then outcome.note_lost_run() end
  if entry == '0' then history.settle_row(owner) end
  -- The next release of this owner learns, too, that the lease had ended before.
  if kind == 'expired' or kind == 'unknown' then tombstones.add(owner .. ':lost', EXPIRED) end
  tombstones.add(entry == '0' and owner or owner .. ':' .. entry, ended_kind)
  return {'absent', kind = kind, note = notes.of(owner), mark = mark}
end

-- Nothing was written since the script counted holders and waiters.
local held = at_start.holders > 0 and holders.held_until(owner)
local queued = at_start.waiters > 0 and queue.ticket(owner)
local held_now = held and held > now
local line = (held_now or queued) and lines.read(owner)
if held_now and ended_kind == REMOVED then return {'holds'} end
if held_now and by_id and line.responsive == RLOCK_RUN then return replies.encoded({'runs', holder = views.of(owner, held)}) end
if ended_kind == REMOVED and not queued then
  -- The same note means that this request was carried out before, and its reply was lost.
  local again = note ~= '' and tombstones.kind(owner) == REMOVED and notes.of(owner) == note
  return again and {'left_queue'} or {'absent'}
end
if ending == 'yielded' and 2 * args.attempt + 1 <= stamps.of(owner) then return {'absent'} end

local reply
if ending == 'yielded' then admit.exclude(owner) end  -- otherwise it would be granted the lock again immediately
if ending == 'yielded' and not (line and line.state == 'revoked') then
  reply = cancel_attempt(line, held_now, queued)
  if is_due then sweep.run() end
elseif held_now then
  if is_due then sweep.run() end  -- a run whose lease ended before is listed before this one
  reply = end_hold(line)
else
  if queued then reply = leave_queue() end
  if is_due then sweep.run(owner) end
end
return finish.with(reply or report_absent(), ending == 'yielded' and owner)
