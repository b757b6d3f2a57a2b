-- wake: pushes the wakes that another script was refused, with their lists declared as keys.
-- KEYS: the usual ten, then the list of each owner. ARGV: owner, event, owner, event...
-- Returns: pushed | refused
for i = 1, #ARGV, 2 do push_wake(ARGV[i], ARGV[i + 1]) end
return #unsent == 0 and 'pushed' or 'refused'
