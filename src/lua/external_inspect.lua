-- inspect: reads only.
-- Returns: gone | held owner entries ms-left
local held_by, entries, remaining = holder()
if not held_by then return {'gone'} end
return {'held', held_by, entries, remaining}
