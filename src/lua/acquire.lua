-- The usual way of acquire.
limit, ttl, min_hold = tonumber(limit), tonumber(ttl), tonumber(min_hold)
local stamp = 2 * tonumber(attempt or 0)
local what = (once_field or '') ~= '' and
             {field = once_field, span = tonumber(once_span), asked = now - tonumber(asked_ago),
              max = tonumber(max_failures)} or nil
do
  local known_once = what and once_of(read_line(owner))
  if known_once then what.asked = math.min(what.asked, known_once.asked) end
end

-- With the token up to which everything was forgotten: a member of a quorum that was down does not know of it.
local function with_forgotten(reply)
  if what then reply[#reply + 1] = math.max(forgotten_token(), read_mark(what.field).forgotten) end
  return reply
end

local function words_of_line()
  return once_words(what) .. ((supersede or '') ~= '' and ' supersede=' .. supersede or '')
end

local function ended_reply()
  local scores = n_released > 0 and call('ZMSCORE', RELEASED, owner, owner .. ':0') or {}
  local end_kind = kind_of(scores[1])
  if end_kind == DONE and what then
    local failures = tonumber(string.match(note_of(owner), '^failed (%d+)$'))
    return decided(what) or failures and {'failed', failures} or {'gone', 'done', ''}
  end
  if end_kind and end_kind > REQUEUED then return {'gone', KINDS[end_kind], note_of(owner)} end
  if kind_of(scores[2]) then return {'gone', 'released', ''} end
  if is_late(owner, stamp) then return {'gone', 'cancelled', ''} end
  return nil
end

-- Of the waiters that supersede others only one stays: that with the greatest number; without numbers the last one.
local superseded_reply, replaces, take_over, note_newest, overtaken
do
  local number = tonumber(supersede or '')
  local function number_of(line) return tonumber(string.match(line.words, ' supersede=(%d+)')) end

  local function other_one()
    local other = (supersede or '') ~= '' and read_mark('waits').record or ''
    return other ~= '' and other ~= owner and queue_ticket(other) and other or nil
  end

  -- To one that is older than another that waits, or that was granted the lock before.
  function superseded_reply()
    local newest = number and read_mark('newest')
    if newest and newest.token > number then return {'superseded', newest.record} end
    local other = other_one()
    local line = other and read_line(other)
    if not line then return nil end
    local its, older = number_of(line), false
    if number and its then
      older = number < its
    else
      older = tonumber(given_ticket) > 0 and tonumber(given_ticket) < tonumber(queue_ticket(other))
    end
    return older and {'superseded', line.record} or nil
  end

  -- A newer one has held the lock since this one was granted it: cancels the grant.
  function overtaken(line)
    local newest = number and line.state == 'granted' and read_mark('newest')
    if not newest or newest.token <= number then return nil end
    dismiss(owner, record, SUPERSEDED, newest.record)
    admit()
    return {'superseded', newest.record}
  end

  function replaces() return other_one() ~= nil end

  local function replace(other) dismiss(other, read_line(other).record, SUPERSEDED, record) end

  -- Joins the queue in the place of the older one, and returns its ticket; nil where there is none.
  function take_over()
    local other = other_one()
    local ticket = other and tonumber(queue_ticket(other))
    if other then replace(other) end
    if (supersede or '') ~= '' then
      local waits = read_mark('waits')
      waits.record = owner
      write_mark({field = 'waits', span = 0}, waits)
    end
    return ticket
  end

  -- An older one that has come since the grant must not run after this one.
  function note_newest()
    if not number or not note_number(number, record) then return end
    local other = other_one()
    if other and (number_of(read_line(other)) or number) < number then replace(other) end
  end
end

local function claim(line)
  if not line then return {'gone', 'expired', ''} end
  if line.state == 'revoked' then return {'gone', 'forced', note_of(owner)} end
  local newer = overtaken(line)
  if newer then return newer end
  note_newest()
  note_stamp(owner, stamp)
  note_keep(keep_from_now)  -- a sweep may write the row of this run
  local entries = live_entries(line)
  entries['0'] = math.max(entries['0'] or 0, now + ttl)
  if stamp == 0 then line.state = 'held' end
  call('HSET', WHO, '+' .. owner, line_text(line))
  call('ZADD', HOLDERS, int(write_entries(owner, entries)), owner)
  return with_forgotten({'granted', line.token, slot_of(line.words)})
end

local function refresh_heartbeat()
  local place = n_queue > NEAR and call('ZRANK', QUEUE, owner) or 0
  call('ZADD', ALIVE, beat_score(slices_at(place)), owner)
end

-- Over a quorum the client chooses the ticket: the same on all servers, and never one of their tokens. A ticket of a
-- client whose clock is ahead becomes the time here, or all later waiters would be served before it.
local function join_queue()
  local ticket, end_kind = tonumber(given_ticket), tombstone(owner)
  local taken = take_over()
  if taken then
    ticket = ticket > 0 and math.min(ticket, taken) or taken
  elseif stamp == 0 then
    if ticket == 0 or end_kind == REQUEUED then
      ticket = issue()
    elseif end_kind == EXPIRED then
      add_tombstone(owner, REQUEUED)
    end
    meta.last = math.max(meta.last, ticket)
  else
    ticket = math.min(ticket, now_us)
  end
  if meta.created == 0 then meta.created = now_us end
  n_queue = n_queue + 1
  call('ZADD', QUEUE, int(ticket), owner)
  call('HSET', WHO, owner, record, '+' .. owner,
       line_text({state = 'waiting', limit = limit, token = 0, since = now, ttl = ttl,
                  min_hold = min_hold, responsive = responsive, words = words_of_line()}))
end

local function queued_reply()
  local position = call('ZRANK', QUEUE, owner)
  local look_again = -1
  if position < 5 then
    look_again = math.max(1, math.min(earliest_end() - now, 3600000) + 50 * position)
  end
  return with_forgotten({'queued', tonumber(call('ZSCORE', QUEUE, owner)), position + 1, look_again, some_holder(),
                         SLICE * slices_at(position)})
end

-- Whether what it asks for is done, or failed too often, and nothing runs under its hold yet.
local function done_reply()
  local line = what and held_until(owner) and read_line(owner)
  if not what or (line and line.state ~= 'granted') then return nil end
  return decided(what)
end

-- A newcomer that is refused leaves no tombstone: a word shows that the last one was counted, in case it asks again.
local function note_refusal(is_done)
  local counted = ' skipped=' .. string.sub(owner, 1, 8)
  if string.match(words, ' skipped=%S+') == counted then return end
  words = string.gsub(words, ' skipped=%S+', '') .. counted
  note_skip(record, is_done)
end

-- It cancels its grant, and gives up its place in the queue.
local function leave_as_done(verdict)
  keep_mark(what)
  if queue_ticket(owner) or held_until(owner) then
    dismiss_as_done(owner, record, verdict)
  else
    note_refusal(verdict[1] == 'done')
  end
  admit()
end

local reply = ended_reply()
if reply then return reply end

do
  local newcomer = not (held_until(owner) or queue_ticket(owner))
  local denial = newcomer and denied()
  if denial then return redis.error_reply(denial) end
  if not newcomer or done_reply() then touch() end
end
unfold()
if what and (forgotten or '0') ~= '0' then
  -- Another server says that this was forgotten.
  local mark, through = read_mark(what.field), agreed(forgotten)
  if mark.ended > 0 and mark.token <= through then forget_mark(what, mark, through) end
end
local could_end = n_holders > 0
-- A waiter that asks in the last millisecond of its heartbeat is in time: it must not be swept.
if n_alive > 0 and tonumber(call('ZSCORE', ALIVE, owner) or 0) == now then refresh_heartbeat() end
sweep()

-- The sweep may have ended this owner's revoked lease just now.
if could_end then reply = ended_reply() end
if reply then
  finish(owner)
  return reply
end

reply = done_reply()
if reply then
  leave_as_done(reply)
  finish(owner)
  return with_wakes(reply)
end

if held_until(owner) then
  reply = claim(read_line(owner))
  finish(owner)
  return with_wakes(reply)
end

if not queue_ticket(owner) then
  reply = superseded_reply()
  admit()
  if reply then
    note_refusal()
    finish(owner)
    return with_wakes(reply)
  end
  if must_retry then
    finish(owner)
    return with_wakes({'more'})
  end
  local waiters = n_queue > 0 and call('ZCARD', QUEUE) or 0
  if waiters == 0 and fits(limit) then
    -- Over a quorum the write-back of the token claims it.
    local line = {state = stamp == 0 and 'held' or 'granted', limit = limit, since = now, ttl = ttl,
                  min_hold = min_hold, responsive = responsive, words = words_of_line()}
    note_newest()
    note_stamp(owner, stamp)
    note_keep(keep_from_now)
    grant(owner, line, now + ttl, stamp, owner, record)
    finish(owner)
    return with_wakes(with_forgotten({'granted', line.token, slot_of(line.words)}))
  end
  local full = max_queue ~= '' and waiters >= tonumber(max_queue)
  -- One that waited here before only comes back to its place.
  if full and (stamp == 0 and tonumber(given_ticket) > 0 or stamp_of(owner) > 0) then full = false end
  if queueing == 'never' or full and not replaces() then
    note_refusal()
    finish(owner)
    return with_wakes(with_forgotten({'busy', waiters, some_holder()}))
  end
  join_queue()
end

refresh_heartbeat()
note_stamp(owner, stamp)
admit()
if held_until(owner) then
  reply = claim(read_line(owner))
else
  reply = must_retry and {'more'} or queued_reply()
end
finish(owner)
return with_wakes(reply)
