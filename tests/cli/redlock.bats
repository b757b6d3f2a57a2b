#!/usr/bin/env bats
# --format plain over three and more servers: Redlock, beside the npm package redlock.
load helpers/helpers
load helpers/peers

setup_file() {
  FOLDER=$(mktemp -d)
  export FOLDER
  install_node_redlock "$FOLDER"
}
teardown_file() { rm -rf "$FOLDER"; }

# at_most MS NAME: no server keeps NAME longer.
at_most() {
  local i
  for ((i = 1; i <= 3; i++)); do [ "$(at_server "$i" redis pttl "$2")" -le "$1" ] || return; done
}
# has N NAME OWNER: at the Nth server NAME has this owner. A server that a majority did not wait for gets it a moment later.
has() { [ "$(at_server "$1" redis get "$2")" = "$3" ]; }
nowhere() {
  local name=$1 i
  shift
  for i in "$@"; do [ "$(at_server "$i" redis exists "$name")" -eq 0 ] || return; done
}

plain() { rlock "$1" --format plain "${@:2}"; }

@test "a run holds one value at all servers, without a token, and leaves nothing" {
  quorum 3
  run -7 plain run job -- sh -c 'echo "$RLOCK_OWNER ${RLOCK_TOKEN-none}" >seen
    # The third server may get it a moment later.
    for try in $(seq 200); do
      for s in "$0"/*/s; do redis-cli -s "$s" get job; done >stored
      [ "$(sort -u stored | wc -l)" -ne 1 ] || exit 7
      sleep 0.05
    done' "$quorum_folder"
  read -r owner token <seen
  [ "$token" = none ]
  [ "$(cat stored)" = "$owner"$'\n'"$owner"$'\n'"$owner" ]
  nowhere job 1 2 3
}

@test "node-redlock and rlock exclude each other over three servers; none extends or releases the other's" {
  needs_node_redlock
  quorum 3
  excludes_both_ways node-redlock plain
}

@test "a waiting run acquires when node-redlock is done, under the owner of the attempt that won" {
  needs_node_redlock
  quorum 3
  token=$(peer node-redlock take turn 60000)
  start rlock run -v --format plain --event-log events turn -- sh -c 'echo "$RLOCK_OWNER" >owner
    # The first server may get it a moment later.
    until redis-cli -s "$0/1/s" get turn | tee stored | grep -q .; do sleep 0.05; done' "$quorum_folder" 2>wait.log
  eventually grep -q "waiting for" wait.log
  peer node-redlock drop turn "$token"
  ends_with 0 "${started[0]}"
  [ "$(cat owner)" = "$(cat stored)" ]
  [ "$(jq -r 'select(.event == "acquired") | .owner' events)" = "$(cat owner)" ]
  # A fresh value for each try.
  [ "$(jq -r 'select(.event == "enqueued") | .owner' events)" != "$(cat owner)" ]
  nowhere turn 1 2 3
}

@test "a minority that hangs or is dead affects neither acquisition nor renewal nor release" {
  quorum 5
  rlock run --format plain warm -- true
  signal_server KILL 1
  signal_server STOP 2
  run -0 plain run -t 12 --event-log events job -- sh -c 'until grep -q "\"renewed\"" events; do sleep 0.05; done'
  signal_server CONT 2
  nowhere job 3 4 5
  eventually nowhere job 2
}

@test "if a majority hangs or is dead, rlock exits with 69 and releases what it took" {
  quorum 5
  signal_server STOP 1 2 3
  refuses 69 '"job"' "$quorum_folder/3/s" -- rlock run -q -n --format plain --connect-timeout 3s job -- touch started
  nowhere job 4 5
  signal_server KILL 1 2 3
  refuses 69 '"job"' "only 2 of 5 servers" -- rlock run -q -n --format plain --connect-timeout 3s job -- touch started
  nowhere job 4 5
}

@test "a majority of another owner means busy (75), and the minority that was taken is released" {
  quorum 3
  at_server 1 redis set job other px 60000
  at_server 2 redis set job other px 60000
  run -75 plain run -n job -- touch started
  run -75 plain run -w 0.3 job -- touch started
  nowhere job 3
  has 1 job other
}

@test "a majority that lost the lock ends the run with 76; what is left is released" {
  quorum 3
  hold job --format plain -t 12
  owner=$(plain status --json job | jq -r '.locks[0].holders[0].owner')
  # Two have it; one that was late may never get it.
  for i in 1 2 3; do at_server "$i" redis del job; done
  ends_with 76 "$holder"
  nowhere job 1 2 3
}

@test "force-unlock frees the lock on all servers; --renew-while renews and releases the value that won" {
  quorum 3
  sleep 60 &
  started+=($!)
  at_server 1 redis set job other px 1000
  at_server 2 redis set job other px 1000
  owner=$(plain acquire --ttl 6 --renew-while "${started[0]}" job)
  [ "$(plain status --json job | jq -r '.locks[0].holders[0].owner')" = "$owner" ]
  plain force-unlock --yes job
  eventually nowhere job 1 2 3
  at_server 1 redis set again other px 1000
  at_server 2 redis set again other px 1000
  owner=$(plain acquire --ttl 6 --renew-while "${started[0]}" again)
  [ "$(plain status --json again | jq -r '.locks[0].holders[0].owner')" = "$owner" ]
  kill -KILL "${started[0]}"
  eventually nowhere again 1 2 3
}

@test "contenders over five servers never overlap" {
  quorum 5
  for i in 1 2 3 4; do
    start bash -ec 'for ((k = 0; k < 4; k++)); do
      rlock run --format plain job -- sh -c "exec 9>lock; flock -n 9 || echo overlap; echo served" >>out
    done'
  done
  all_done
  [ "$(grep -c served out)" -eq 16 ]
  run ! grep -q overlap out
  nowhere job 1 2 3 4 5
}
