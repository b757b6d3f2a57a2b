-- renew: extends a lease, enters a held lock, and restores a lease that the server's data lost. Over a quorum it writes
-- the token of the majority back, which makes the grant count here; a later renewal does so where that was missed.
-- ARGV: owner, entry, token or 0 (never restored), limit, ttl, min-hold, responsive 0|1|2, record,
--       number of the attempt to write back over a quorum, or 0; 1 to store the record anew, else 0;
--       over a quorum: by how many ms the clock that issued the token may be ahead of this one, else 0;
--       the slot as granted, or 0; of what is done once: a field of ONCE or '', its span, after how many failures it
--       gives up or ''; rows that the history keeps, or ''; of one that supersedes others its number or '+', or ''. A
--       lease that is restored has all of them again
-- Returns: extended | put_back | upgrade
--          | lost (deleted|taken|full|expired|unissued|released|cancelled|removed|forced) note holder untouched 0|1
--          (put_back: restored; untouched: nobody was granted the lock since it was granted with this token)
local owner, entry, token, limit, ttl, min_hold, responsive, record, attempt, changed, ahead, slot, once_field, once_span,
      max_failures, keep_rows, supersede = unpack(ARGV)

if older then return older end
if lone_owner == owner and tonumber(lone_end) > now and entry == '0' and min_hold == '0' and
   changed ~= '1' and ttl == lone_ttl and tonumber(limit) >= tonumber(lone_limit) and tonumber(ttl) <= DAY then
  local ends = math.max(now + ttl, tonumber(lone_end))
  local stamp = 2 * tonumber(attempt or 0)
  local state, tried = string.match(lone_words, TRY)
  local hold
  if stamp == 0 and state ~= 'granted' then
    hold = string.sub(lone, 1, end_at - 1) .. ends .. string.sub(lone, end_after)
  elseif tried and stamp >= tonumber(tried) and lone_limit == '1' and token ~= '0' then
    -- Writes the token of the majority back.
    local rest = string.gsub(lone_words, TRY, 'try=held:' .. stamp .. ' ') .. '| ' .. lone_record
    hold = table.concat({'1', owner, 1, token, lone_since, ttl, lone_responsive, ends, rest}, ' ')
    local function later(number) return tonumber(number) > tonumber(token) and number or token end
    last, last_grant, last_exclusive = later(last), later(last_grant), later(last_exclusive)
  end
  if hold then
    call('PEXPIREAT', HOLDERS, ends + GRACE)
    call('SET', HOLDERS, hold, 'KEEPTTL')
    if stamp > 0 or now - kept >= HOUR then write_memory(last, last_grant, last_exclusive, old_head) end
    return {'extended'}
  end
end

