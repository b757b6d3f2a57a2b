-- acquire: joins the queue, keeps the position there, claims a grant. May be sent again.
-- include: memory tombstones lines holders queue history once grant sweep admit acl finish
-- Arguments:
--   owner, record, limit, ttl
--   responsive    0, 1 or 2: see lines.lua
--   ticket        that the owner had before
--   min_hold
--   at_once       1: the owner does not wait
--   max_queue     with so many waiters the owner does not wait either
--   user          the user's name: the ACL is asked once an hour for each
--   attempt       over a quorum, the number of this attempt
--   once, span    a field of ONCE, and the length of its period or distance
--   asked         with once: how long ago the owner first asked
--   max_failures  with once: after so many failures the owner gives up
--   forgotten     over a quorum: token up to which other servers have forgotten what is done once
--   supersede     for a waiter that supersedes others: its number, or `+`
--   rows          how many rows the history keeps from this run on, if not RUNS
--   while_closed  1: the owner may acquire a closed lock
--   earlier       for an urgent owner, the microseconds by which it counts as having arrived earlier
-- Replies:
--   granted     token, slot
--   queued      ticket, position, holder, slice (after which to ask again in any case), look_again (when a lease may end),
--               needs: the rules of the lock that this version does not know, see unknown_rules()
--   busy        waiters, holder
--   done        ended, took, record, token: another owner has done the work
--   failed      times, token: the work has failed too often
--   superseded  record of the newer one; number, if it has one; granted: when a greater number than this one's was granted the lock; or
--               since: since when the newer one waits
--   gone        kind, note: this owner has ended
--   more        ask again immediately: there is more to sweep
--   and with once forgotten: the token up to which everything was forgotten, or 0
local owner, record = args.owner, args.record
local limit, ttl, rows = tonumber(args.limit), tonumber(args.ttl), tonumber(args.rows or RUNS)
local given_ticket, max_queue = tonumber(args.ticket or 0), tonumber(args.max_queue or math.huge)
local stamp = 2 * (args.attempt or 0)
local supersedes, may_pass = args.supersede, args.while_closed
local work = args.once and {field = args.once, span = tonumber(args.span), asked = math.max(0, now - args.asked),
                            max = tonumber(args.max_failures)}
-- include: supersede enter

-- The error for a newcomer, before anything is written: a rule that this version does not know, or a command that the ACL denies this user,
-- because a denied release would keep the lock, and a denied wake would go unnoticed. A check of the ACL counts for an hour.
local function refused()
  local unknown = unknown_rules(memory)
  if unknown then return 'UNKNOWN ' .. unknown end
  local function is_fresh(until_ms) return now < tonumber(until_ms) and tonumber(until_ms) <= now + HOUR end
  local verdict = 'acl:' .. (args.user or '')
  if not redis.acl_check_cmd or args.user and is_fresh(memory[verdict] or 0) then return nil end
  local denied_command, is_complete = denial()
  if denied_command or not is_complete or not args.user then return denied_command end
  for name, until_ms in pairs(memory) do
    if string.sub(name, 1, 4) == 'acl:' and not is_fresh(until_ms) then memory[name] = nil end
  end
  memory[verdict] = now + HOUR
  return nil
end

-- Returns why an owner that has ended is not granted the lock, or nil if the owner has not ended or may come back.
local function ended_reply()
  local kind = tombstone(owner)
  if kind == DONE and work then
    local times, token = string.match(note_of(owner), '^failed (%d+) (%d+)$')
    return decided(work) or times and {'failed', times = tonumber(times), token = tonumber(token)} or {'gone', kind = 'done', note = ''}
  end
  if kind and kind > REQUEUED then return {'gone', kind = ended_as(kind), note = note_of(owner)} end
  if tombstone(owner .. ':0') then return {'gone', kind = 'released', note = ''} end
  if stamp > 0 and stamp < stamp_of(owner) then return {'gone', kind = 'cancelled', note = ''} end
  return nil
end

-- Returns the reply if the owner's work is done, or failed too often, and no command runs under its lease yet.
local function done_reply()
  if not work then return nil end
  local line = held_until(owner) and read_line(owner)
  return not (line and line.state ~= 'granted') and decided(work) or nil
end

-- Forgets what another server of a quorum has forgotten.
local function forget_as_others()
  local mark, through = read_mark(work.field), agreed(args.forgotten)
  local last = mark.ended > 0 and mark.token or mark.failures > 0 and mark.failed * 1000
  if last and last <= through then forget_mark(work, mark, through) end
end

-- Cancels the grant of an owner that need not run, and removes it from the queue.
local function settle_if_done()
  local verdict = done_reply()
  if not verdict then return nil end
  keep_mark(work)
  if queue_ticket(owner) or held_until(owner) then
    dismiss_as_done(owner, record, verdict)
  else
    note_refusal(verdict[1])
  end
  return verdict
end

-- A waiter asks again: keeps its position.
local function stay(ticket)
  if call('HEXISTS', WHO, owner) == 0 then write_line(owner, new_line('waiting')) end  -- it was deleted
  if placed(ticket) ~= ticket then set_place(owner, placed(ticket)) end
  return wait()
end

local known = work and once_of(read_line(owner))
if known then work.asked = math.min(work.asked, known.asked) end
local ended = ended_reply()
if ended then return reply_of(ended) end
local held, ticket = held_until(owner), queue_ticket(owner)
-- An owner whose grant has ended is a newcomer, too.
local refusal = not ticket and (held or 0) <= now and refused()
if refusal then return redis.error_reply(refusal) end
if held or ticket or done_reply() then touch() end
if work and args.forgotten then forget_as_others() end
if ticket then beat(owner) end  -- a waiter that asks before it was swept is in time
if sweep() then ended, held, ticket = ended_reply(), held_until(owner), queue_ticket(owner) end  -- it may have ended its hold

local reply = ended or settle_if_done() or (held or 0) > now and claim(held) or ticket and stay(ticket) or enter()
if work then
  -- A member of a quorum that was down does not know this token.
  local mark = read_mark(work.field)
  reply.forgotten = math.max(memory.forgotten, mark.ended == 0 and mark.token or 0)
end
-- A late copy of a waiter's request, whose reply is not read, must not swallow the wake of the head.
return finish(reply, not (ticket and queue_ticket(owner)) and owner)
