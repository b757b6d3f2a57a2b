-- What an acquire may need to know: of the ACL, of owners that have ended, of what is done once, and of what supersedes
-- others.
local owner, record, number = args.owner, args.record, tonumber(args.supersede)
local given_ticket = tonumber(args.ticket or 0)
local stamp = 2 * (args.attempt or 0)
local what

-- What the ACL denies this user, or nil. What it allows counts for an hour.
function s.denied(verdict, is_known)
  local denial, is_complete = s.denial()
  if denial or not is_complete then return denial end
  if not args.user then return nil end
  s.words = string.gsub(s.words, ' acl:%S+=(%d+)', function(until_ms) return not is_known(until_ms) and '' or nil end)
  s.words = s.words .. verdict .. now + HOUR
  s.changed = true
end

function s.what_once()
  what = {field = args.once, span = tonumber(args.span), asked = math.max(0, now - args.asked),
          max = tonumber(args.max_failures)}
  call('HLEN', ONCE)
  local known = s.once_of(s.read_line(owner))
  if known then what.asked = math.min(what.asked, known.asked) end
  return what
end

-- Adds the token up to which everything was forgotten, which a member of a quorum that was down does not know.
function s.with_forgotten(reply)
  reply[#reply + 1] = math.max(s.once_part().forgotten_token(), s.once_part().read_mark(what.field).forgotten)
end

function s.words_of_line()
  return s.once_part().words(what) .. (args.supersede and ' supersede=' .. args.supersede or '') ..
         (args.while_closed and ' while_closed=1' or '')
end

function s.ended_reply(ends)
  local kind = s.kind_of(ends[1])
  if kind == DONE and what then
    local failures = tonumber(string.match(s.note_of(owner), '^failed (%d+)$'))
    return s.once_part().decided(what) or failures and {'failed', failures, now_us} or {'gone', 'done', ''}
  end
  if kind and kind > REQUEUED then return {'gone', s.ended_as(kind), s.note_of(owner)} end
  if s.kind_of(ends[2]) then return {'gone', 'released', ''} end
  if stamp > 0 and stamp < s.stamp_of(owner) then return {'gone', 'cancelled', ''} end
  return nil
end

-- Whether what it asks for is done, or failed too often, and nothing runs under its hold yet.
function s.done_reply()
  local line = s.held_until(owner) and s.read_line(owner)
  return not (line and line.state ~= 'granted') and s.once_part().decided(what) or nil
end

-- Forgets what another server of a quorum has forgotten.
function s.forget_as_others()
  local mark, through = s.once_part().read_mark(what.field), s.once_part().agreed(args.forgotten)
  local last = mark.ended > 0 and mark.token or mark.failures > 0 and mark.failed * 1000
  if last and last <= through then s.once_part().forget_mark(what, mark, through) end
end

-- Of the waiters that supersede others only one stays: that with the greatest number; without numbers the last one.
function s.supersede_part()
  local part = {}
  local function number_of(line) return tonumber(string.match(line.words, ' supersede=(%d+)')) end

  local function other_one()
    local other = s.once_part().read_waits().last
    return other ~= owner and s.queue_ticket(other) and s.read_line(other) and other or nil
  end

  -- The reply to an owner that is older than one that waits, or than one that was granted the lock before. One that has a
  -- ticket comes back: its place was taken by a newer one, which has the same ticket, or it was swept.
  function part.superseded_reply()
    local newest = number and s.once_part().read_mark('newest')
    if newest and newest.token > number then return {'superseded', newest.record} end
    local waits = s.once_part().read_waits()
    local other = other_one()
    local line = other and s.read_line(other)
    local its, older = line and number_of(line), false
    if number and its then
      older = number < its
    elseif line then
      older = given_ticket > 0 and given_ticket <= tonumber(s.queue_ticket(other))
    end
    if older then return {'superseded', line.record} end
    local is_last = waits.last == owner or waits.claimer == owner
    if is_last or number and its or given_ticket == 0 or given_ticket > waits.noted then return nil end
    return {'superseded', waits.its_record}
  end

  -- Cancels the grant if a newer owner has held the lock since.
  function part.overtaken(line)
    local newest = number and line.state == 'granted' and s.once_part().read_mark('newest')
    if not newest or newest.token <= number then return nil end
    s.dismiss(owner, record, SUPERSEDED, newest.record)
    s.admit()
    return {'superseded', newest.record}
  end

  function part.replaces() return other_one() ~= nil end

  local function replace(other) s.dismiss(other, s.read_line(other).record, SUPERSEDED, record) end

  -- Joins the queue in the place of the older one, and returns its ticket; nil where there is none.
  function part.take_over()
    local other = other_one()
    local ticket = other and tonumber(s.queue_ticket(other))
    if other then replace(other) end
    local waits = s.once_part().read_waits()
    waits.last = owner
    s.once_part().write_waits(waits)
    return ticket
  end

  -- An older one that has come since the grant must not run after this one. TOKEN: in the place of a ticket, which a client
  -- does not have that was granted the lock at once.
  function part.note_newest(token)
    if not number then return s.once_part().note_claim(owner, record, given_ticket > 0 and given_ticket or token) end
    if not s.once_part().note_number(number, record) then return end
    local other = other_one()
    if other and (number_of(s.read_line(other)) or number) < number then replace(other) end
  end
  return part
end

-- A newcomer that is refused leaves no tombstone: a word shows that the last one was counted, in case it asks again.
function s.note_refusal(how)
  local counted = ' skipped=' .. string.sub(owner, 1, 8)
  if string.match(s.words, ' skipped=%S+') == counted then return end
  s.words = string.gsub(s.words, ' skipped=%S+', '') .. counted
  s.note_skip(record, how)
end

-- Cancels the owner's grant, and removes it from the queue.
function s.leave_as_done(verdict)
  s.once_part().keep_mark(what)
  if s.queue_ticket(owner) or s.held_until(owner) then
    s.dismiss_as_done(owner, record, verdict)
  else
    s.note_refusal(verdict[1])
  end
  s.admit()
end

