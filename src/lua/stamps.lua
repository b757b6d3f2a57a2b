-- include: keys
-- The newest stamp of an owner's attempts at a quorum, `#owner` in WHO: twice the attempt, plus one once that attempt was cancelled.

local function of(owner) return tonumber(call('HGET', WHO, '#' .. owner) or 0) end

local function store(owner, stamp) keys.put_text(WHO, '#' .. owner, stamp) end

return {of = of, store = store}
