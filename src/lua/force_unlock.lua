-- force_unlock: an operator breaks a lock. A holder that responds is revoked, and counts until it confirms or its lease expires. A holder
-- that does not respond is freed immediately, and with `now` every holder is. May be sent again.
-- include: memory admit finish history holders keys lines notes sweep tombstones views wakes
-- Arguments:
--   now      1: without waiting for the holders
--   note     who breaks the lock and why
--   targets  `owner=token owner=token` of the leases to break; token 0: whatever token the owner has
-- Replies:
--   forced   broken: the holders; counting: the owners of those that count until they confirm; next: the owner that was granted the
--            lock, if one was; before: the owners that this very request, known by its note, had broken when its reply was lost
--   free, nomatch, more
local note = args.note

-- Adds the note to the row of the run that left a cool-down. If the lease of its owner expired, no renewal restores it from now on. The
-- tombstone or the row shows that; either may be gone.
local function note_cooldown(owner, cooldown, ends)
  local place, row = history.row_of(cooldown.token)
  if tombstones.kind(owner) == EXPIRED or row and row.owner then
    notes.store(owner, note)
    tombstones.add(owner, FORCED, ends)
  end
  if not row then return end
  row.note, row.owner = history.quoted(note), nil
  history.write(row, place)
end

-- Breaks the lease of a holder. Returns whether the holder counts until it confirms.
local function break_hold(owner)
  local line, ends = lines.read(owner), holders.held_until(owner)
  local counts = line.responsive ~= '0' and not args.now
  -- While the holder counts, it keeps the note of the first operator.
  if not counts or line.state ~= 'revoked' then notes.store(owner, note) end
  wakes.add(owner, 'revoked')
  if counts then
    if line.state == 'granted' then line.unclaimed = '1' end
    line.state = 'revoked'
    lines.write(owner, line)
    return true
  end
  holders.remove(owner)
  if line.state == 'cooldown' then note_cooldown(string.sub(owner, 2), line, ends) else history.record_run(owner, line, 'forced', '-') end
  lines.forget(owner)
  tombstones.add(owner, FORCED, ends)
  return false
end

-- Returns the holders that an owner is: itself, and the cool-down that it left.
local function holders_of(owner, token)
  local found = {}
  for _, holder in ipairs({owner, '~' .. owner}) do
    if holders.held_until(holder) and (token == 0 or lines.read(holder).token == token) then found[#found + 1] = holder end
  end
  return found
end

-- Returns whether this request broke the lease before, and its reply was lost: then the note is the same.
local function broken_before(owner)
  for _, holder in ipairs(note ~= '' and {owner, '~' .. owner} or {}) do
    if tombstones.kind(holder) == FORCED and notes.of(holder) == note then return true end
  end
  return false
end

local reply
keys.touch()
if is_due then sweep.run() end
if must_retry then
  reply = {'more'}
else
  local broken, counting, before, free = {}, {}, {}, not views.some_holder()
  for owner, token in string.gmatch(args.targets, '(%S+)=(%d+)') do
    local found = holders_of(owner, tonumber(token))
    for _, holder in ipairs(found) do
      broken[#broken + 1] = views.of(holder, holders.held_until(holder))
      if break_hold(holder) then counting[#counting + 1] = holder end
    end
    if #found == 0 and broken_before(owner) then before[#before + 1] = owner end
  end
  admit.waiters()
  if #broken == 0 and #before == 0 then
    reply = {free and 'free' or 'nomatch'}
  else
    reply = {'forced', broken = broken, counting = counting, next = admit.first_granted(), before = before}
  end
end
return finish.with(reply)
