-- The commands that the scripts of the native format run, and BLPOP.

-- Returns each with arguments that the server accepts, because newer servers count them when a script asks what the ACL allows. The first
-- write needs memory, because a full server refuses no later one. Two commands let the keys expire, because one may be denied, at ENDS.
local function list(set, hash, list, ends)
  return {
    {'ZADD', set, 1, 'a'}, {'PEXPIREAT', set, ends}, {'PEXPIRE', set, 60000}, {'PTTL', set}, {'EXISTS', set}, {'TIME'},
    {'ZCARD', set}, {'ZCOUNT', set, '-inf', '+inf'}, {'ZRANGE', set, 0, -1}, {'ZRANGEBYSCORE', set, '-inf', '+inf'},
    {'ZRANK', set, 'a'}, {'ZSCORE', set, 'a'}, {'ZMSCORE', set, 'a'}, {'ZREM', set, 'a'},
    {'HSET', hash, 'a', 1}, {'HGET', hash, 'a'}, {'HGETALL', hash}, {'HMGET', hash, 'a'}, {'HEXISTS', hash, 'a'},
    {'HLEN', hash}, {'HDEL', hash, 'a'},
    {'GET', list}, {'LPUSH', list, 'b'}, {'LINDEX', list, 0}, {'LRANGE', list, 0, 0}, {'LLEN', list}, {'LSET', list, 0, 'c'},
    {'LTRIM', list, 1, 0}, {'BLPOP', list, 0}, {'DEL', set, hash, list},
  }
end

return {list = list}
