-- renew: extends a lease, enters a held lock, and restores a lease that the server's data lost. Over a quorum it writes
-- the token of the majority back, which makes the grant count here; a later renewal does so where that was missed.
-- ARGV, as names and values:
--       owner, entry, limit, ttl, responsive 0|1|2, record
--       token: without it the lease is never restored; min_hold; store_record=1: the record is stored anew
--       attempt: over a quorum the number of the one that is written back; ahead: by how many ms the clock that issued
--       the token may be ahead of this one
--       Of a lease that is restored: slot; once: a field of ONCE; span; max_failures; rows of the history; supersede
-- Returns: extended | put_back | upgrade
--          | lost (deleted|taken|full|expired|unissued|released|cancelled|removed|forced) note holder untouched 0|1
--          (put_back: restored; untouched: nobody was granted the lock since it was granted with this token)
local owner, entry, token, responsive, record = args.owner, args.entry, tonumber(args.token or 0), args.responsive, args.record
local limit, ttl, min_hold = tonumber(args.limit), tonumber(args.ttl), tonumber(args.min_hold or 0)
local stamp, record_changed = 2 * (args.attempt or 0), args.store_record
local caller, reply, admits = owner, nil, s.unswept
if s.several then
  call('ZCARD', RELEASED)
  call('LLEN', HISTORY)
end
local held = first_holder == owner and first_end or
             s.n_holders > 1 and tonumber(call('ZSCORE', HOLDERS, owner) or nil) or 0
local newest = lone and held > 0 and lone.stamp or stamp > 0 and s.stamp_of(owner) or 0
if stamp > 0 and stamp < newest then return s.lost('released') end
-- No token greater than this was ever issued. None is put back either, because later tokens would be smaller.
local greatest = math.max(meta.last, now_us + 1000 * (args.ahead or 0))
if held <= now or s.unswept or entry ~= '0' or record_changed or min_hold > 0 then
  s.touch()
end

-- Renews a live hold; never shortens the lease.
if held > now then
  local line = lone or s.read_line(owner)
  if line.state == 'revoked' then
    reply = s.lost('forced', false)  -- it still counts: nobody has taken over
  elseif line.limit > limit then
    reply = {'upgrade'}
  else
    if line.token == '0' and entry == '0' and token > 0 and token <= greatest then
      local entries = line.entries
      line, record_changed = s.line_again(), true
      line.entries = entries
      admits = true  -- its slot is known again
      call('ZADD', LIMITS, limit, owner)
    end
    local ends = math.max(held, now + ttl)
    if entry == '0' and line.entries == '0=' .. held then
      line.entries = '0=' .. ends
    else
      ends = s.extend_entry(line, held)
    end
    if not ends then
      reply = s.lost('released')
    else
      -- Writes the token of the majority back, also where that was missed.
      local missed = line.state == 'granted' and token > 0 and token <= greatest and line.stamp > 0
      if stamp > 0 or missed then
        line.token = string.format('%.0f', token)
        meta.last = string.format('%.0f', math.max(meta.last, token))
        s.note_grant(line.token, line)
      end
      line.state = 'held'
      if entry == '0' then line.ttl = ttl end
      if min_hold > line.min_hold then s.prolong_min_hold(line) end
      -- A nested run, which does not know these words, has put the lease back.
      if entry == '0' and (args.once or args.supersede) and not s.once_of(line) and
         not s.line_word(line, 'supersede') then
        line.words = line.words .. s.words_again(line.since)
      end
      if record_changed then
        line.record = record
        if not s.lone then call('HSET', WHO, owner, record) end
      end
      s.store_hold(owner, line, ends, s.lone and math.max(stamp, newest) or stamp)
      reply = {'extended'}
    end
  end
end
if s.unswept then s.sweep_ended() end
reply = reply or s.put_back(greatest)
if admits then s.admit() end

