#!/usr/bin/python3
"""The classic fair lock of a hash, a list and a sorted set, written from its description, for peers.py.

Usage: fair_lock.py SOCKET NAME SECONDS COMMAND...

The hash has the holder and how often it has the lock; the list has those who wait, in their order; the sorted set says when
each of them is given up. Each attempt drops the heads of the list that are given up, gets the lock if it is free and nobody
is ahead, and else joins the list. A release publishes on the channel of the next one. A thread renews the lease.
"""

import secrets
import subprocess
import sys
import threading
import time

import redis

WAIT = 5000  # ms that a waiter has to take the lock when its turn should have come

DROP = """
while true do
  local head = redis.call('lindex', KEYS[2], 0)
  if not head or tonumber(redis.call('zscore', KEYS[3], head) or 0) > tonumber(ARGV[2]) then break end
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], head)
end
"""
# Returns nothing with the lock, else the ms after which the turn should have come.
ACQUIRE = DROP + """
local me, now, lease, wait = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local head = redis.call('lindex', KEYS[2], 0)
if redis.call('hexists', KEYS[1], me) == 1
    or (redis.call('exists', KEYS[1]) == 0 and (not head or head == me)) then
  if head == me then
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], me)
    for _, other in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do redis.call('zincrby', KEYS[3], -wait, other) end
  end
  redis.call('hincrby', KEYS[1], me, 1)
  redis.call('pexpire', KEYS[1], lease)
  return nil
end
local given_up = redis.call('zscore', KEYS[3], me)
if given_up then return tonumber(given_up) - wait - now end
local last = redis.call('lindex', KEYS[2], -1)
local left = last and tonumber(redis.call('zscore', KEYS[3], last)) - now or redis.call('pttl', KEYS[1])
redis.call('zadd', KEYS[3], now + left + wait, me)
redis.call('rpush', KEYS[2], me)
return left
"""
RENEW = """
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[3])
"""
RELEASE = DROP + """
if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then return 0 end
  redis.call('del', KEYS[1])
end
local head = redis.call('lindex', KEYS[2], 0)
if head then redis.call('publish', KEYS[4] .. head, 'free') end
return 1
"""


class FairLock:
    def __init__(self, path, name, seconds):
        self.client = redis.Redis(unix_socket_path=path)
        self.keys = [f"fair:{{{name}}}", f"fair:{{{name}}}:queue", f"fair:{{{name}}}:until", f"fair:{{{name}}}:turn:"]
        self.me, self.lease = secrets.token_hex(16), seconds * 1000
        self.ended = threading.Event()
        self.scripts = {text: self.client.register_script(text) for text in (ACQUIRE, RENEW, RELEASE)}

    def call(self, text):
        return self.scripts[text](keys=self.keys, args=[self.me, int(time.time() * 1000), self.lease, WAIT])

    def wait(self):
        """Returns with the lock; who loses the connection tries again."""
        while True:
            try:
                with self.client.pubsub(ignore_subscribe_messages=True) as channel:
                    channel.subscribe(self.keys[3] + self.me)
                    while (left := self.call(ACQUIRE)) is not None:
                        channel.get_message(timeout=left / 1000 if 0 < left < WAIT else WAIT / 1000)
                return
            except redis.exceptions.ConnectionError:
                time.sleep(0.2)

    def renew(self):
        while not self.ended.wait(self.lease / 3000):
            try:
                if not self.call(RENEW):
                    return
            except redis.exceptions.ConnectionError:
                pass  # the next one may pass

    def release(self):
        self.ended.set()
        self.call(RELEASE)


def main():
    lock = FairLock(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    lock.wait()
    threading.Thread(target=lock.renew, daemon=True).start()
    code = subprocess.run(sys.argv[4:], check=False).returncode
    lock.release()
    sys.exit(code)


main()
