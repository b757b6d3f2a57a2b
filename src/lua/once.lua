-- What was done once, and what supersedes others. ONCE has a field for each KEY (`key:KEY`), for each period (`per:LABEL`),
-- and `within`, each with `1 kept token asked granted ended failures failed record`: until when it is kept; of the last
-- success the token, when it asked, was granted the lock and ended, and its record; the number of failed runs since, and
-- when the last of them asked. If nothing has succeeded, ended is 0, and token is that up to which everything was forgotten.
-- The token of `newest` is the greatest number that superseded others and was granted the lock. The record of `waits` is
-- `last claimer record`: the owner that superseded others last, and the owner without a number that was granted the lock
-- last, with its record; the token is the ticket of the latter.
local once_rules
function s.once_part()
  if once_rules then return once_rules end
  local once = {}
  once_rules = once
  local MARKS = 1000  -- keys that were done, and as many others: that failed, or were forgotten
  local MARK = '^1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$'

  function once.read_mark(field)
    local text = call('HGET', ONCE, field) or ''
    local kept_until, token, asked, granted_at, ended, failures, failed, record = string.match(text, MARK)
    if not kept_until or tonumber(kept_until) <= now then
      return {kept = 0, token = 0, asked = 0, granted = 0, ended = 0, forgotten = 0, failures = 0, failed = 0,
              record = ''}
    end
    return {kept = tonumber(kept_until), token = tonumber(token), asked = tonumber(asked), granted = tonumber(granted_at),
            ended = tonumber(ended), forgotten = ended == '0' and tonumber(token) or 0, failures = tonumber(failures),
            failed = tonumber(failed), record = record, was_done = ended ~= '0'}
  end

  local function is_key(field) return string.sub(field, 1, 4) == 'key:' end

  -- Makes room for one more field, of those that were done or of the others: removes what has expired and, of MARKS keys of
  -- the same sort, the least recently used one. Returns whether it removed that one.
  local function make_room(field, done)
    local n = call('HLEN', ONCE)
    if n == 0 or n < MARKS and n % 64 > 0 then return false end
    local all, over, keys, oldest, oldest_kept = call('HGETALL', ONCE), {}, 0, nil, math.huge
    for i = 1, #all, 2 do
      local kept_until, ended = string.match(all[i + 1], '^1 (%d+) %d+ %d+ %d+ (%d+) ')
      kept_until = tonumber(kept_until or 0)
      if kept_until <= now then
        over[#over + 1] = all[i]
      elseif is_key(all[i]) and (ended ~= '0') == done then
        keys = keys + 1
        if kept_until < oldest_kept then oldest, oldest_kept = all[i], kept_until end
      end
    end
    local full = keys >= MARKS and is_key(field)
    if full then over[#over + 1] = oldest end
    if #over > 0 then call('HDEL', ONCE, unpack(over)) end
    return full
  end

  -- A period is kept for two of its length.
  function once.write_mark(what, mark)
    local done = mark.ended > 0
    local pushed_out = mark.was_done ~= done and make_room(what.field, done)
    local period = string.sub(what.field, 1, 4) == 'per:'
    mark.kept = math.max(mark.kept, now + (period and 2 * what.span or math.max(META_LIFE, what.span)))
    call('HSET', ONCE, what.field, table.concat({'1', s.int(mark.kept), s.int(mark.token), s.int(mark.asked), s.int(mark.granted),
                                                 s.int(mark.ended), s.int(mark.failures), s.int(mark.failed), mark.record}, ' '))
    if call('PTTL', ONCE) < mark.kept - now then call('PEXPIREAT', ONCE, s.int(mark.kept)) end
    return pushed_out
  end

  -- What an owner does once, in the words of its line: `once` a field of ONCE, `span` of the period or distance, `asked`
  -- when it first asked, `max` after how many failures it gives up.
  function once.words(what)
    if not what then return '' end
    return ' once=' .. what.field .. ' span=' .. s.int(what.span) .. ' asked=' .. s.int(what.asked) ..
           (what.max and ' max=' .. s.int(what.max) or '')
  end

  local function is_done(what, mark)
    if mark.ended == 0 then return false end
    if what.field ~= 'within' then return true end
    -- The server's clock was set back since.
    if mark.granted > now + what.span then return false end
    return mark.granted > what.asked or mark.asked > what.asked - what.span
  end

  -- Of `within` only what failed in the distance before the one that asks.
  local function failures_of(what, mark)
    if what.field == 'within' and mark.failed <= what.asked - what.span then return 0 end
    return mark.failures
  end

  -- The reply to an owner whose work is done or has failed too often; nil if it is to run.
  function once.decided(what)
    local mark = once.read_mark(what.field)
    if is_done(what, mark) then return {'done', mark.ended, mark.ended - mark.granted, mark.record, mark.token} end
    local failures = failures_of(what, mark)
    if what.max and failures >= what.max then return {'failed', failures, mark.failed * 1000} end
    return nil
  end

  -- A key that is asked for is kept for longer.
  function once.keep_mark(what)
    local mark = once.read_mark(what.field)
    if mark.kept > 0 and is_key(what.field) then once.write_mark(what, mark) end
  end

  function once.forgotten_token() return tonumber(string.match(s.words, ' forgotten=(%d+)') or 0) end

  -- Returns `marked`; `no_room` if another key was removed for it; '' if this work was forgotten since.
  function once.mark_done(what, token, granted_at, record)
    local mark = once.read_mark(what.field)
    if token <= once.forgotten_token() then return '' end
    if token <= mark.token then return mark.ended > 0 and 'marked' or '' end
    mark.token, mark.asked, mark.granted, mark.ended, mark.record = token, what.asked, granted_at, now, record
    mark.failures, mark.failed = 0, 0
    return once.write_mark(what, mark) and 'no_room' or 'marked'
  end

  -- Over a quorum the servers agree on a token, which may come from a clock that is ahead of this one; no further.
  function once.agreed(token) return math.min(tonumber(token), math.max(s.meta.last, now_us + 60000000)) end

  -- Forgets a mark up to a token.
  function once.forget_mark(what, mark, through)
    once.write_mark(what, {kept = 0, token = math.max(through, mark.token), asked = 0, granted = 0, ended = 0, failures = 0,
                      failed = 0, record = '', was_done = mark.was_done})
  end

  -- Counts a run that failed, or died.
  function once.note_failure(what)
    if not what or not what.max then return end
    local mark = once.read_mark(what.field)
    mark.failures, mark.failed = failures_of(what, mark) + 1, what.asked
    once.write_mark(what, mark)
  end

  -- Notes that a run with this number was granted the lock: runs with smaller ones never start after it. Returns whether no
  -- number was greater.
  function once.note_number(number, record)
    local newest = once.read_mark('newest')
    if number < newest.token then return false end
    newest.token, newest.record = number, record
    once.write_mark({field = 'newest', span = 0}, newest)
    return true
  end

  -- The mark `waits`: LAST, CLAIMER, RECORD and the ticket that is NOTED. One that is ahead of the clock counts as none: after
  -- a run by a clock that was ahead every later ticket would be older.
  function once.read_waits()
    local waits = once.read_mark('waits')
    local last, claimer, its_record = string.match(waits.record, '^(%S+) (%S+) (.*)$')
    waits.last, waits.claimer, waits.its_record = last or NOBODY, claimer or NOBODY, its_record or ''
    waits.noted = waits.token <= now_us and waits.token or 0
    return waits
  end

  function once.write_waits(waits)
    waits.record = waits.last .. ' ' .. waits.claimer .. ' ' .. waits.its_record
    once.write_mark({field = 'waits', span = 0}, waits)
  end

  -- Notes that a run without a number was granted the lock. A waiter that comes back with this ticket, or an earlier one, is
  -- older.
  function once.note_claim(owner, record, ticket)
    local waits = once.read_waits()
    if ticket < waits.noted then return end
    waits.token, waits.claimer, waits.its_record = ticket, owner, record
    if not s.queue_ticket(waits.last) then waits.last = owner end
    once.write_waits(waits)
  end
  return once
end

-- What the owner of this line does once, or nil.
function s.once_of(line)
  local field = line and string.match(line.words, ' once=(%S+)')
  if not field then return nil end
  local function word(name) return tonumber(string.match(line.words, ' ' .. name .. '=(%d+)')) end
  return {field = field, span = word('span') or 0, asked = word('asked') or now, max = word('max')}
end
