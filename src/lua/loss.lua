-- include: tombstones slots history
-- Why a lease cannot be restored.

-- Returns whether the lease expired, and was neither restored nor released since. A tombstone does not show that for long.
local function has_expired(owner, token)
  local _, row = history.row_of(owner, 'owner')
  return row and row.token == token
end

-- Returns why an owner that holds nothing now cannot restore its lease; nil if no other owner can have had the lock since. Returns also
-- whether the server has lost its data since this token was issued, and the lease with it.
local function reason(owner, entry, token, limit, greatest, end_kind)
  -- The tombstones may have been evicted; an operator's note is in another key.
  if end_kind and end_kind > REQUEUED then return tombstones.word(end_kind) end
  if call('HEXISTS', WHO, '!' .. owner) == 1 then return 'forced' end
  if tombstones.kind(owner .. ':' .. entry) then return 'released' end
  if token == 0 then return end_kind and 'expired' or 'deleted' end
  if token > greatest then return 'unissued' end
  local is_unknown = not end_kind and not has_expired(owner, token)
  local forgot = is_unknown and memory.created > token
  -- If the lock has an unknown rule, this version cannot decide whether a later grant left room.
  local since = (limit == 1 or unknown_rules) and memory.grant or memory.exclusive
  if since > token then return 'taken', forgot end
  if is_unknown and memory.grant >= token and memory.created <= token then return 'deleted' end
  if not slots.fits(limit, true) then return 'full', forgot end
  return nil
end

return {reason = reason}
