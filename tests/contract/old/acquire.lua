-- acquire of rlock at commit 82714a8, the last one that stored no version words: as it was, without its comments.
local owner, brought, limit, ttl, min_hold, attended, queueing, max_queue, record, attempt = unpack(ARGV)
limit, ttl, min_hold = tonumber(limit), tonumber(ttl), tonumber(min_hold)
local stamp = 2 * tonumber(attempt or 0)
local function gone()
  local scores = n_released > 0 and call('ZMSCORE', RELEASED, owner, owner .. ':0') or {}
  local buried = kind_of(scores[1])
  if buried and buried > REQUEUED then return {'gone', KINDS[buried], note_of(owner)} end
  if scores[2] then return {'gone', 'released', ''} end
  if is_late(owner, stamp) then return {'gone', 'cancelled', ''} end
  return nil
end
local function claim(line)
  if not line then return {'gone', 'expired', ''} end
  if line.state == 'revoked' then return {'gone', 'forced', note_of(owner)} end
  note_stamp(owner, stamp)
  local entries = live_entries(line)
  entries['0'] = math.max(entries['0'] or 0, now + ttl)
  if stamp == 0 then line.state = 'held' end
  call('HSET', WHO, '+' .. owner, line_text(line))
  call('ZADD', HOLDERS, int(write_entries(owner, entries)), owner)
  return {'granted', line.token}
end
local function take_place()
  local ticket, missed = tonumber(brought), tombstone(owner)
  if stamp == 0 then
    if ticket == 0 or missed == REQUEUED then
      ticket = issue()
    elseif missed == EXPIRED then
      bury(owner, REQUEUED)
    end
    meta.last = math.max(meta.last, ticket)
  end
  if meta.created == 0 then meta.created = now_us end
  n_queue = n_queue + 1
  call('ZADD', QUEUE, int(ticket), owner)
  call('HSET', WHO, owner, record, '+' .. owner,
       line_text({state = 'waiting', limit = limit, token = 0, since = now, ttl = ttl,
                  min_hold = min_hold, attended = attended}))
end
local function place()
  local position = call('ZRANK', QUEUE, owner)
  local look_again = -1
  if position < 5 then
    look_again = math.max(1, math.min(earliest_end() - now, 3600000) + 50 * position)
  end
  return {'queued', tonumber(call('ZSCORE', QUEUE, owner)), position + 1, look_again, some_holder()}
end
local function denied()
  if not redis.acl_check_cmd then return nil end
  for _, command in ipairs({'BLPOP', 'DEL', 'HDEL', 'HEXISTS', 'HGET', 'HSET', 'LINDEX', 'LPUSH', 'LSET',
                            'LTRIM', 'PEXPIRE', 'PEXPIREAT', 'RPUSH', 'ZADD', 'ZCOUNT', 'ZMSCORE',
                            'ZRANGEBYSCORE', 'ZRANK', 'ZREM', 'ZSCORE'}) do
    if not redis.acl_check_cmd(command, HOLDERS, HOLDERS) then return command end
  end
end
local reply = gone()
if reply then return reply end
local newcomer = not (held_until(owner) or place_of(owner))
local lacking = newcomer and denied()
if lacking then return redis.error_reply('NOPERM this user has no permissions to run ' .. lacking) end
if not newcomer then touch() end
local could_end = n_holders > 0
sweep()
if could_end then reply = gone() end
if reply then
  finish(owner)
  return reply
end
if held_until(owner) then
  reply = claim(read_line(owner))
  finish(owner)
  return told(reply)
end
if not place_of(owner) then
  admit()
  if more then
    finish(owner)
    return told({'more'})
  end
  local waiters = n_queue > 0 and call('ZCARD', QUEUE) or 0
  if waiters == 0 and fits(limit) then
    local line = {state = stamp == 0 and 'held' or 'granted', limit = limit, since = now, ttl = ttl,
                  min_hold = min_hold, attended = attended}
    note_stamp(owner, stamp)
    grant(owner, line, now + ttl, stamp, owner, record)
    finish(owner)
    return told({'granted', line.token})
  end
  if queueing == 'never' or (max_queue ~= '' and waiters >= tonumber(max_queue)) then
    note_skip(record)
    finish(owner)
    return told({'busy', waiters, some_holder()})
  end
  take_place()
end
call('ZADD', ALIVE, int(now + HEARTBEAT), owner)
note_stamp(owner, stamp)
admit()
if held_until(owner) then
  reply = claim(read_line(owner))
else
  reply = more and {'more'} or place()
end
finish(owner)
return told(reply)
