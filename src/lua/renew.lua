-- renew: extends a lease, enters a held lock, and restores a lease that the server has lost. Over a quorum it writes the token
-- of the majority back, which makes the grant count here; a later renewal does so if that was missed. May be sent again.
-- include: memory entry_list finish grant history holders keys lines loss notes once queue replies slots stamps sweep tasks tombstones views
-- Arguments:
--   owner, entry, ttl, record
--   limit         of the lease; when a run enters a lock, its own limit if that is smaller
--   responsive    0, 1 or 2: see lines.lua
--   token         without it the lease is never restored
--   min_hold
--   store_record  1: the script stores the record anew
--   attempt       over a quorum the number of the attempt whose token is written back
--   ahead         by how many ms the clock that issued the token may be ahead of this one
--   and of a lease that is restored: slot, once, span, max_failures, rows, supersede
-- Replies:
--   extended
--   restored    the lease was restored
--   upgrade     more holders share the lock than this owner allows
--   lost        how (deleted, taken, full, expired, unissued, released, cancelled, removed, forced), note, holder, untouched
--               (1: nobody was granted the lock since this owner was, with this token), and forgot (1: the server has lost its data since)
local owner, entry, token, record = args.owner, args.entry, tonumber(args.token or 0), args.record
local limit, ttl, min_hold = tonumber(args.limit), tonumber(args.ttl), tonumber(args.min_hold or 0)
local slot, stamp = tonumber(args.slot), 2 * (args.attempt or 0)
-- The greatest token that any server can have issued. A greater one is not restored, because later tokens would be smaller.
local greatest = math.max(memory.last, now_us + 1000 * (args.ahead or 0))

local function lost(how, other_holder, forgot)
  if other_holder == nil then other_holder = views.some_holder() end
  return {'lost', how = how, note = notes.of(owner), holder = other_holder, untouched = token > 0 and memory.grant == token, forgot = forgot}
end

local function lease_of(id)
  local INNER_LEASE = 60000  -- ms: the longest lease of a nested run
  return now + (id == '0' and ttl or math.min(ttl, INNER_LEASE))
end

-- Adds to a line what was lost with it: what is done once, and which waiters it supersedes.
local function add_again(line, since)
  line.supersede = args.supersede
  if not args.once then return line end
  return tasks.add_to(line, {field = args.once, span = tonumber(args.span), asked = since, max = tonumber(args.max_failures)})
end

-- Returns the line of the lease as this renewal describes it.
local function line_again()
  local since = math.min(now, math.floor(token / 1000))
  return add_again({state = 'held', limit = limit, token = token, since = since, ttl = ttl, min_hold = min_hold,
                    responsive = args.responsive, slot = slot, record = record}, since)
end

-- Renews a live lease; never shortens it.
local function extend(held)
  local line = lines.read(owner)
  if line.state == 'revoked' then return lost('forced', false) end  -- the holder still counts, so no other owner has the lock
  if line.limit > limit then return {'upgrade'} end
  if tombstones.kind(owner .. ':' .. entry) then return lost('released') end
  if line.token == 0 and entry == '0' and token > 0 and token <= greatest then
    local entries = line.entries
    line = line_again()
    line.entries = entries
  end
  local entries = entry_list.live(line)
  entries[entry] = math.max(entries[entry] or 0, lease_of(entry))
  -- Writes the token of the majority back, even if an earlier renewal missed that.
  local missed = line.state == 'granted' and token > 0 and token <= greatest and stamps.of(owner) > 0
  if stamp > 0 or missed then
    line.token = token
    memory.last = math.max(memory.last, token)
    grant.note(token, line)
  end
  line.state = 'held'
  if entry == '0' then line.ttl = ttl end
  if min_hold > line.min_hold then
    line.min_hold = min_hold
    grant.extend_lasts(line)
  end
  -- A nested run, which does not know these words, has restored the lease.
  if entry == '0' and not line.once and not line.supersede then add_again(line, line.since) end
  if args.store_record then line.record = record end
  local latest = entry_list.set(line, entries)
  holders.store(owner, line, math.max(held, latest))
  if stamp > 0 then stamps.store(owner, stamp) end
  return {'extended'}
end

-- Restores a lost lease, or returns why it cannot be restored.
local function restore()
  -- Its own cool-down does not prevent an owner from restoring its lease.
  local cooldown, cools_until = lines.read('~' .. owner), holders.held_until('~' .. owner)
  if cools_until then holders.remove('~' .. owner) end
  local why, forgot = loss.reason(owner, entry, token, limit, greatest, tombstones.kind(owner))
  if not why and slot and slots.used()[slot] then why = 'taken' end
  if why then
    if cools_until then holders.store('~' .. owner, cooldown, cools_until) end
    return lost(why, nil, forgot)
  end
  lines.forget('~' .. owner)
  local line = line_again()
  if history.settle_row(owner) or tombstones.kind(owner .. ':counted') then line.counted = now end
  call('ZREM', RELEASED, owner)
  queue.leave(owner)
  local ends = entry_list.set(line, {['0'] = lease_of(entry), [entry] = lease_of(entry)})
  holders.store(owner, line, ends)
  if stamp > 0 then stamps.store(owner, stamp) end
  memory.last = math.max(memory.last, token)
  if memory.created == 0 then memory.created = now_us end
  if args.rows then memory.keep = tonumber(args.rows) end
  if tonumber(args.supersede) then
    once.note_number(tonumber(args.supersede), record)
  elseif args.supersede then
    once.note_claim(owner, record, token)
  end
  grant.note(token, line)
  return {'restored'}
end

if stamp > 0 and stamp < stamps.of(owner) then return replies.encoded(lost('released')) end
keys.touch()
local held = holders.held_until(owner)
local reply = held and held > now and extend(held)
if is_due then sweep.run(owner) end
return finish.with(reply or restore(), owner)
