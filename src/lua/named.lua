-- The arguments of acquire, renew and release: names and values in turn. What is left out is nil: it does not apply.
local args = {}
for i = 1, #ARGV, 2 do args[ARGV[i]] = ARGV[i + 1] end
