-- first: moves a waiter to the head of the queue: before all waiters if it is exempt, otherwise behind those that are. May be sent
-- again.
-- include: memory acl finish holders lines queue sweep
-- Arguments:
--   owner, record  the record of the waiter, which now says who moved it
-- Replies:
--   moved   even if the waiter was at the head before
--   holds, absent
local owner = args.owner

local denied_command = acl.denial()
if denied_command then return redis.error_reply(denied_command) end
if is_due then sweep.run() end
local ticket, line, beat_ends = queue.ticket(owner), lines.read(owner), call('ZSCORE', ALIVE, owner)
if ticket then
  local passed = now_us - AHEAD / 2
  local head = call('ZRANGEBYSCORE', QUEUE, ticket < passed and '-inf' or int(passed), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if head[1] ~= owner then
    -- If nothing was swept, this is the first write: a server whose memory is full refuses it.
    if line then
      line.record = args.record
      lines.write(owner, line)
    end
    queue.set_place(owner, math.max(1, head[2] - 1))
    -- Until its next request it has the heartbeat of a waiter near the head.
    queue.set_heartbeat(owner, beat_ends and math.floor(beat_ends) or now + HEARTBEAT)
  end
end
return finish.with(ticket and {'moved'} or {holders.held_until(owner) and 'holds' or 'absent'})
