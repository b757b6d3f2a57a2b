-- release, cancel, force-unlock: frees the lock of this owner with all its entries.
-- ARGV: owner
-- Returns: freed owner entries ms-left | gone | held owner entries ms-left
local owner = ARGV[1]
local held_by, entries, remaining = holder()
if not held_by then return {'gone'} end
if held_by ~= owner then return {'held', held_by, entries, remaining} end
free()
return {'freed', held_by, entries, remaining}
