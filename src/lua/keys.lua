-- How entries, tombstones and what is left of owners are read and stored, and how a folded hold is unfolded.

-- `..` and tostring round to 14 digits, which would break tokens.
function s.int(n) return type(n) == 'number' and string.format('%.0f', n) or n end

-- The first write of a script that must also work when memory is full: PEXPIREAT is not refused then,
-- and the server lets the writes after it pass.
function s.touch() call('PEXPIREAT', META, now + math.max(META_LIFE, call('PTTL', META))) end

-- It comes before the first write: a server whose memory is full refuses HSET, and then nothing has changed.
function s.unfold()
  if not s.lone then return end
  local owner, line = s.lone.owner, s.lone
  s.lone, s.several, s.present = false, true, 3
  call('HSET', WHO, owner, line.record, '+' .. owner, s.line_text(line), '@' .. owner, line.entries)
  s.note_stamp(owner, line.stamp)
  call('DEL', HOLDERS)
  call('ZADD', HOLDERS, line.ends, owner)
  call('ZADD', LIMITS, line.limit, owner)
  s.sole_end, s.holders_moved = line.ends, true
end

function s.held_until(owner)
  if s.lone then return owner == s.lone.owner and s.first_end or nil end
  return s.n_holders > 0 and tonumber(call('ZSCORE', HOLDERS, owner) or nil) or nil
end

function s.queue_ticket(owner) return s.n_queue > 0 and call('ZSCORE', QUEUE, owner) or nil end

-- A word of a holder's line: `result` is how its run ended while runs nested in it go on; `counted` shows that its lease
-- ended before, and was put back.
function s.line_word(line, name)
  return line and line.words ~= '' and string.match(line.words, ' ' .. name .. '=(%S+)') or nil
end

-- The entries of a line that go on; usually it has one.
function s.live_entries(line)
  local entries = {}
  for id, ends in string.gmatch(line.entries, '(%w+)=(%d+)') do
    if tonumber(ends) > now then entries[id] = tonumber(ends) end
  end
  return entries
end

-- Puts entries into a line, and returns the latest end of them.
function s.set_entries(line, entries)
  local texts, latest = {}, 0
  for id, ends in pairs(entries) do
    texts[#texts + 1] = id .. '=' .. ends
    latest = math.max(latest, ends)
  end
  line.entries = table.concat(texts, ';')
  return latest
end

-- The kind of a tombstone, or nil; one that is overdue counts no more.
function s.kind_of(score)
  return score and math.floor(score / 16) > now and score % 16 or nil
end

-- The word for a kind of tombstone, as replies have it.
function s.ended_as(kind)
  local KINDS = {[0] = 'expired', 'expired', 'released', 'cancelled', 'done', 'superseded', 'removed', 'forced'}
  return KINDS[kind]
end

function s.tombstone(owner) return s.kind_of(call('ZSCORE', RELEASED, owner)) end

function s.note_of(owner) return s.several and call('HGET', WHO, '!' .. owner) or '' end

function s.forget(owner)
  if s.several then call('HDEL', WHO, owner, '+' .. owner, '@' .. owner) end
end

function s.remove_waiter(owner)
  call('ZREM', QUEUE, owner)
  call('ZREM', ALIVE, owner)
  s.forget(owner)
end

-- After a hold that ran something the lock stays taken until its min-hold is over. Where the clock was set back
-- since, min-hold counts from now.
function s.start_cooldown(owner, line)
  local ends = math.min(line.since, now) + line.min_hold
  if line.state ~= 'held' or ends <= now then return end
  s.unfold()
  s.store_hold('~' .. owner, {state = 'cooldown', limit = line.limit, token = line.token, since = line.since, ttl = 0,
                              min_hold = 0, responsive = '0', words = s.with_slot('', s.slot_of(line)), entries = '',
                              record = line.record}, ends, 0, true)
end

