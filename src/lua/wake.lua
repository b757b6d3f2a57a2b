-- wake: pushes the wakes that another script was refused, with their lists declared as keys.
-- KEYS: the usual ten, then the list of each owner. ARGV: owner, event, owner, event...
-- Returns: pushed | refused
local pushed = true
for i = 1, #ARGV, 2 do pushed = s.push_wake(ARGV[i], ARGV[i + 1]) and pushed end
return pushed and 'pushed' or 'refused'
