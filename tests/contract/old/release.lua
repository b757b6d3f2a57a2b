-- release of rlock at commit 82714a8, the last one that stored no version words: as it was, without its comments.
local owner, entry, how, note, attempt, ticket = unpack(ARGV)
local kind = how == 'released' and WAS_RELEASED or how == 'removed' and REMOVED or CANCELLED
local ends = tonumber(held_until(owner) or 0)
local queued = place_of(owner)
if kind == REMOVED and ends > now then return {'holds'} end
if kind == REMOVED and not queued then
  local again = note ~= '' and tombstone(owner) == REMOVED and note_of(owner) == note
  return again and {'left_queue'} or {'absent', 'unknown', ''}
end
local stamp = how == 'yielded' and 2 * tonumber(attempt) + 1 or 0
if stamp > 0 and stamp <= stamp_of(owner) then return {'absent', 'unknown', ''} end
local function leave(entries)
  call('ZREM', HOLDERS, owner)
  local latest = write_entries(owner, entries)
  call('ZADD', HOLDERS, int(latest), owner)
  bury(owner .. ':' .. entry, WAS_RELEASED, latest)
end
local function free(line)
  remove_holder(owner)
  local forced = line and line.state == 'revoked'
  if how == 'released' then note_run(line, forced and 'forced' or how, note) end
  if how == 'released' and line then cool_down(owner, line) end
  forget(owner)
  bury(owner, forced and FORCED or kind, ends)
  if forced then return {'absent', 'forced', note_of(owner)} end
  return {'freed'}
end
local function end_hold()
  local line = read_line(owner)
  local entries = line and live_entries(line) or {}
  entries[entry] = nil
  if how ~= 'released' or not next(entries) then return free(line) end
  leave(entries)
  if line.state ~= 'revoked' then return {'kept'} end
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
local function yield(line)
  note_stamp(owner, stamp)
  if ticket == '0' or not line then
    remove_waiter(owner)
    bury(owner, EXPIRED)
  elseif ends > now then
    n_queue = n_queue + 1
    call('ZADD', QUEUE, ticket, owner)
    call('ZADD', ALIVE, int(now + HEARTBEAT), owner)
    line.state = 'waiting'
    call('HSET', WHO, '+' .. owner, line_text(line))
    call('HDEL', WHO, '@' .. owner)
  end
  return {ends > now and 'freed' or queued and 'left_queue' or 'absent', 'unknown', ''}
end
local function nothing_to_end()
  local before = tombstone(owner)
  bury(entry == '0' and owner or owner .. ':' .. entry, kind)
  return {'absent', before and KINDS[before] or 'unknown', note_of(owner)}
end
local reply
local line = stamp > 0 and read_line(owner)
if stamp > 0 and not (line and line.state == 'revoked') then
  touch()
  if ends > now then remove_holder(owner) end
  reply = yield(line)
elseif ends > now then
  reply = end_hold()
elseif queued then
  reply = leave_queue()
else
  touch()
end
sweep()
reply = reply or nothing_to_end()
admit(stamp > 0 and owner or nil)
finish(stamp > 0 and owner or nil)
return told(reply)
