-- include: once sweep queue lines holders
-- For acquire: of the waiters that supersede others only the newest stays. It has the greatest number or, without numbers, came last.

-- Returns another waiter that supersedes others, or nil.
local function other_waiter()
  local other = once.read_waits().latest
  return other and other ~= request.owner and queue.ticket(other) and lines.read(other) and other or nil
end

-- Returns the line of the other owner that joined last, if it was granted the lock and has not claimed it, or nil.
local function unclaimed()
  local latest = once.read_waits().latest
  local line = latest and latest ~= request.owner and not queue.ticket(latest) and lines.read(latest)
  return line and line.state == 'granted' and (holders.held_until(latest) or 0) > now and line or nil
end

-- The number of this owner, or nil.
local function own_number() return tonumber(request.supersedes) end

-- Returns the reply to an owner after a greater number was granted the lock.
local function outnumbered(newest)
  return {'superseded', record = newest.record, number = newest.token, granted = newest.granted}
end

-- Returns the reply to an owner that is older than a waiter or an owner that was granted the lock before, or nil. Two numbers decide, or else
-- two tickets. An owner with a ticket comes back: it was swept, or a newer owner superseded it and has the same ticket.
local function refusal()
  local number, newest = own_number(), once.read('newest')
  if number and newest.token > number then return outnumbered(newest) end
  local ticket = tonumber(args.ticket or math.huge)

  local other = other_waiter()
  local line = other and lines.read(other)
  local other_number = line and tonumber(line.supersede)
  local is_older
  if number and other_number then
    is_older = number < other_number
  else
    is_older = line and ticket <= queue.ticket(other)
  end
  if is_older then return {'superseded', record = line.record, number = other_number, since = line.since} end
  if number and other_number then return nil end
  local granted = unclaimed()
  if granted and ticket <= (granted.ticket or 0) and not (number and tonumber(granted.supersede)) then
    return {'superseded', record = granted.record, number = tonumber(granted.supersede), granted = granted.since}
  end

  local waits = once.read_waits()
  local was_last = waits.latest == request.owner or waits.claimer == request.owner
  if was_last or ticket > waits.ticket then return nil end
  return {'superseded', record = waits.record}
end

-- Cancels the grant if a newer owner has been granted the lock since. Returns the reply, or nil.
local function overtaken(line)
  local number, newest = own_number(), once.read('newest')
  if not number or line.state ~= 'granted' or newest.token <= number then return nil end
  sweep.dismiss(request.owner, request.record, SUPERSEDED, newest.record)
  return outnumbered(newest)
end

local function replace(other) sweep.dismiss(other, lines.read(other).record, SUPERSEDED, request.record) end

-- Joins the queue in the position of the older waiter, and returns its ticket; nil if there is none.
local function take_over()
  local other = other_waiter()
  local ticket = other and queue.ticket(other)
  if other then replace(other) end
  local waits = once.read_waits()
  waits.latest = request.owner
  once.write_waits(waits)
  return ticket
end

-- Records that this owner was granted the lock, so that no older owner runs after it. An owner that was granted
-- the lock immediately has no ticket: then TOKEN counts.
local function note_newest(token)
  local number = own_number()
  if not number then return once.note_claim(request.owner, request.record, tonumber(args.ticket or token)) end
  if not once.note_number(number, request.record) then return end
  local other = other_waiter()
  if other and (tonumber(lines.read(other).supersede) or number) < number then replace(other) end
end

return {other_waiter = other_waiter, refusal = refusal, overtaken = overtaken, take_over = take_over, note_newest = note_newest}
