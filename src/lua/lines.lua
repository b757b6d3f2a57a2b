-- include: memory words
-- WHO: for each owner a line, the words of a holder or waiter; `!owner`, the note of the operator who ended it; and `#owner`,
-- the newest stamp of its attempts at a quorum: twice the attempt, plus one once that attempt was cancelled.
--
-- The words of a line: state (waiting, granted, held, revoked, cooldown, closed), limit, token, since, ttl, min_hold, responsive
-- (see RLOCK_RUN); entries, id:end,id:end; slot; once, span, asked, max (what is done once); supersede; while_closed; id (of a
-- closure); result (how the outer run ended, while nested runs keep the lock); counted (the lease expired before, and was restored);
-- unclaimed (the grant was broken before its claim).
local RLOCK_RUN = '2'  -- who responds when its lock is broken: nobody (0), a renewer of steps (1), or rlock run

local function write_line(owner, line) put_text(WHO, owner, words_of(line)) end

-- A holder whose line was deleted counts as a live run, with the token 0, until its renewal writes the line again.
local function read_line(owner)
  local text = call('HGET', WHO, owner)
  local line = text and read_words(text)
  if line and line.state then return line end
  local ends = call('ZSCORE', HOLDERS, owner)
  if not ends then return nil end
  local cools = string.sub(owner, 1, 1) == '~'
  return {state = owner == CLOSED and 'closed' or cools and 'cooldown' or 'held', limit = tonumber(call('ZSCORE', LIMITS, owner) or 1),
          token = 0, since = now, ttl = 0, min_hold = 0, responsive = cools and '0' or RLOCK_RUN, entries = '0:' .. ends, record = ''}
end

-- The entries of a line whose leases have not expired: id to end. Usually there is one, 0.
local function live_entries(line)
  local entries = {}
  for id, ends in string.gmatch(line.entries or '', '(%w+):(%d+)') do
    if tonumber(ends) > now then entries[id] = tonumber(ends) end
  end
  return entries
end

-- Stores entries in a line, and returns the latest of their ends.
local function set_entries(line, entries)
  local texts, latest = {}, 0
  for id, ends in pairs(entries) do
    texts[#texts + 1] = id .. ':' .. ends
    latest = math.max(latest, ends)
  end
  line.entries = table.concat(texts, ',')
  return latest
end

local function forget_line(owner) call('HDEL', WHO, owner) end

local function note_of(owner) return call('HGET', WHO, '!' .. owner) or '' end
local function store_note(owner, note) put_text(WHO, '!' .. owner, note) end

local function stamp_of(owner) return tonumber(call('HGET', WHO, '#' .. owner) or 0) end
local function store_stamp(owner, stamp)
  if stamp > 0 then put_text(WHO, '#' .. owner, stamp) end
end
