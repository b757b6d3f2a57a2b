-- include: keys
-- RELEASED: the ends of owners, as keep-until * 16 + kind. See constants.lua for the kinds.

local function kind_of(score) return score and math.floor(score / 16) > now and score % 16 or nil end

-- Returns the word for a kind in a reply.
local function word(kind)
  return ({[0] = 'expired', 'expired', 'released', 'cancelled', 'done', 'superseded', 'removed', 'forced'})[kind]
end

-- Returns the kind of an owner's tombstone if it still counts, or nil.
local function kind(owner) return kind_of(call('ZSCORE', RELEASED, owner)) end

-- Returns the same for an owner, and for its entry 0, which its outer run has released.
local function kinds(owner)
  local scores = call('ZMSCORE', RELEASED, owner, owner .. ':0')
  return kind_of(scores[1]), kind_of(scores[2])
end

-- Records the end of an owner. If it ended twice, the larger kind and the later time stay.
local function add(owner, kind, lease_end)
  local score = call('ZSCORE', RELEASED, owner)
  local kept_until = math.max(now + TOMBSTONE, lease_end or 0, score and math.floor(score / 16) or 0)
  keys.put_score(RELEASED, kept_until * 16 + math.max(kind, kind_of(score) or kind), owner)
  -- Sets the expiry of a new key immediately, in case the ACL denies a later command; the client then cancels what it was denied.
  if at_start.tombstones == 0 then call('PEXPIREAT', RELEASED, now + KEPT) end
  memory.lasts = math.max(memory.lasts, lease_end or 0)
end

return {word = word, kind = kind, kinds = kinds, add = add}
