-- wake: pushes the wakes that the server refused another script. Their lists are declared as keys here.
-- include: memory wakes
-- Keys: the usual ten, then the list of each owner. Arguments: owner, event, owner, event...
-- Replies: pushed, refused
local pushed = true
for i = 1, #ARGV, 2 do pushed = wakes.push(ARGV[i], ARGV[i + 1]) and pushed end
return pushed and 'pushed' or 'refused'
