# Three and more real servers as one.
load helpers/helpers.bash

setup_file() { :; }
teardown_file() { :; }

# no_trace NAME N…: at these servers.
no_trace() {
  local name=$1 i
  shift
  for i in "$@"; do
    [ "$(at_server "$i" redis exists "rlock:{$name}:holders" "rlock:{$name}:queue")" -eq 0 ] || return
    at_server "$i" nothing_left "$name" || return
  done
}
# in_use N: a quorum whose servers have seen a run before and know its scripts. Bytes that lie unread at a hung server
# can only name them.
in_use() {
  local i
  quorum "$1"
  for ((i = 1; i <= $1; i++)); do RLOCK_URL="unix://$quorum_folder/$i/s" rlock run warm -- true; done
}
held_at() { [ "$(at_server "$1" redis exists "rlock:{$2}:holders")" -eq 1 ]; }

@test "a run over three servers has one token, passes the exit code and leaves nothing" {
  in_use 3
  run -7 rlock run job -- sh -c 'echo "$RLOCK_TOKEN" >token; rlock status --json job >status; exit 7'
  [ "$(jq '.locks[0].holders[0].token' status)" = "$(cat token)" ]
  [ "$(jq '.locks[0].holders | length' status)" -eq 1 ]
  no_trace job 1 2 3
  run -1 --separate-stderr rlock status -q job
  silent
  rlock run job -- sh -c 'echo "$RLOCK_TOKEN" >later'
  [ "$(cat later)" -gt "$(cat token)" ]
}

@test "a grant is completed at the third server immediately, so that one of three may lose it" {
  in_use 3
  signal_server KILL 3
  eventually gone "$(cat "$quorum_folder/3/pid")"
  hold job --event-log log
  serve "$quorum_folder/3" --appendonly yes --appendfsync always
  eventually held_at 3 job
  # The usual renewal, which comes after 10 s, was not needed.
  [ -z "$(jq 'select(.event == "renewed" and .held_ms > 9000)' log)" ] || fail "$(cat log)"
  at_server 1 redis flushall
  run -75 rlock run -n job -- true
  let_go job
}

@test "after FLUSHALL at each server the message of a run says that their data was lost" {
  in_use 3
  hold job -t 60s 2>err
  # Until all have confirmed the grant, rlock stores it again where it is missing.
  for i in 1 2 3; do eventually held_at "$i" job; done
  for i in 1 2 3; do at_server "$i" redis flushall >/dev/null; done
  let_go job
  grep -q 'the server lost its data; the command exited by itself' err || fail "$(cat err)"
}

@test "one server under several names counts once" {
  in_use 3
  ln -s "$quorum_folder/1/s" twin
  ln -s "$quorum_folder/1/s" triplet
  local one="unix://$quorum_folder/1/s" two="unix://$quorum_folder/2/s"
  RLOCK_URL="$one unix://$PWD/twin unix://$PWD/triplet" run -64 --separate-stderr rlock run -n twice -- true
  [[ $stderr == *"is the same server as "*"; a quorum needs independent servers"* ]]
  no_trace twice 1
  # Two of three are different ones: a majority.
  RLOCK_URL="$one unix://$PWD/twin $two" rlock run -n twice -- true
  no_trace twice 1 2
}

# waits_at N: the waiter of job is in the queues of N servers.
waits_at() { [ "$(rlock queue --json job | jq '.waiters[0].servers')" = "$1" ]; }

# A server that is late is left out; the holder may renew and the waiter ask at any time, and then each server has both.
leased_at() { [[ $(rlock status job) == *"the lease exists on $1 of 5 servers"* ]]; }
lease_differs() {
  at_server 2 redis flushall || return
  [ "$(rlock status --json job | jq -c '.locks[0] | [.holders[0].servers, .quorum.servers]')" = '[4,5]' ]
}
one_is_silent() {
  at_server 2 redis flushall || return
  [[ $(rlock status job) == *"the lease exists on 3 of 5 servers"*"silent   $quorum_folder/3/s"* ]]
}
waiter_differs() {
  at_server 2 redis flushall || return
  [[ $(rlock queue job) == *"[4 of 5]"* ]]
}

@test "status, queue and history cover all servers, and show where they differ" {
  in_use 5
  hold job
  start rlock run job -- true
  eventually waits_at 5
  eventually leased_at 5
  eventually lease_differs
  eventually waiter_differs
  signal_server KILL 3
  eventually one_is_silent
  run -0 rlock status -q job
  let_go job
  ends_with 0 "${started[1]}"
  [ "$(rlock history --json job | jq '.runs | length')" -eq 2 ]
  [ "$(rlock status --all --json | jq -r '.locks[].name')" = $'job\nwarm' ]
}

@test "an operator breaks the lock, and removes a waiter from the queue; a signal removes it from that of every server" {
  in_use 3
  hold job
  queue_up job
  rlock queue --remove "$(rlock queue --json job | jq -r '.waiters[0].owner')" job
  ends_with 75 "$waiter"
  queue_up job
  ends_by TERM "$waiter"
  for i in 1 2 3; do [ "$(at_server "$i" redis exists "rlock:{job}:queue")" -eq 0 ]; done
  run -0 rlock force-unlock --yes --reason stuck job
  ends_with 76 "$holder"
  eventually no_trace job 1 2 3
}

@test "while two of five servers hang, acquire, renew and release work, and nothing stays there" {
  in_use 5
  hold job -t 12s --event-log log
  signal_server STOP 1 4
  eventually logged renewed
  queue_up job -- touch served
  hand_over job
  rlock run other -- true
  signal_server CONT 1 4
  eventually no_trace job 1 2 3 4 5
  eventually no_trace other 1 2 3 4 5
}

@test "a run is listed once, even if one server hung all the time" {
  in_use 3
  signal_server STOP 3
  rlock run listed -- true
  signal_server CONT 3
  [ "$(rlock history --json listed | jq '.runs | length')" -eq 1 ]
  [ -z "$(at_server 3 redis keys 'rlock:{listed}:*')" ]
}

@test "if a majority hangs, rlock exits with 69 in time, and nothing stays anywhere" {
  in_use 5
  signal_server STOP 1 2 3
  run -69 --separate-stderr rlock run -q -w 5 job -- touch started
  says '"job"' "only 2 of 5 servers" "$quorum_folder/3/s"
  signal_server CONT 1 2 3
  eventually no_trace job 1 2 3 4 5
}

@test "if a majority hangs during a wait, rlock exits with 69 or 75 in time, and nothing stays anywhere" {
  in_use 3
  hold job
  queue_up job -w 6 -- touch started
  signal_server STOP 2 3
  code=0
  wait "$waiter" || code=$?
  [ "$code" -eq 69 ] || [ "$code" -eq 75 ]
  signal_server CONT 2 3
  let_go job
  eventually no_trace job 1 2 3
}

@test "a holder that loses the majority stops its command in time and exits with 76" {
  in_use 3
  hold job -t 2s -k 200ms
  signal_server STOP 2 3
  ends_with 76 "$holder"
  gone "$command"
  signal_server CONT 2 3
}

not_counted() { [[ $(rlock status job) == *"not counted until"* ]]; }

@test "a server that has just started and may have lost locks is not counted" {
  quorum 3
  end_server "$quorum_folder/3"
  rm -rf "${quorum_folder:?}/3"
  serve "$quorum_folder/3" --appendonly no
  rlock run job -- true
  eventually not_counted
  signal_server KILL 2
  run -69 --separate-stderr rlock run -nq job -- touch started
  says '"job"' "$quorum_folder/3/s: not counted until" "may have lost locks"
}

@test "without permission for CONFIG a server that restarted recently does not count as durable" {
  quorum 3
  for i in 1 2 3; do at_server "$i" redis acl setuser default -config >/dev/null; done
  # A busy machine may try so long that rlock says what it waits for.
  run -69 --separate-stderr rlock run -nq job -- true
  says "not counted until"
  for i in 1 2 3; do at_server "$i" redis acl setuser default +config -info >/dev/null; done
  rlock run job -- true
}

@test "renew with the token restores the lease at each server in turn, without it at none" {
  in_use 3
  local lease owner token i
  lease=$(rlock acquire --json -t 60s job)
  owner=$(jq -r .owner <<<"$lease") token=$(jq .token <<<"$lease")
  # Two have confirmed the grant: the third learns it, too.
  rlock renew --owner "$owner" --token "$token" job
  for i in 1 2 3; do eventually held_at "$i" job; done
  at_server 1 redis flushall
  rlock renew --owner "$owner" job
  run -1 held_at 1 job
  for i in 1 2 3; do
    at_server "$i" redis flushall
    # A renewal may end before it has reached this server: two others confirm it.
    restored() { rlock renew --owner "$owner" --token "$token" job && held_at "$i" job; }
    eventually restored
  done
  run -75 rlock run -n job -- true
  # Nobody knows whether another had the lock at a majority that lost it.
  at_server 1 redis flushall
  at_server 2 redis flushall
  run -76 rlock renew --owner "$owner" --token "$token" -t 60s job
  run -1 held_at 1 job
}

@test "a server that did not grant the lock keeps as many rows of its history as the run asks for" {
  in_use 3
  local third="unix://$quorum_folder/3/s"
  RLOCK_URL=$third rlock close -q --for 1h job
  for _ in 1 2 3; do
    hold job --history 2
    eventually eval "RLOCK_URL=$third rlock status --json job | jq -e '.locks[0].holders | length == 1'"
    let_go job
  done
  eventually eval '[ "$(at_server 3 redis llen "rlock:{job}:history")" -eq 2 ]'
}

@test "steps and nested runs work over three servers" {
  in_use 3
  owner=$(rlock acquire -t 30s job)
  rlock renew --owner "$owner" job
  run -75 rlock run -n job -- true
  rlock release --owner "$owner" job
  rlock release --owner "$owner" job
  run -76 rlock renew --owner "$owner" job
  run -3 rlock run job -- rlock run -n job -- sh -c 'exit 3'
  eventually no_trace job 1 2 3
}
