-- include: holders
-- How an owner becomes a holder.

-- The keys must live as long as the longest --min-hold.
local function extend_lasts(line)
  if line.min_hold > 0 then memory.lasts = math.max(memory.lasts, line.since + line.min_hold) end
end

-- Records the last grants, with which the token of a lease to be restored is compared.
local function note_grant(token, line)
  memory.grant = math.max(memory.grant, token)
  if line.limit == 1 then memory.exclusive = math.max(memory.exclusive, token) end
  extend_lasts(line)
end

-- Makes `owner` a holder with a new token until `ends`. Its slot is the least number from 1 that no other holder has; if a holder fits, a
-- slot is free up to its own limit. Over a quorum the grant counts only once the majority's token is written back (renew), because the
-- grant of one server does not show that any owner had the lock.
local function grant(owner, line, ends, stamp)
  line.token, line.since, line.entries = issue(), now, '0:' .. ends
  if is_numbered(line.limit) then
    local used = used_slots()
    line.slot = 1
    while used[line.slot] do line.slot = line.slot + 1 end
  end
  if stamp == 0 then note_grant(line.token, line) end
  store_holder(owner, line, ends)
  store_stamp(owner, stamp)
end
