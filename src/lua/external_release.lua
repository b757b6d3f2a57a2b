-- release, cancel, force-unlock: frees the lock of this owner with all its entries.
-- ARGV: owner; with force-unlock any number of them
-- Returns: freed owner entries ms-left | gone | held owner entries ms-left
local held_by, entries, remaining = holder()
if not held_by then return {'gone'} end
for _, owner in ipairs(ARGV) do
  if held_by == owner then
    free()
    return {'freed', held_by, entries, remaining}
  end
end
return {'held', held_by, entries, remaining}
