-- acquire: an owner is granted the lock, joins the queue, keeps its position there, or claims its grant. May be sent again.
-- include: memory acl enter finish holders keys lines notes once queue replies stamps sweep tickets tombstones tasks
-- Arguments:
--   owner, record, limit, ttl
--   responsive    0, 1 or 2: see lines.lua
--   ticket        the ticket that the owner had before
--   min_hold
--   at_once       1: the owner does not wait
--   max_queue     the owner does not wait either if the queue has so many waiters
--   user          name of the user at the server: the script asks the ACL once an hour for each
--   attempt       over a quorum, the number of this attempt
--   once, span    a field of ONCE, and the length of its period or distance, in ms
--   asked         with once: how long ago the owner first asked
--   max_failures  with once: after so many failures the owner gives up
--   forgotten     over a quorum: token up to which other servers have forgotten what is done once
--   supersede     for a waiter that supersedes others: its number, or `+`
--   rows          how many rows the history keeps from this run on, if not RUNS
--   while_closed  1: the owner may acquire a closed lock
--   earlier       for an urgent owner, the microseconds by which it counts as having arrived earlier
-- Replies:
--   granted     token, slot
--   queued      ticket, position, holder, slice (after which to ask again in any case), look_again (when a lease may expire),
--               needs: the rules of the lock that this version does not know, see unknown_rules()
--   busy        waiters, holder
--   done        ended, took, record, token: another owner has done the work
--   failed      times, token: the work has failed too often
--   superseded  record of the newer run, and its number if it has one; granted: when it was granted the lock, or since: when it began
--               to wait
--   gone        kind, note: this owner has ended
--   more        ask again immediately: there is more to sweep
--   and, with once, forgotten: the token up to which everything was forgotten, or 0
request = {
  owner = args.owner, record = args.record, limit = tonumber(args.limit), ttl = tonumber(args.ttl), rows = tonumber(args.rows or RUNS),
  given_ticket = tonumber(args.ticket or 0), max_queue = tonumber(args.max_queue or math.huge), may_pass = args.while_closed,
  stamp = 2 * (args.attempt or 0), supersedes = args.supersede,
  work = args.once and {field = args.once, span = tonumber(args.span), asked = math.max(0, now - args.asked),
                        max = tonumber(args.max_failures)},
}
local owner, work, stamp = request.owner, request.work, request.stamp

-- Returns the error for a newcomer, or nil: the lock has a rule that this version does not know, or the ACL denies a command. The script
-- asks before it writes, because a denied release would keep the lock, and a denied wake would go unnoticed. The answer counts for an hour.
local function refused()
  if unknown_rules then return 'UNKNOWN ' .. unknown_rules end
  local function is_fresh(until_ms) return now < tonumber(until_ms) and tonumber(until_ms) <= now + HOUR end
  local verdict = 'acl:' .. (args.user or '')
  if not redis.acl_check_cmd or args.user and is_fresh(memory[verdict] or 0) then return nil end
  local denied_command, is_complete = acl.denial()
  if denied_command or not is_complete or not args.user then return denied_command end
  for name, until_ms in pairs(stored) do
    if string.sub(name, 1, 4) == 'acl:' and not is_fresh(until_ms) then memory[name] = false end
  end
  memory[verdict] = now + HOUR
  return nil
end

-- Returns the reply to an owner that has ended, or nil if it has not ended or may come back.
local function ended_reply()
  local kind, released = tombstones.kinds(owner)
  if kind == DONE and work then
    local times, token = string.match(notes.of(owner), '^failed (%d+) (%d+)$')
    return once.decided(work) or times and {'failed', times = tonumber(times), token = tonumber(token)} or {'gone', kind = 'done', note = ''}
  end
  if kind and kind > REQUEUED then return {'gone', kind = tombstones.word(kind), note = notes.of(owner)} end
  if released then return {'gone', kind = 'released', note = ''} end
  if stamp > 0 and stamp < stamps.of(owner) then return {'gone', kind = 'cancelled', note = ''} end
  return nil
end

-- Returns the reply if the owner's work is done, or failed too often, and no command runs under its lease yet.
local function done_reply()
  if not work then return nil end
  local line = holders.held_until(owner) and lines.read(owner)
  return not (line and line.state ~= 'granted') and once.decided(work) or nil
end

-- Forgets the mark of this work if other servers of the quorum have forgotten it.
local function forget_as_others()
  local mark, through = once.read(work.field), once.agreed(args.forgotten)
  local last = mark.ended > 0 and mark.token or mark.failures > 0 and mark.failed * 1000
  if last and last <= through then once.forget(work.field, mark, through) end
end

-- Cancels the grant of an owner that need not run, or removes it from the queue. Returns the reply, or nil if the owner has to run.
local function settle_if_done()
  local verdict = done_reply()
  if not verdict then return nil end
  once.keep(work)
  if queue.ticket(owner) or holders.held_until(owner) then
    sweep.dismiss_as_done(owner, request.record, verdict)
  else
    enter.note_refusal(verdict[1])
  end
  return verdict
end

-- Keeps the position of a waiter that asks again.
local function stay(ticket)
  if call('HEXISTS', WHO, owner) == 0 then lines.write(owner, enter.new_line('waiting')) end  -- it was deleted
  if tickets.placed(ticket) ~= ticket then queue.set_place(owner, tickets.placed(ticket)) end
  return enter.wait()
end

local known = work and tasks.of(lines.read(owner))
if known then work.asked = math.min(work.asked, known.asked) end
local ended = ended_reply()
if ended then return replies.encoded(ended) end
-- Nothing was written since the script counted holders and waiters.
local held = at_start.holders > 0 and holders.held_until(owner)
local ticket = at_start.waiters > 0 and queue.ticket(owner)
-- An owner whose grant has expired is a newcomer, too.
local refusal = not ticket and (held or 0) <= now and refused()
if refusal then return redis.error_reply(refusal) end

-- From here on the script writes.
if held or ticket or done_reply() then keys.touch() end
if work and args.forgotten then forget_as_others() end
if ticket then queue.beat(owner) end  -- a waiter that asks before it was swept is in time
if is_due then
  sweep.run()
  ended, held, ticket = ended_reply(), holders.held_until(owner), queue.ticket(owner)  -- the sweep may have ended this owner's lease
end

local reply = ended or settle_if_done()
if not reply then
  if (held or 0) > now then
    reply = enter.claim(held)
  elseif ticket then
    reply = stay(ticket)
  else
    reply = enter.newcomer()
  end
end
if work then
  -- The client tells this token to the members of a quorum that were down.
  local mark = once.read(work.field)
  reply.forgotten = math.max(memory.forgotten, mark.ended == 0 and mark.token or 0)
end
-- A waiter that becomes the head is woken even if it is the caller, because no client reads the reply to a late copy of a request.
local still_waits = ticket and queue.ticket(owner)
return finish.with(reply, not still_waits and owner)
