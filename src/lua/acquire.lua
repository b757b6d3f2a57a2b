-- acquire: joins the queue, keeps the position there alive, claims a grant. May be sent again.
-- ARGV, as names and values:
--       owner, record, limit, ttl, responsive 0|1|2
--       ticket: its earlier one; min_hold; at_once=1: it does not wait; max_queue: full with so many waiters
--       user: the user's name, for whom the ACL is asked once an hour
--       attempt: over a quorum its number
--       once: a field of ONCE; span; asked: how long ago the owner first asked; max_failures: after so many it gives up
--       forgotten: over a quorum, up to which token others have forgotten what is done once
--       supersede: of one that supersedes others its number, or '+'
--       rows: how many the history keeps from this run on, else 100
--       while_closed=1: it may pass a closure; earlier: of an urgent one by how many us it is taken to have come earlier
-- Returns: granted token slot-or-0 | queued ticket position look-again-or--1 holder slice | busy waiters holder
--          | superseded record-of-the-newer
--          | gone kind note | more | done ended took record token | failed times token
--          (look-again: when a lease may end; slice: after which to ask again in any case). With once, granted, queued and
--          busy end in the token up to which everything was forgotten, or 0
local owner, record, responsive = args.owner, args.record, args.responsive
local limit, ttl, min_hold = tonumber(args.limit), tonumber(args.ttl), tonumber(args.min_hold or 0)
local given_ticket, max_queue = tonumber(args.ticket or 0), tonumber(args.max_queue or math.huge)
local stamp = 2 * (args.attempt or 0)
local rows = tonumber(args.rows or RUNS)
local supersedes = args.supersede and s.supersede_part()
local what = args.once and s.what_once()
local may_pass = args.while_closed
local has_words = what or supersedes or may_pass
local reply
local caller = owner  -- is not woken: it reads the reply
local grant_until     -- it is granted the lock at once

-- For how many of the shortest slices a waiter at this place, counted from 0, blocks before it asks again.
local function slices_at(place) return math.min(MOST_SLICES, 1 + math.floor(place / NEAR)) end

-- The score in ALIVE is the end of the heartbeat; a quarter of a ms for each slice after the first shows its length. If the
-- server's memory is full, the first write must be one that it accepts.
local function beat()
  local slices = slices_at(s.n_queue > NEAR and call('ZRANK', QUEUE, owner) or 0)
  s.latest_beat = now + HEARTBEAT * slices + (slices - 1) / 4
  if type(redis.pcall('ZADD', ALIVE, s.latest_beat, owner)) == 'number' then return end
  s.touch()
  call('ZADD', ALIVE, s.latest_beat, owner)
end

local function write_waiter()
  call('HSET', WHO, owner, record, '+' .. owner,
       s.line_text({state = 'waiting', limit = limit, token = 0, since = now, ttl = ttl, min_hold = min_hold,
                    responsive = responsive, words = has_words and s.words_of_line() or ''}))
end

-- One that may pass the closure stands before all that may not.
local function passing(at)
  local passes = may_pass and tonumber(at) > now_us - AHEAD / 2 and s.closed_until()
  return passes and math.max(1, at - AHEAD) or at
end

local ends = call('ZMSCORE', RELEASED, owner, owner .. ':0')
local newest = stamp == 0 and 0 or s.several and s.stamp_of(owner) or lone and lone.owner == owner and lone.stamp or 0
reply = (ends[1] or ends[2] or stamp < newest) and s.ended_reply(ends)
if reply then return reply end

local held, ticket, joined
if first_holder == owner then
  held = first_end
elseif s.several then
  held = s.n_holders > 1 and tonumber(call('ZSCORE', HOLDERS, owner) or nil)
  ticket = not held and s.n_queue > 0 and call('ZSCORE', QUEUE, owner)
end
local newcomer = not (held or ticket)
if newcomer or what then call('LLEN', HISTORY) end
-- What the ACL denies is found before anything is written, since a denied release would keep the lock, and a denied wake
-- would go unnoticed.
if newcomer and redis.acl_check_cmd then
  local verdict = ' acl:' .. (args.user or '') .. '='
  local _, at = string.find(s.words, verdict, 1, true)
  local function is_known(until_ms) return now < tonumber(until_ms) and tonumber(until_ms) <= now + HOUR end
  if not at or not args.user or not is_known(string.match(s.words, '^%d+', at + 1) or 0) then
    local denial = s.denied(verdict, is_known)
    if denial then return redis.error_reply(denial) end
  end
end
if held and (s.unswept or supersedes) or what and s.done_reply() then s.touch() end
if what and args.forgotten then s.forget_as_others() end
-- A waiter that asks before it was swept is in time.
if ticket then beat() end
if s.unswept then
  s.sweep_ended()
  -- It may have ended this owner's hold just now.
  ends = call('ZMSCORE', RELEASED, owner, owner .. ':0')
  reply = s.ended_reply(ends)
  held, ticket = s.held_until(owner), s.queue_ticket(owner)
end
if not reply and what then
  reply = s.done_reply()
  if reply then s.leave_as_done(reply) end
end

if not reply and not held then
  local holder = s.n_holders > 0 and s.obstacle(may_pass)
  -- Behind a holder that excludes all others nobody is served; a closure lets some pass.
  local blocked = s.n_holders == 1 and holder and holder[3] == 1 and holder[2] ~= 'closed'
  if not ticket then
    reply = supersedes and supersedes.superseded_reply() or nil
    if s.n_queue > 0 and not blocked then s.admit() end
    if reply then s.note_refusal('superseded') end
  elseif call('HEXISTS', WHO, '+' .. owner) == 0 then
    write_waiter()  -- it was deleted
    s.queue_is_new = true
  end
  if ticket and passing(ticket) ~= ticket then
    ticket = s.int(passing(ticket))
    call('ZADD', QUEUE, ticket, owner)
  end
  if not reply and not ticket then
    local waiters = s.n_queue > 0 and call('ZCARD', QUEUE) or 0
    if waiters > 0 and may_pass and s.closed_until() then waiters = call('ZCOUNT', QUEUE, '-inf', s.int(now_us - AHEAD / 2)) end
    local full = waiters >= max_queue
    -- An owner that waited here before only comes back to its place.
    if full and (stamp == 0 and given_ticket > 0 or s.stamp_of(owner) > 0) then full = false end
    if s.must_retry then
      reply = {'more'}
    elseif waiters == 0 and not blocked and (s.n_holders == 0 or s.fits(limit, may_pass)) then
      if s.lone then s.unfold() end
      grant_until = now + ttl
    elseif args.at_once or full and not (supersedes and supersedes.replaces()) then
      s.note_refusal()
      reply = {'busy', waiters, s.obstacle(may_pass)}
    else
      if s.lone then s.unfold() end
      -- Over a quorum the client chooses the ticket: the same on all servers, and never one of their tokens. A ticket of a
      -- client whose clock is ahead becomes the time here, or all later waiters would be served before it.
      local at = given_ticket
      local end_kind = ends[1] and s.kind_of(ends[1])
      local taken = supersedes and supersedes.take_over()
      if taken then
        at = at > 0 and math.min(at, taken) or taken
        if args.earlier then at = math.min(at, math.max(1, now_us - args.earlier)) end
      elseif stamp > 0 then
        at = math.min(at, now_us)
      elseif end_kind == REQUEUED then
        at = s.issue()
      elseif at == 0 then
        at = s.issue()
        if args.earlier then at = math.max(1, math.min(at, now_us) - args.earlier) end
      elseif end_kind == EXPIRED then
        s.add_tombstone(owner, REQUEUED)
      end
      at = passing(at)
      at = type(at) == 'number' and s.int(at) or at
      if stamp == 0 and not taken and meta.last - at < 0 then meta.last = at end
      if meta.created == '0' then meta.created = s.int(now_us) end
      s.queue_is_new = s.queue_is_new or s.n_queue == 0
      s.n_queue, s.several, s.changed = s.n_queue + 1, true, true
      write_waiter()
      call('ZADD', QUEUE, at, owner)
      beat()
      joined = at
    end
  end
  if not reply and not grant_until then
    if ticket then caller = nil end  -- nobody may read the reply to a late copy of its request
    if stamp > 0 then s.note_stamp(owner, stamp) end
    if not blocked then
      s.admit()
      held, holder = s.held_until(owner), s.obstacle(may_pass)
    end
    if not held and s.must_retry then
      reply = {'more'}
    elseif not held then
      local position, look_again = call('ZRANK', QUEUE, owner), -1
      if position < 5 then
        local first = s.first_end
        if s.holders_moved then first = tonumber(call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')[2] or math.huge) end
        look_again = math.max(1, math.min(first - now, HOUR) + 50 * position)
      end
      reply = {'queued', tonumber(ticket or joined), position + 1, look_again, holder,
               SLICE * slices_at(position)}
    end
  end
end

-- The owner claims its grant, or holds the lock already.
if held and not reply then
  caller = owner
  local line = s.lone or s.read_line(owner)
  if line.state == 'revoked' then
    reply = {'gone', 'forced', s.note_of(owner)}
  elseif line.token ~= '0' then
    reply = supersedes and supersedes.overtaken(line)
    if not reply then
      if supersedes then supersedes.note_newest(tonumber(line.token)) end
      if s.keep ~= rows then s.note_keep(rows) end  -- a sweep may write the row of this run
      local its_end = math.max(held, now + ttl)
      if line.entries == '0=' .. held then
        line.entries = '0=' .. its_end
      else
        s.unfold()
        local entries = s.live_entries(line)
        entries['0'] = math.max(entries['0'] or 0, now + ttl)
        its_end = s.set_entries(line, entries)
      end
      if stamp == 0 then line.state = 'held' end
      s.store_hold(owner, line, its_end, stamp)
      reply = {'granted', tonumber(line.token), line.words ~= '' and s.slot_of(line) or 0}
    end
  elseif s.is_numbered(limit) and s.n_holders > 1 then
    -- The line was deleted, and its token with it. Which slot it had, and which the others have, is not known.
    reply = {'queued', math.max(1, given_ticket), 1, math.max(1, held - now), s.describe(owner, held), SLICE}
  else
    s.n_holders = s.n_holders - 1
    grant_until = math.max(held, now + ttl)
  end
end

if grant_until then
  -- Over a quorum the write-back of the token claims it.
  local line = {state = stamp == 0 and 'held' or 'granted', limit = limit, ttl = ttl, min_hold = min_hold,
                responsive = responsive, words = has_words and s.words_of_line() or '', record = record}
  if supersedes then supersedes.note_newest(math.max(meta.last + 1, now_us)) end
  if s.keep ~= rows then s.note_keep(rows) end
  s.grant(owner, line, grant_until, stamp)
  reply = {'granted', tonumber(line.token), line.words ~= '' and s.slot_of(line) or 0}
end

local word = reply[1]
if what and (word == 'granted' or word == 'queued' or word == 'busy') then s.with_forgotten(reply) end

