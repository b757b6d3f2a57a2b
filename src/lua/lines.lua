-- How the lines of holders and waiters are read and stored, and how replies describe a holder.

-- The fields of WHO: `+owner` is `1 state limit token since ttl min-hold responsive`, then words `key=value`, which are
-- kept; `@owner` the entries as id=end, separated by semicolons; `owner` the record. A holder whose line was deleted is
-- taken for a live run (responsive: see RUN in the release) until its renewal brings the line back: its token is 0.
-- Over a quorum an owner numbers its attempts from 1, and `#owner` is the newest stamp seen: twice the attempt, plus one
-- once that attempt was cancelled. A request with an older stamp is late and changes nothing. Over one server there are no
-- stamps: 0.
function s.read_line(owner)
  if s.lone then return owner == s.lone.owner and s.lone or nil end
  local found = call('HMGET', WHO, '+' .. owner, '@' .. owner, owner, '#' .. owner)
  local state, limit, token, since, ttl, min_hold, responsive, line_words =
    string.match(found[1] or '', '^1 (%l+) (%d+) (%d+) (%d+) (%d+) (%d+) ([012])(.*)$')
  local ends = not state and call('ZSCORE', HOLDERS, owner)
  if ends then
    local cools = string.sub(owner, 1, 1) == '~'
    return {state = owner == CLOSED and 'closed' or cools and 'cooldown' or 'held', limit = tonumber(call('ZSCORE', LIMITS, owner) or 1), token = '0',
            since = now, ttl = 0, min_hold = 0, responsive = cools and '0' or '2', words = '', entries = '0=' .. ends,
            record = found[3] or '', stamp = tonumber(found[4] or 0)}
  end
  if not state then return nil end
  return {state = state, limit = tonumber(limit), token = token, since = tonumber(since),
          ttl = tonumber(ttl), min_hold = tonumber(min_hold), responsive = responsive, words = line_words,
          entries = found[2] or '', record = found[3] or '', stamp = tonumber(found[4] or 0)}
end

function s.line_text(l)
  return '1 ' .. l.state .. ' ' .. l.limit .. ' ' .. l.token .. ' ' .. l.since .. ' ' .. l.ttl .. ' ' .. l.min_hold ..
         ' ' .. l.responsive .. l.words
end

function s.stamp_of(owner)
  if s.lone then return owner == s.lone.owner and s.lone.stamp or 0 end
  return s.several and tonumber(call('HGET', WHO, '#' .. owner) or 0) or 0
end

function s.note_stamp(owner, stamp)
  if stamp == 0 then return end
  s.several = true
  call('HSET', WHO, '#' .. owner, stamp)
end

-- How long the keys of holders live: 30 days longer than the lease of each of them, and than the longest --min-hold.
function s.live_until(ends)
  if s.n_holders > 1 then ends = math.max(ends, call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2] or 0) end
  s.lease_end = math.max(ends + META_LIFE, meta.hold)
  call('PEXPIREAT', HOLDERS, s.lease_end)
  call('PEXPIREAT', LIMITS, s.lease_end)
end

-- Stores one of several holders, or one that others wait for.
function s.store_line(owner, line, ends, stamp, is_new)
  s.several = true
  if is_new then
    s.n_holders, s.holders_moved = s.n_holders + 1, true
    call('HSET', WHO, owner, line.record, '+' .. owner, s.line_text(line), '@' .. owner, line.entries)
    call('ZADD', LIMITS, line.limit, owner)
  else
    s.live_until(ends)
    if ends < s.first_end then s.holders_moved = true end
    call('HSET', WHO, '+' .. owner, s.line_text(line), '@' .. owner, line.entries)
  end
  if s.n_holders == 1 then s.sole_end = ends end
  call('ZADD', HOLDERS, ends, owner)
  s.note_stamp(owner, stamp)
end

-- A holder as replies have it: owner state limit token since held left entries responsive record ttl slot. The owner of a
-- closure is its id.
function s.describe(owner, ends)
  local line = s.read_line(owner)
  local entries = 1
  if line.entries ~= '0=' .. ends then
    entries = 0
    for _ in pairs(s.live_entries(line)) do entries = entries + 1 end
  end
  local shown = string.sub(owner, 1, 1) == '~' and string.sub(owner, 2) or owner
  if owner == CLOSED then shown = s.line_word(line, 'id') or '' end
  return {shown, line.state, line.limit, tonumber(line.token),
          line.since, now - line.since, ends - now, entries, line.responsive, line.record, line.ttl,
          line.words ~= '' and s.slot_of(line) or 0}
end

-- Until when the lock is closed; nil where it is open.
function s.closed_until()
  if s.lone or s.n_holders == 0 or s.n_holders == 1 and not s.holders_moved and s.first_holder ~= CLOSED then return nil end
  local ends = tonumber(call('ZSCORE', HOLDERS, CLOSED) or 0)
  return ends > now and ends or nil
end

-- One live holder, or false.
function s.some_holder()
  if s.n_holders == 0 then return false end
  if s.first_end > now and s.first_holder ~= CLOSED and (s.lone or not s.holders_moved) then
    return s.describe(s.first_holder, s.first_end)
  end
  if s.lone then return false end
  local two = call('ZRANGEBYSCORE', HOLDERS, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 2)
  local at = two[1] == CLOSED and 3 or 1
  return two[at] and s.describe(two[at], tonumber(two[at + 1])) or false
end

-- Why the lock is not granted now: it is closed, to one that does not pass, or held.
function s.obstacle(passes)
  local ends = not passes and s.closed_until()
  return ends and s.describe(CLOSED, ends) or s.some_holder()
end
