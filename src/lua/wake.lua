-- wake: pushes the wakes that the server refused to another script, with their lists declared.
-- KEYS: the usual nine, then the list of each owner. ARGV: owner, word, owner, word...
-- Returns: pushed | refused
for i = 1, #ARGV, 2 do push_wake(ARGV[i], ARGV[i + 1]) end
return #unsent == 0 and 'pushed' or 'refused'
