-- How an owner becomes a holder, and how a holder is stored.

function s.issue()
  meta.last = string.format('%.0f', math.max(meta.last + 1, now_us))
  if meta.created == '0' then meta.created = meta.last end
  s.changed = true
  return meta.last
end

-- The last grants, which are compared with the token of a lease that is put back.
function s.note_grant(token, line)
  s.changed = true
  if meta.grant - token < 0 then meta.grant = token end
  if line.limit == 1 and meta.exclusive - token < 0 then meta.exclusive = token end
  -- The keys must live as long as the longest --min-hold.
  if line.min_hold > 0 then meta.hold = s.int(math.max(meta.hold, line.since + line.min_hold)) end
end

-- Stores a holder's line, and until when it holds. One that is alone is folded.
function s.store_hold(owner, line, ends, stamp, is_new)
  local lone = s.lone
  local sole = is_new and s.present == 0 and line.min_hold == 0 and line.entries == '0=' .. ends
  if not lone and not sole then
    return s.store_line(owner, line, ends, stamp, is_new)
  end
  local word = line.words ~= '' and string.sub(line.words, 2) .. ' ' or ''
  if stamp > 0 then word = 'try=' .. line.state .. ':' .. stamp .. ' ' .. word end
  local text = '1 ' .. owner .. ' ' .. line.limit .. ' ' .. line.token .. ' ' .. line.since .. ' ' .. line.ttl .. ' ' ..
               line.responsive .. ' ' .. ends .. ' ' .. word .. '| ' .. line.record
  if lone then
    call('PEXPIREAT', HOLDERS, ends + META_LIFE)
    call('SET', HOLDERS, text, 'KEEPTTL')
  else
    call('SET', HOLDERS, text, 'PXAT', ends + META_LIFE)
  end
  line.owner, line.ends, line.stamp = owner, ends, stamp
  s.lone, s.n_holders, s.first_holder, s.first_end, s.present = line, 1, owner, ends, 1
end

-- Which of several holders one is: the word `slot` of its line.
function s.slot_of(line) return tonumber(string.match(line.words, ' slot=(%d+)') or 0) end

-- Makes `owner` a holder with a new token until `ends`. Its slot is the least number from 1 that no other holder has. Where
-- a holder fits, one is free up to its own limit. Over a quorum the grant counts only once the majority's token is
-- written back (renew): the grant of one server does not show that anybody had the lock.
function s.grant(owner, line, ends, stamp)
  line.token = s.issue()
  line.since = now
  if line.limit > 1 and line.limit <= MOST_SLOTS then
    local slot, used = 1, s.n_holders > 0 and s.used_slots() or {}
    while used[slot] do slot = slot + 1 end
    used[slot] = true
    line.words = string.gsub(line.words, ' slot=%d+', '') .. ' slot=' .. slot
  end
  if stamp == 0 then s.note_grant(line.token, line) end
  line.entries = '0=' .. ends
  s.store_hold(owner, line, ends, stamp, true)
end

