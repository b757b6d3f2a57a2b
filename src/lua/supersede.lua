-- include: sweep
-- For acquire: of the waiters that supersede others only one stays, the one with the greatest number or, without numbers, the last one.

local function superseding_waiter()
  local other = read_waits().latest
  return other and other ~= owner and queue_ticket(other) and read_line(other) and other or nil
end

local function newest_number() return supersedes ~= '+' and tonumber(supersedes) end
local function number_of(line) return line.supersede ~= '+' and tonumber(line.supersede) end

-- A greater number was granted the lock before.
local function outnumbered(newest)
  return {'superseded', record = newest.record, number = newest.token, granted = newest.granted}
end

-- The reply to an owner that is older than a waiting owner, or than an owner that was granted the lock before. An owner with a
-- ticket comes back: it was swept, or a newer owner superseded it and has the same ticket.
local function superseded_reply()
  local number, newest, waits = newest_number(), read_mark('newest'), read_waits()
  local ticket = tonumber(args.ticket or math.huge)
  if number and newest.token > number then return outnumbered(newest) end
  local other = superseding_waiter()
  local line = other and read_line(other)
  local other_number, older = line and number_of(line), false
  if number and other_number then
    older = number < other_number
  elseif line then
    older = ticket <= queue_ticket(other)
  end
  if older then return {'superseded', record = line.record, number = other_number or nil, since = line.since} end
  local is_last = waits.latest == owner or waits.claimer == owner
  if is_last or number and other_number or ticket > waits.ticket then return nil end
  return {'superseded', record = waits.record}
end

-- Cancels the grant if a newer owner has held the lock since.
local function overtaken(line)
  local number, newest = newest_number(), read_mark('newest')
  if not number or line.state ~= 'granted' or newest.token <= number then return nil end
  dismiss(owner, record, SUPERSEDED, newest.record)
  return outnumbered(newest)
end

local function replace(other) dismiss(other, read_line(other).record, SUPERSEDED, record) end

-- Joins the queue in the position of the older waiter, and returns its ticket; nil if there is none.
local function take_over()
  local other = superseding_waiter()
  local ticket = other and queue_ticket(other)
  if other then replace(other) end
  local waits = read_waits()
  waits.latest = owner
  write_waits(waits)
  return ticket
end

-- An older owner that has arrived since the grant must not run after this owner. TOKEN replaces a ticket, which a client does not have if
-- it was granted the lock immediately.
local function note_newest(token)
  local number = newest_number()
  if not number then return note_claim(owner, record, tonumber(args.ticket or token)) end
  if not note_number(number, record) then return end
  local other = superseding_waiter()
  if other and (number_of(read_line(other)) or number) < number then replace(other) end
end
