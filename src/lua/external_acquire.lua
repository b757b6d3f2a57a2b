-- acquire: grants the lock if it is free. Sent again by its holder, it grants a full lease, not a second entry.
-- ARGV: owner, ttl in ms
-- Returns: granted | held owner entries ms-left
local owner, ttl = unpack(ARGV)
local held_by, entries, remaining = holder()
if not held_by then
  take(owner, ttl)
elseif held_by ~= owner then
  return {'held', held_by, entries, remaining}
elseif remaining < tonumber(ttl) then
  redis.call('PEXPIRE', KEY, ttl)
end
return {'granted'}
