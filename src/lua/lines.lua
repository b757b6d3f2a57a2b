-- include: keys words
-- WHO: for each owner a line, the words of a holder or waiter. The other fields of this key are in notes.lua and stamps.lua.
--
-- The words of a line: state (waiting, granted, held, revoked, cooldown, closed), limit, token, since, ttl, min_hold, responsive
-- (see RLOCK_RUN); entries, id:end,id:end; slot; once, span, asked, max (what is done once); supersede, and ticket (which it had
-- when it was granted the lock); while_closed; id (of a closure); result (how the outer run ended, while nested runs keep the lock); counted (the lease expired before, and was
-- restored then); waited (for the grant); unclaimed (the grant was broken before its claim).

local function write(owner, line) keys.put_text(WHO, owner, words.text_of(line)) end

-- Returns the line of an owner, or nil. A holder whose line was deleted counts as a live run with the token 0 until it renews.
local function read(owner)
  local text = call('HGET', WHO, owner)
  local line = text and words.read(text)
  if line and line.state then return line end
  local ends = call('ZSCORE', HOLDERS, owner)
  if not ends then return nil end
  local cools = string.sub(owner, 1, 1) == '~'
  return {state = owner == CLOSED and 'closed' or cools and 'cooldown' or 'held', limit = tonumber(call('ZSCORE', LIMITS, owner) or 1),
          token = 0, since = now, ttl = 0, min_hold = 0, responsive = cools and '0' or RLOCK_RUN, entries = '0:' .. ends, record = ''}
end

local function forget(owner) call('HDEL', WHO, owner) end

return {write = write, read = read, forget = forget}
