#!/usr/bin/env python3
"""peer.py KIND SOCKET take NAME MS | extend NAME TOKEN MS | drop NAME TOKEN | work NAME SECONDS TRACE

Another client of the same lock. KIND: redis-py (its Lock), or redisson, the published protocol of Redisson's RLock:
what its server-side steps do, said again. take prints the token; each exits 1 where the lock is not (or no longer)
its own. work takes and drops the lock for SECONDS, with a line in TRACE at each beginning and end.
"""
import os
import random
import sys
import time
import uuid

import redis

LOCK = """local key = KEYS[1]
local mine = redis.call('hexists', key, ARGV[2]) == 1
if mine or redis.call('exists', key) == 0 then
  redis.call('hincrby', key, ARGV[2], 1)
  redis.call('pexpire', key, ARGV[1])
  return nil
end
return redis.call('pttl', key)"""
RENEW = """if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('pexpire', KEYS[1], ARGV[1])
return 1"""
UNLOCK = """if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], 0)
return 1"""


class RedisPy:
    def __init__(self, client):
        self.client = client

    def lock(self, name, token=None):
        lock = self.client.lock(name, timeout=1, thread_local=False)
        lock.local.token = token.encode() if token else None
        return lock

    def take(self, name, ms):
        lock = self.client.lock(name, timeout=ms / 1000, thread_local=False)
        return lock.local.token.decode() if lock.acquire(blocking=False) else None

    def extend(self, name, token, ms):
        try:
            return bool(self.lock(name, token).extend(ms / 1000, replace_ttl=True))
        except redis.exceptions.LockError:
            return False

    def drop(self, name, token):
        try:
            self.lock(name, token).release()
        except redis.exceptions.LockError:
            return False
        return True


class Redisson:
    def __init__(self, client):
        self.client = client

    def take(self, name, ms):
        token = f"{uuid.uuid4()}:{random.randrange(1, 99)}"
        return token if self.client.eval(LOCK, 1, name, ms, token) is None else None

    def extend(self, name, token, ms):
        return self.client.eval(RENEW, 1, name, ms, token) == 1

    def drop(self, name, token):
        return self.client.eval(UNLOCK, 2, name, "redisson_lock__channel:{" + name + "}", 30000, token) is not None


def note(trace, word, whose):
    line = f"{word} {time.monotonic_ns()} {whose}\n".encode()
    os.write(trace, line)


def work(peer, name, seconds, path):
    trace = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    end = time.monotonic() + seconds
    turn = 0
    while time.monotonic() < end:
        token = peer.take(name, 20000)
        if token is None:
            time.sleep(0.005 + random.random() / 50)
            continue
        turn += 1
        whose = f"{sys.argv[1]}-{os.getpid()}-{turn}"
        note(trace, "start", whose)
        time.sleep(random.random() / 50)
        note(trace, "stop", whose)
        if not peer.drop(name, token):
            note(trace, "robbed", whose)
    return True


def main():
    kind, socket, verb, name, *rest = sys.argv[1:]
    client = redis.Redis(unix_socket_path=socket)
    peer = RedisPy(client) if kind == "redis-py" else Redisson(client)
    if verb == "take":
        token = peer.take(name, int(rest[0]))
        print(token or "")
        return token is not None
    if verb == "extend":
        return peer.extend(name, rest[0], int(rest[1]))
    if verb == "drop":
        return peer.drop(name, rest[0])
    return work(peer, name, float(rest[0]), rest[1])


sys.exit(0 if main() else 1)
