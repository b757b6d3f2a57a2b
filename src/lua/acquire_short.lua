-- acquire: joins the queue, keeps the position there alive, claims a grant. May be sent again.
-- ARGV: owner, its earlier ticket or 0, limit, ttl, min-hold, responsive 0|1|2, wait|never, max-queue or '', record,
--       over a quorum the number of the attempt, else 0; the user's name, for whom the ACL is asked once an hour;
--       what is done once: a field of ONCE or '', its span, how long ago the owner first asked, after how many failures
--       it gives up or ''; the sixteenth: rows that the history keeps from this run on, else 100; the seventeenth: of one
--       that supersedes others its number or '+', else ''; the eighteenth: over a quorum, of what is done once, up to
--       which token others have forgotten it, else 0
-- Returns: granted token slot-or-0 | queued ticket position look-again-or--1 holder slice | busy waiters holder
--          | superseded record-of-the-newer
--          | gone kind note | more | done ended took record token | failed times
--          (look-again: when a lease may end; slice: after which to ask again in any case). With once, granted, queued and
--          busy end in the token up to which everything was forgotten, or 0
local owner, given_ticket, limit, ttl, min_hold, responsive, queueing, max_queue, record, attempt, user, once_field,
      once_span, asked_ago, max_failures = unpack(ARGV)
local supersede, forgotten = ARGV[17], ARGV[18]
if user == '' then user = nil end
local keep_from_now = tonumber(ARGV[16] or '') or RUNS

if older then return older end

-- The first command that a hold needs and an ACL denies. Checked before anything is written, since a denied release
-- would keep the lock, and a denied wake would go unnoticed. Servers before 7.0 cannot check it. The check raises an
-- error for a command that the server does not have; without BLPOP a waiter asks again instead.
local function denied()
  local verdict = ' acl:' .. (user or '') .. '='
  local _, at = string.find(words, verdict, 1, true)
  if not redis.acl_check_cmd or (at and user and now < tonumber(string.match(words, '^%d+', at + 1) or 0)) then return nil end
  for _, command in ipairs({'BLPOP', 'DEL', 'GET', 'HDEL', 'HEXISTS', 'HGET', 'HGETALL', 'HLEN', 'HMGET', 'HSET',
                            'LINDEX', 'LPUSH', 'LSET', 'LTRIM', 'PEXPIRE', 'PEXPIREAT', 'PTTL', 'SET', 'ZADD', 'ZCARD',
                            'ZCOUNT', 'ZMSCORE', 'ZRANGE', 'ZRANGEBYSCORE', 'ZRANK', 'ZREM', 'ZSCORE'}) do
    local known, allowed = pcall(redis.acl_check_cmd, command, HOLDERS, HOLDERS)
    if known and not allowed then return 'NOPERM this user has no permissions to run ' .. command end
    if not known and command ~= 'BLPOP' then return 'ERR this server has no command ' .. command end
  end
  if not user then return nil end
  words = string.gsub(words, ' acl:%S+=(%d+)', function(until_ms) return tonumber(until_ms) <= now and '' or nil end)
  words = words .. verdict .. now + HOUR
end

do
  -- The short ways are without min-hold, and neither for what is done once nor for what supersedes; all but the first are
  -- for one server.
  local short = min_hold == '0' and tonumber(ttl) <= DAY and (once_field or '') == '' and (supersede or '') == '' and
                keep == keep_from_now
  local plain = short and (attempt or '0') == '0'

  -- A free lock becomes a folded hold. Over a quorum it counts as a grant once the token is written back.
  if short and present == 0 then
    local ends = call('ZMSCORE', RELEASED, owner, owner .. ':0')
    call('LLEN', HISTORY)
    if not ends[1] and not ends[2] and old_head == NOBODY then
      local denial = denied()
      if denial then return redis.error_reply(denial) end
      local token = string.format('%.0f', math.max(last + 1, now_us))
      local lease_end = now + ttl
      local slot = plain and limit ~= '1' and tonumber(limit) <= MOST_SLOTS
      local word = not plain and 'try=granted:' .. 2 * attempt .. ' ' or slot and 'slot=1 ' or ''
      call('SET', HOLDERS, '1 ' .. owner .. ' ' .. limit .. ' ' .. token .. ' ' .. now .. ' ' .. ttl .. ' ' ..
                           responsive .. ' ' .. lease_end .. ' ' .. word .. '| ' .. record, 'PXAT', lease_end + GRACE)
      if plain then
        write_memory(token, token, limit == '1' and token or last_exclusive, NOBODY)
      else
        write_memory(token, last_grant, last_exclusive, NOBODY)
      end
      return {'granted', tonumber(token), slot and 1 or 0}
    end
  end

  -- There is one holder, whose lease has not ended, and no waiter has died: nothing is to be swept, admitted or woken.
  local single, single_end = nil, nil
  local owner_line, owner_entries
  if plain and (present == 3 or present == 5) then
    local holder = call('ZRANGE', HOLDERS, 0, 1, 'WITHSCORES')
    local head = present == 5 and call('ZRANGE', QUEUE, 0, 0)[1] or NOBODY
    local dead = present == 5 and call('ZCOUNT', ALIVE, '-inf', now) or 0
    owner_line, owner_entries = unpack(call('HMGET', WHO, '+' .. owner, '@' .. owner))
    single_end = tonumber(holder[2] or 0)
    if single_end > now and not holder[3] and single_end <= now + DAY and call('ZCARD', LIMITS) == 1 and dead == 0 and
       head == old_head and tonumber(hold_end) <= now then
      single = holder[1]
    end
  end

  -- The only holder claims its grant.
  if single == owner and owner_entries == '0=' .. single_end then
    local state, rest, token = string.match(owner_line or '', '^1 (%l+)( %d+ (%d+) .*)$')
    if state == 'granted' or state == 'held' then
      local lease_end = math.max(now + ttl, single_end)
      local who_end = lease_end + GRACE
      if call('ZCOUNT', RELEASED, (who_end + 1) * 16, '+inf') > 0 then
        who_end = math.floor(call('ZRANGE', RELEASED, -1, -1, 'WITHSCORES')[2] / 16)
      end
      call('PEXPIREAT', HOLDERS, lease_end + GRACE)
      call('PEXPIREAT', LIMITS, lease_end + GRACE)
      call('PEXPIREAT', WHO, who_end)
      if present == 5 then
        call('PEXPIREAT', QUEUE, who_end)
        call('PEXPIREAT', ALIVE, who_end)
      end
      call('ZADD', HOLDERS, lease_end, owner)
      call('HSET', WHO, '+' .. owner, '1 held' .. rest, '@' .. owner, '0=' .. lease_end)
      return {'granted', tonumber(token), tonumber(string.match(rest, ' slot=(%d+)') or 0)}
    end
  end

  -- Behind an exclusive holder a waiter keeps its place alive, or a newcomer joins the queue. WHO lives a minute beyond the
  -- holder's lease, and so beyond the heartbeat.
  if single and single ~= owner then
    local ticket = owner_line and present == 5 and call('ZSCORE', QUEUE, owner)
    local joins = not owner_line and given_ticket == '0' and queueing == 'wait' and max_queue == ''
    local ends = joins and call('ZMSCORE', RELEASED, owner, owner .. ':0') or {}
    joins = joins and not ends[1] and not ends[2]
    local line, entries, its_record = unpack(call('HMGET', WHO, '+' .. single, '@' .. single, single))
    local l = {string.match(line or '', '^1 (%l+) (%d+) (%d+) (%d+) (%d+) %d+ ([012])')}
    if (ticket or joins) and l[2] == '1' and entries == '0=' .. single_end then
      if joins then
        call('LLEN', HISTORY)
        local denial = denied()
        if denial then return redis.error_reply(denial) end
        ticket = string.format('%.0f', math.max(last + 1, now_us))
        call('HSET', WHO, owner, record, '+' .. owner,
             table.concat({'1 waiting', limit, 0, now, ttl, 0, responsive}, ' '))
        call('ZADD', QUEUE, ticket, owner)
        write_memory(ticket, last_grant, last_exclusive, present == 5 and old_head or owner)
      end
      local position, left = call('ZRANK', QUEUE, owner), single_end - now
      local slices = slices_at(position)
      local last_end = now + HEARTBEAT * slices
      if call('ZCOUNT', ALIVE, last_end + 1, '+inf') > 0 then
        last_end = math.floor(call('ZRANGE', ALIVE, -1, -1, 'WITHSCORES')[2])
      end
      local queue_end = math.max(last_end + HEARTBEAT, now + call('PTTL', WHO))
      call('PEXPIREAT', QUEUE, queue_end)
      call('ZADD', ALIVE, beat_score(slices), owner)
      call('PEXPIREAT', ALIVE, queue_end)
      local look_again = position < 5 and math.max(1, math.min(left, HOUR) + 50 * position) or -1
      return {'queued', tonumber(ticket), position + 1, look_again,
              {single, l[1], tonumber(l[2]), tonumber(l[3]), tonumber(l[4]), now - l[4], left, 1, l[6],
               its_record or '', tonumber(l[5])},
              SLICE * slices}
    end
  end
end

