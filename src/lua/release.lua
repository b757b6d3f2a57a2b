-- release, cancel: an owner's end, whatever it has: a lease, a grant, a place in the queue, nothing. Always
-- leaves a tombstone, so that a late acquire cannot make a ghost; a repeat succeeds.
-- ARGV: owner, entry, released|cancelled|timed_out|removed, note (with removed) or what the run came to
--       (with released: one word, `exit:7`, `signal:9`, or `-`)
-- Returns: freed | kept (by other entries) | left_queue | holds (removed only, nothing done)
--          | absent kind-before note   (kind: see KINDS, or unknown)
local owner, entry, how, note = unpack(ARGV)
local kind = how == 'released' and WAS_RELEASED or how == 'removed' and REMOVED or CANCELLED

local ends = tonumber(held_until(owner) or 0)
local queued = place_of(owner)
if kind == REMOVED and ends > now then return {'holds'} end
if kind == REMOVED and not queued then
  -- The reply to this very request was lost, and it came again: the note tells.
  local again = note ~= '' and tombstone(owner) == REMOVED and note_of(owner) == note
  return again and {'left_queue'} or {'absent', 'unknown', ''}
end

-- Only an entry ends: the others keep the lock, as long as their own leases say.
local function leave(entries)
  call('ZREM', HOLDERS, owner)
  local latest = write_entries(owner, entries)
  call('ZADD', HOLDERS, int(latest), owner)
  bury(owner .. ':' .. entry, WAS_RELEASED, latest)
end

local function free(line)
  remove_holder(owner)
  local forced = line and line.state == 'revoked'
  if how == 'released' then note_run(owner, line, forced and 'forced' or how, note) end
  if how == 'released' and line then cool_down(owner, line) end
  forget(owner)
  bury(owner, forced and FORCED or kind, ends)
  if forced then return {'absent', 'forced', note_of(owner)} end
  return {'freed'}
end

local function end_hold()
  local entries = live_entries(owner)
  entries[entry] = nil
  local line = read_line(owner)
  if how ~= 'released' or not next(entries) or not line then return free(line) end
  leave(entries)
  if line.state ~= 'revoked' then return {'kept'} end
  -- Others still run under it: they hear of it now, and the last of them confirms.
  wake(owner, 'revoked')
  return {'absent', 'forced', note_of(owner)}
end

local function leave_queue()
  local record = call('HGET', WHO, owner) or ''
  remove_waiter(owner)
  if how == 'timed_out' then note_skip(record) end
  bury(owner, kind)
  if kind == REMOVED then
    call('HSET', WHO, '!' .. owner, note)
    wake(owner, 'removed')
  end
  return {'left_queue'}
end

-- The outer run may not have put its lease back yet: an inner one ends its own entry alone.
local function nothing_to_end()
  local before = tombstone(owner)
  bury(entry == '0' and owner or owner .. ':' .. entry, kind)
  return {'absent', before and KINDS[before] or 'unknown', note_of(owner)}
end

local reply
if ends > now then
  reply = end_hold()
elseif queued then
  reply = leave_queue()
else
  touch()
end
sweep()
reply = reply or nothing_to_end()
admit()
finish()
return told(reply)
