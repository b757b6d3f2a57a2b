-- first: moves a waiter to the head of the queue: one that may pass a closure before all, another one behind those.
-- ARGV: owner, its record, which now says who moved it
-- Returns: moved (also where it was there before) | holds | absent
local owner, record = unpack(ARGV)
local caller, reply

local denial = s.denial()
if denial then return redis.error_reply(denial) end
call('LLEN', HISTORY)
call('ZCARD', RELEASED)
if s.unswept then s.sweep_ended() end
local ticket = s.queue_ticket(owner)
if ticket then
  local passed = s.int(now_us - AHEAD / 2)
  local from = tonumber(ticket) < tonumber(passed) and '-inf' or passed
  local head = call('ZRANGEBYSCORE', QUEUE, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if head[1] ~= owner then
    -- The first write is one that a server refuses whose memory is full.
    call('HSET', WHO, owner, record)
    call('ZADD', QUEUE, 'XX', s.int(math.max(1, head[2] - 1)), owner)
    -- Until its next request its heartbeat counts as that of one near the head.
    call('ZADD', ALIVE, 'XX', math.floor(call('ZSCORE', ALIVE, owner)), owner)
    s.admit()
  end
  reply = {'moved'}
else
  reply = {s.held_until(owner) and 'holds' or 'absent'}
end
