-- How many times the shortest slice a waiter at this place, from 0, may block before it asks again.
local function slices_at(place) return math.min(MOST_SLICES, 1 + math.floor(place / NEAR)) end

-- ALIVE has when a waiter's heartbeat ends; a quarter of a ms for each slice after the first shows how long it was.
local function beat_score(slices) return string.format('%.2f', now + HEARTBEAT * slices + (slices - 1) / 4) end

do
  -- The heartbeat of a waiter that is far from the head: one write. What else there is to do (somebody has died, a lease
  -- has ended, the keys are to live longer) is left to the other ways.
  local function beat_at_rest()
    if (ARGV[12] or '') ~= '' then return nil end  -- it may be done by now
    local owner, stamp = ARGV[1], 2 * tonumber(ARGV[10] or 0)
    if tonumber(call('ZSCORE', ALIVE, owner) or 0) % 1 == 0 then return nil end  -- near, or unknown
    local rank = call('ZRANK', QUEUE, owner)
    if not rank or rank < NEAR then return nil end
    local slices = slices_at(rank)
    local holder, ends = unpack(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES'))
    if tonumber(ends) <= now or call('ZCOUNT', ALIVE, '-inf', now) > 0 then return nil end
    if call('PTTL', ALIVE) < HEARTBEAT * slices then return nil end
    if stamp > 0 and stamp < tonumber(call('HGET', WHO, '#' .. owner) or 0) then return nil end
    local found = call('HMGET', WHO, '+' .. holder, '@' .. holder, holder)
    local state, limit, token, since, ttl, responsive =
      string.match(found[1] or '', '^1 (%l+) (%d+) (%d+) (%d+) (%d+) %d+ ([012])')
    if not state then return nil end

    -- Refused by a server that is out of memory: the usual way begins with a write that it accepts.
    if type(redis.pcall('ZADD', ALIVE, beat_score(slices), owner)) == 'table' then return nil end
    if stamp > 0 then call('HSET', WHO, '#' .. owner, stamp) end
    local entries, ticket = 1, ARGV[2]
    if found[2] ~= '0=' .. ends then entries = select(2, string.gsub(found[2] or '', '=', '')) end
    if state == 'cooldown' then holder = string.sub(holder, 2) end
    -- Over a quorum the ticket here may be less than the client's own.
    if ticket == '0' or stamp > 0 then ticket = call('ZSCORE', QUEUE, owner) end
    return {'queued', tonumber(ticket), rank + 1, -1,
            {holder, state, tonumber(limit), tonumber(token), tonumber(since), now - since, ends - now, entries,
             responsive, found[3] or '', tonumber(ttl), tonumber(string.match(found[1], ' slot=(%d+)') or 0)},
            SLICE * slices}
  end

  local resting = present == 5 and beat_at_rest()
  if resting then return resting end
end

