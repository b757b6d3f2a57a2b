-- release, cancel: ends an owner, whatever it has: a lease, a grant, a position in the queue, nothing. Always leaves a
-- tombstone, so that a late acquire cannot make the owner a holder again. A repeat succeeds.
-- ARGV, as names and values:
--       owner, entry, how: released|unused|by_id|cancelled|timed_out|removed|yielded
--       note: who removed it and why, or the result of the run in one word, `exit:7`, `signal:9`, or `-`
--       attempt, and ticket, to keep its position: with yielded
--       Of what is done once: once, a field of ONCE; span; asked: how long ago the owner first asked; token; outcome:
--       succeeded|failed (`-`: a failure that is not counted); record; waited: how long it had waited for the lock
-- unused: like released, but nothing ran under the lock, so that there is no cool-down. by_id: like released, by
-- somebody who knows the owner's id; refused for a live run, since the next holder would start beside it.
-- yielded: an attempt over a quorum got no majority; what it took here is cancelled, and the owner may come back.
-- Returns: freed mark | kept (by other entries) | left_queue mark | holds (removed only, nothing done)
--          | runs holder (by_id only, nothing done)
--          | absent kind-before note mark   (kind: see KINDS, or unknown)
--          (mark: `marked` as done; `no_room`: marked, and the least recently used key is forgotten)
local owner, entry, how, note = args.owner, args.entry, args.how, args.note
local by_id, unused, caller, reply = how == 'by_id', how == 'unused', nil, nil
if by_id or unused then how = 'released' end
local kind = how == 'released' and WAS_RELEASED or how == 'removed' and REMOVED or CANCELLED
local held = first_holder == owner and first_end or
             s.n_holders > 1 and tonumber(call('ZSCORE', HOLDERS, owner) or nil) or 0
local queued = held <= now and s.n_queue > 0 and call('ZSCORE', QUEUE, owner)
local line = held > now and (lone or s.read_line(owner))
call('LLEN', HISTORY)
if args.once then call('HLEN', ONCE) end
-- An owner whose hold is folded has no tombstone that is stronger or later.
local before = call('ZSCORE', RELEASED, lone and '' or owner)

-- Who responds when a holder's lock is broken: nobody (0), a process that renews for the steps of another (1), or
-- rlock run (2), whose command does not outlive its lease.
local RUN = '2'
if line and kind == REMOVED then return {'holds'} end
if line and by_id and line.responsive == RUN then return {'runs', s.describe(owner, held)} end
if kind == REMOVED and not queued then
  -- The same note means that this request was carried out before, and its reply was lost.
  local again = note ~= '' and s.tombstone(owner) == REMOVED and s.note_of(owner) == note
  return again and {'left_queue'} or {'absent', 'unknown', ''}
end
local stamp = 0
if how == 'yielded' then
  stamp = 2 * args.attempt + 1
  if stamp <= s.stamp_of(owner) then return {'absent', 'unknown', ''} end
  line = s.read_line(owner)
end

if stamp > 0 and not (line and line.state == 'revoked') then
  caller = owner
  s.touch()
  s.unfold()
  if held > now then s.remove_holder(owner) end
  reply = s.cancel_attempt(line, held > now, queued)
  if s.unswept then s.sweep_ended() end
elseif held > now then
  if s.unswept then s.sweep_ended() end  -- a run whose lease ended before is listed before this one
  local sole = entry == '0' and line.entries == '0=' .. held
  local others = how == 'released' and not sole and s.other_entries(line)
  if others then
    reply = s.drop_entry(line, others)
  else
    s.remove_holder(owner)
    local forced = line.state == 'revoked'
    if how == 'released' then
      if entry ~= '0' and not forced then
        s.note_lapse(owner, line, now)
      else
        s.note_run(owner, line, forced and 'forced' or how, note)
      end
      if line.min_hold > 0 and not unused then s.start_cooldown(owner, line) end
    end
    if s.several then call('HDEL', WHO, owner, '+' .. owner, '@' .. owner) end
    s.add_tombstone(owner, forced and FORCED or kind, nil, before)
    reply = forced and {'absent', 'forced', s.note_of(owner)} or {'freed', args.once and s.note_outcome(line) or ''}
  end
else
  if queued then reply = s.leave_queue() else s.touch() end
  if s.unswept then s.sweep_ended() end
end
reply = reply or s.report_absent()
if s.n_queue > 0 then s.admit(stamp > 0 and owner or nil) end

