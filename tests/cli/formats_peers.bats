#!/usr/bin/env bats
# --format beside the real other clients: redis-py's Lock, the npm package redlock, and the protocol of Redisson's
# RLock. RLOCK_STRESS_SECONDS makes the contention longer.
load helpers/helpers
load helpers/peers

setup_file() {
  SERVER=$(mktemp -d)
  export SERVER RLOCK_URL="unix://$SERVER/s"
  serve "$SERVER"
  install_node_redlock "$SERVER"
}

at_most() { [ "$(redis pttl "$2")" -le "$1" ]; }

# waits_for KIND FORMAT: a waiting run acquires when the peer is done.
waits_for() {
  local token waiter
  token=$(peer "$1" take turn 60000)
  start rlock run -v --format "$2" turn -- touch served 2>wait.log
  waiter=$!
  eventually grep -q "waiting for" wait.log
  peer "$1" drop turn "$token"
  ends_with 0 "$waiter"
  [ -e served ]
}

# A command that leaves its trace.
turn='
import os, time
def note(word): os.write(1, f"{word} {time.monotonic_ns()} {os.getpid()}\n".encode())
note("start"); time.sleep(0.015); note("stop")'

# contend FORMAT KIND…: rlock and the others on one lock, for some seconds.
contend() {
  local format=$1 seconds=${RLOCK_STRESS_SECONDS:-10} kind
  shift
  for kind in "$@"; do
    peer "$kind" work crowd "$seconds" "$here/trace" 3>&- 4>&- &
    started+=($!)
  done
  for _ in 1 2 3; do
    start sh -c 'end=$(($(date +%s) + $1)); while [ "$(date +%s)" -lt "$end" ]; do
      rlock run --format "$2" -t 20 crowd -- "$3" -IS -c "$4" >>trace || exit; done' sh "$seconds" "$format" "$python" "$turn"
  done
  all_done
  run -0 overlaps.py trace rlock "$@"
  echo "# $output" >&3
  [ "$(redis exists crowd)" -eq 0 ]
}

@test "redis-py and rlock exclude each other; none extends or releases the other's lock" {
  needs_redis_py
  excludes_both_ways redis-py plain
  waits_for redis-py plain
}

@test "node-redlock and rlock exclude each other; none extends or releases the other's lock" {
  needs_node_redlock
  excludes_both_ways node-redlock plain
  waits_for node-redlock plain
}

@test "Redisson's RLock and rlock exclude each other; none extends or releases the other's lock" {
  needs_redis_py
  excludes_both_ways redisson redisson
  waits_for redisson redisson
}

@test "Redisson's waiters are notified of rlock's release" {
  mkfifo messages
  hold spoken --format redisson
  start sh -c 'redis-cli -s "$0/s" subscribe "redisson_lock__channel:{spoken}" >messages' "$SERVER"
  exec 8<messages
  for _ in 1 2 3; do read -r -t 60 line <&8; done # subscribe, its channel, 1
  let_go spoken
  for _ in 1 2 3; do read -r -t 60 line <&8; done # message, its channel, 0
  exec 8<&-
  [ "$line" = 0 ]
}

@test "an RLock that was entered twice is free after its second release" {
  needs_redis_py
  token=$(peer redisson take twice 60000)
  redis hincrby twice "$token" 1 >/dev/null
  run -75 rlock run -n --format redisson twice -- true
  peer redisson drop twice "$token"
  run -75 rlock run -n --format redisson twice -- true
  [ "$(redis hget twice "$token")" = 1 ]
  peer redisson drop twice "$token"
  run -0 rlock run -n --format redisson twice -- true
}

@test "mixed contention: rlock --format plain, redis-py and node-redlock on one lock never overlap" {
  needs_redis_py
  needs_node_redlock
  contend plain redis-py node-redlock
}

@test "mixed contention: rlock --format redisson and Redisson's protocol on one lock never overlap" {
  needs_redis_py
  contend redisson redisson
}
