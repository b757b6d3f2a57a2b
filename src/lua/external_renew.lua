-- renew: the lease of this owner lasts ttl from now, or its previous time. A lost lease is never restored, because nothing here records
-- which owners had the lock in between.
-- ARGV: owner, ttl in ms
-- Returns: extended | gone | held owner entries ms-left
local owner, ttl = unpack(ARGV)
local held_by, entries, remaining = holder()
if not held_by then return {'gone'} end
if held_by ~= owner then return {'held', held_by, entries, remaining} end
if remaining < tonumber(ttl) then redis.call('PEXPIRE', KEY, ttl) end
return {'extended'}
