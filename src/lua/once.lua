-- include: words queue
-- ONCE: what was done once, and what supersedes other runs. Its fields: `key:KEY`, `per:LABEL` and `within` for the options --once;
-- `newest`, the greatest number of --supersede that was granted the lock; `waits`, for --supersede without a number.
-- The words of a mark:
--   kept                     when it expires
--   token                    of the last success. If ended is 0, everything up to this token was forgotten. In newest: the number
--   asked, granted, ended    when the run of the last success first asked, was granted the lock, and ended
--   failures, failed         how many runs have failed since, and when the last of them asked
--   latest, claimer, ticket  in waits: the owner that superseded others last; the owner that was granted the lock last, and its ticket
--   record                   of the run of the last success, or of the claimer

local MARKS, BATCH = 1000, 64  -- most keys with a success, and most others, each up to BATCH more or fewer

local function no_mark() return {kept = 0, token = 0, asked = 0, granted = 0, ended = 0, failures = 0, failed = 0, record = ''} end

local function read(field)
  local text = call('HGET', ONCE, field)
  local mark = text and words.read(text)
  return mark and (mark.kept or 0) > now and mark or no_mark()
end

local function is_key(field) return string.sub(field, 1, 4) == 'key:' end

-- Makes room for more fields, either of those that were done or of the others: removes expired fields and, if there are MARKS keys of
-- the same sort, the BATCH least recently used. Does so only for each field after a BATCH, because reading all fields takes the server
-- about 15 ms. Returns whether it removed keys that had not expired.
local function make_room(field, done)
  local n = call('HLEN', ONCE)
  if n == 0 or n % BATCH > 0 then return false end
  local all, found = call('HGETALL', ONCE), {}
  for i = 1, #all, 2 do
    local mark = words.read(all[i + 1])
    if (mark.kept or 0) <= now then
      call('HDEL', ONCE, all[i])
    elseif is_key(all[i]) and (mark.ended > 0) == done then
      found[#found + 1] = {name = all[i], kept = mark.kept}
    end
  end
  if #found < MARKS or not is_key(field) then return false end
  table.sort(found, function(a, b) return a.kept < b.kept end)
  for i = 1, BATCH do call('HDEL', ONCE, found[i].name) end
  return true
end

-- Returns how long the mark of some work is kept; that of a period, for twice its length.
local function life_of(work)
  local is_period = string.sub(work.field, 1, 4) == 'per:'
  return is_period and 2 * work.span or math.max(KEPT, work.span)
end

-- Stores a mark for LIFE ms. BEFORE: the mark that it replaces. Returns whether it removed others.
local function write_mark(field, mark, before, life)
  local done, was_done = mark.ended > 0, before.kept > 0 and before.ended > 0
  local same_sort = before.kept > 0 and was_done == done
  local pushed_out = not same_sort and make_room(field, done)
  local left = call('PTTL', ONCE)  -- before the write: the ACL may deny it
  mark.kept = math.max(mark.kept, now + life)
  call('HSET', ONCE, field, words.text_of(mark))
  if left < mark.kept - now then call('PEXPIREAT', ONCE, int(mark.kept)) end
  return pushed_out
end

local function is_done(work, mark)
  if mark.ended == 0 then return false end
  if work.field ~= 'within' then return true end
  -- The server's clock was set back since.
  if mark.granted > now + work.span then return false end
  return mark.granted > work.asked or mark.asked > work.asked - work.span
end

-- Returns how many runs have failed; for `within`, in the distance before this owner asked.
local function failures_of(work, mark)
  if work.field == 'within' and mark.failed <= work.asked - work.span then return 0 end
  return mark.failures
end

-- Returns the reply to an owner whose work is done or has failed too often; nil if the owner has to run.
local function decided(work)
  local mark = read(work.field)
  if is_done(work, mark) then return {'done', ended = mark.ended, took = mark.ended - mark.granted, record = mark.record, token = mark.token} end
  local failures = failures_of(work, mark)
  if work.max and failures >= work.max then return {'failed', times = failures, token = mark.failed * 1000} end
  return nil
end

-- Keeps a key for longer, because an owner has asked for it.
local function keep(work)
  local mark = read(work.field)
  if mark.kept > 0 and is_key(work.field) then write_mark(work.field, mark, mark, life_of(work)) end
end

-- Marks work as done. Returns `marked`; `no_room` if other keys were removed for it; '' if this work was forgotten since.
local function mark_done(work, token, granted_at, record)
  local before = read(work.field)
  if token <= memory.forgotten then return '' end
  if token <= before.token then return before.ended > 0 and 'marked' or '' end
  local mark = {kept = before.kept, token = token, asked = work.asked, granted = granted_at, ended = now, failures = 0, failed = 0,
                record = record}
  return write_mark(work.field, mark, before, life_of(work)) and 'no_room' or 'marked'
end

-- Returns the token up to which the servers of a quorum forget. It may come from a clock that is ahead of this one by a minute at most.
local function agreed(token) return math.min(tonumber(token), math.max(memory.last, now_us + 60000000)) end

-- Forgets a mark up to a token. Keeps the token in its place, so that no run that ended before marks the work.
local function forget(field, before, through)
  local mark = no_mark()
  mark.token, mark.kept = math.max(through, before.token), before.kept
  write_mark(field, mark, before, KEPT)
end

-- Counts a run that failed or died.
local function note_failure(work)
  if not work.max then return end
  local before, mark = read(work.field), read(work.field)
  mark.failures, mark.failed = failures_of(work, mark) + 1, work.asked
  write_mark(work.field, mark, before, life_of(work))
end

-- Records that a run with this number was granted the lock, so that runs with smaller numbers never start after it. Returns whether no
-- number was greater.
local function note_number(number, record)
  local newest = read('newest')
  if number < newest.token then return false end
  newest.token, newest.granted, newest.record = number, now, record
  write_mark('newest', newest, newest, KEPT)
  return true
end

-- Returns the mark `waits`. A ticket that is ahead of the clock does not count, because every later ticket would be older.
local function read_waits()
  local waits = read('waits')
  waits.ticket = (waits.ticket or 0) <= now_us and waits.ticket or 0
  return waits
end

local function write_waits(waits) write_mark('waits', waits, waits, KEPT) end

-- Records that a run without a number was granted the lock: a waiter that returns with this ticket, or an earlier one, is older.
local function note_claim(owner, record, ticket)
  local waits = read_waits()
  if ticket < waits.ticket then return end
  waits.ticket, waits.claimer, waits.record = ticket, owner, record
  if not (waits.latest and queue.ticket(waits.latest)) then waits.latest = owner end
  write_waits(waits)
end

return {read = read, decided = decided, keep = keep, mark_done = mark_done, agreed = agreed, forget = forget,
        note_failure = note_failure, note_number = note_number, read_waits = read_waits, write_waits = write_waits, note_claim = note_claim}
