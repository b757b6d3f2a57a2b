-- include: keys
-- The note of the operator who ended an owner: `!owner` in WHO.

local function of(owner) return call('HGET', WHO, '!' .. owner) or '' end

local function store(owner, note) keys.put_text(WHO, '!' .. owner, note) end

return {of = of, store = store}
