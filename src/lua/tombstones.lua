-- include: memory
-- RELEASED: the ends of owners, as keep-until * 16 + kind. See constants.lua for the kinds.

local function kind_of(score) return score and math.floor(score / 16) > now and score % 16 or nil end

-- The word for a kind in a reply.
local function ended_as(kind)
  return ({[0] = 'expired', 'expired', 'released', 'cancelled', 'done', 'superseded', 'removed', 'forced'})[kind]
end

-- The kind of an owner's tombstone that still counts, or nil.
local function tombstone(owner) return kind_of(call('ZSCORE', RELEASED, owner)) end

-- If an owner ended twice, the larger kind and the later time stay.
local function add_tombstone(owner, kind, lease_end)
  local before = call('ZSCORE', RELEASED, owner)
  local kept_until = math.max(now + TOMBSTONE, lease_end or 0, before and math.floor(before / 16) or 0)
  put_score(RELEASED, kept_until * 16 + math.max(kind, kind_of(before) or kind), owner)
  -- Sets the expiry of a new key immediately, in case the ACL denies a later command; the client then cancels what it was denied.
  if first_tombstone == math.huge then call('PEXPIREAT', RELEASED, now + KEPT) end
  memory.lasts = math.max(memory.lasts, lease_end or 0)
end
