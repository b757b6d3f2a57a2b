-- heartbeat: keeps the position of an idle waiter. It never changes the order of the queue, so it may arrive late, twice or never. A client
-- of a quorum sends none.
-- Keys and clock are those of begin.lua, which this script does not include because of its cost.
-- include: beats
-- Arguments: owner
-- Replies:
--   waits  position, slice; and of the closure, or else of the first lease to expire: holder, as acquire names it, and left
--   ask    call acquire: the owner is not queued or is near the head, something is due, or nobody holds the lock
local HOLDERS, LIMITS, QUEUE, ALIVE, WHO, META = unpack(KEYS)
local call, owner = redis.call, ARGV[2]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local place, first = call('ZRANK', QUEUE, owner), call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')
local is_due = not first[2] or tonumber(first[2]) <= now or call('ZCOUNT', ALIVE, '-inf', now) > 0
if not place or place < NEAR or is_due or not call('ZSCORE', ALIVE, owner) then return {'ask'} end
if tonumber(call('HGET', META, 'form') or 0) ~= FORM then return {'ask'} end
local slices = beats.slices_at(place)
-- A server whose memory is full may refuse this; acquire begins with a command that is never refused.
local beat = redis.pcall('ZADD', ALIVE, beats.score(now, slices), owner)
if type(beat) == 'table' then return {'ask'} end
local holder, ends, closed = string.gsub(first[1], '^~', ''), first[2], call('ZSCORE', HOLDERS, CLOSED)
if closed then holder, ends = string.match(' ' .. (call('HGET', WHO, CLOSED) or ''), '^[^|]* id=(%S+)') or '', closed end
return {'waits', 'position', place + 1, 'slice', SLICE * slices, 'holder', holder, 'left', ends - now}
