#!/usr/bin/env bats
# A Sentinel group.
load topology

@test "every command works over a Sentinel group" {
  group
  run -0 rlock run works -- printenv RLOCK_NAME
  [ "$output" = works ]
  hold shown --reason why
  run -0 rlock status --all
  [[ $output == *shown*held* && $output == *works*free* ]] || fail "$output"
  queue_up shown
  run -0 rlock force-unlock shown --yes
  ends_with 76 "$holder"
  ends_with 0 "$!"
  shows 0 "$(id -un)" -- rlock history works
  owner=$(rlock acquire steps --ttl 1m)
  run -0 rlock renew steps --owner "$owner" --ttl 2m
  run -0 rlock release steps --owner "$owner"
  run -0 rlock run outer -- rlock run inner -- true
  run -0 rlock run nested -- rlock run nested -- true
}

@test "kill -9 of the master: the command keeps running, and its lease moves to the new master" {
  group
  hold kept -t 90 --event-log log
  replicated r0
  one_more renewed crash r0
  run -75 rlock run -n kept -- true
  let_go kept
  run -1 rlock status -q kept
  [ "$(rlock history --json kept | jq '.runs | length')" -eq 1 ]
}

@test "kill -9 of the master under a queue: the order is kept" {
  group
  hold queue -t 90
  line_up queue
  replicated r0
  fail_over
  let_go queue
  in_order
}

@test "a lock whose command ends while there is no master is released at the new one" {
  group
  hold ended -t 10
  replicated r0
  crash r0
  let_go ended
  eventually deposed r0
  eventually free ended
}

# Takes the lock again and again until there is a file `enough`. A lease that the old master granted
# and did not pass on may overlap: counted, not refused.
contend() {
  local code
  until [ -e enough ]; do
    code=0
    rlock run --connect-timeout 90s -w 120 race -- flock -n -E 9 race.flock sh -c 'echo "$RLOCK_TOKEN" >>tokens; sleep 0.02' 2>>troubles || code=$?
    echo "$code" >>codes
  done
}

taken_since() { [ "$(wc -l <tokens)" -gt "$1" ]; }

@test "kill -9 of the master among claims and hand-overs: tokens grow, every run ends well" {
  group
  local contenders=() _
  touch tokens
  for _ in 1 2 3 4; do
    contend 3>&- 4>&- &
    contenders+=($!)
    started+=($!)
  done
  eventually taken_since 20
  fail_over
  eventually taken_since $(($(wc -l <tokens) + 20))
  touch enough
  wait "${contenders[@]}"
  sort -nuc tokens
  ! grep -qvxE '0|9' codes || fail "$(sort codes | uniq -c; cat troubles)"
  echo "# $(wc -l <tokens) runs, $(grep -cx 9 codes || true) overlapped a lease that the fail-over lost" >&3
  run -1 rlock status -q race
}

# It refuses as long as it has not asked the replicas.
agrees_to_fail_over() { [ "$(at s0 sentinel failover "$master_name")" = OK ]; }

blocked_at() { [ "$(at "$1" info clients | tr -d '\r' | sed -n 's/^blocked_clients://p')" -eq "$2" ]; }

@test "SENTINEL FAILOVER costs no holder its lock and no waiter its position" {
  group
  hold planned -t 90 --event-log log
  queue_up planned
  replicated r0
  eventually agrees_to_fail_over
  eventually deposed r0
  # The waiter, and the holder's connection for messages of operators.
  eventually blocked_at "$(master)" 2
  eventually blocked_at r0 0
  hand_over planned
}

# failing_over: a planned failover begins at s0 and goes no further: the replicas are stopped. Nothing that r0 is asked
# from now on reaches one that may take over.
failing_over() {
  local i
  for i in 0 1 2; do
    at "s$i" sentinel set "$master_name" down-after-milliseconds 600000 >/dev/null
    at "s$i" sentinel set "$master_name" failover-timeout 600000 >/dev/null
  done
  at r0 acl setuser default -psync -sync >/dev/null
  at r0 client kill type replica >/dev/null
  stop r1
  stop r2
  eventually agrees_to_fail_over
}

# promoted: the failover goes on, and is over.
promoted() {
  go_on r1
  go_on r2
  eventually deposed r0
}

granted_at() { [ "$(at "$1" exists "rlock:{$2}:holders")" = 1 ]; }
gone_at() { ! granted_at "$1" "$2"; }

calls_at() { at "$1" info commandstats | sed -nE 's/^cmdstat_evalsha:calls=([0-9]+),.*/\1/p'; }
more_calls_at() { [ "$(calls_at "$1")" -gt "$2" ]; }

@test "a grant during a failover counts only at the new master" {
  group
  # The scripts are known, and one waits already when it begins.
  hold waited -t 90
  start rlock run -w 300 waited -- touch served
  local waiter=$!
  eventually waiting 1 waited
  replicated r0
  failing_over
  start rlock run fresh -- touch started
  local fresh=$!
  start rlock run -n --connect-timeout 300s at_once -- touch ran
  local at_once=$!
  start sh -c 'rlock acquire --ttl 10m -w 300 steps >owner'
  local steps=$!
  eventually granted_at r0 fresh
  eventually granted_at r0 at_once
  eventually granted_at r0 steps
  # Asked again and again, and granted each time.
  eventually more_calls_at r0 $(($(calls_at r0) + 30))
  [ ! -e started ] && [ ! -e ran ] && [ ! -s owner ]
  promoted
  ends_with 0 "$fresh"
  ends_with 0 "$at_once"
  ends_with 0 "$steps"
  [ -e started ] && [ -e ran ]
  run -0 rlock release steps --owner "$(cat owner)"
  [ ! -e served ]
  let_go waited
  ends_with 0 "$waiter"
  [ -e served ]
}

@test "a failover that takes longer than the wait ends it with 69, and nothing ran" {
  group
  run -0 rlock run slow -- true
  failing_over
  refuses 69 slow 'a failover of' 'is in progress' -- rlock run -n slow -- touch started
  refuses 69 slow 'is in progress' -- rlock run -w 0.5 --connect-timeout 0.5 slow -- touch started
  # A server has answered.
  refuses 69 slow 'is in progress' -- rlock run -n --fail-open slow -- touch started
  [ ! -e started ]
  promoted
  run -0 rlock run slow -- true
}

@test "a failover whose leader is 100 ms away prevents a grant, although a majority has answered" {
  group
  run -0 rlock run lock -- true
  far s0 0.05
  RLOCK_URL=${RLOCK_URL/127.0.0.1:$(port_of s0)/$far}
  failing_over
  refuses 69 lock "sentinel $far: a failover of" 'is in progress' -- rlock run -n lock -- touch started
  promoted
  run -0 rlock run lock -- true
}

@test "a release during a failover is repeated at the new master" {
  group
  # Whose release is tried as long as its lease lasts.
  hold ended -t 90 --once work
  owner=$(rlock acquire --ttl 90s steps)
  replicated r0
  failing_over
  echo 1<>go.ended
  start rlock release --connect-timeout 300s steps --owner "$owner"
  local release=$!
  eventually gone_at r0 ended
  eventually gone_at r0 steps
  promoted
  ends_with 0 "$release"
  ends_with 0 "$holder"
  run -1 rlock status -q ended
  run -1 rlock status -q steps
  run -0 rlock run --once work ended -- touch again
  [ ! -e again ]
}

@test "an operator's change during a failover is repeated at the new master" {
  group
  run -0 rlock run shop -- true
  failing_over
  start rlock close --connect-timeout 300s --for 1h shop
  local close=$!
  eventually granted_at r0 shop
  promoted
  ends_with 0 "$close"
  run -75 rlock run -n shop -- true
}

@test "a renewal does not wait for a failover, and a grant is renewed after one second" {
  group
  hold early -t 900 --event-log log
  eventually logged renewed
  replicated r0
  failing_over
  # Long before a third of the lease.
  eventually logged renewed 3
  promoted
  let_go early
}

@test "a deposed master is not believed, although it still says master and its connections live" {
  group
  hold torn -t 90 --event-log log
  replicated r0
  # Its connection to the master is open: only the sentinels know that it is no longer the master.
  eventually logged renewed
  stop r0
  eventually deposed r0
  new=$(master)
  # What a fail-over loses is taken before the holder could put it back.
  kill -STOP "$holder"
  at "$new" flushall >/dev/null
  start rlock run torn -- sh -c 'echo up >up; exec sleep 60'
  taker=$!
  eventually test -s up
  go_on r0
  kill -CONT "$holder"
  ends_with 76 "$holder"
  # The new master reported it, not the end of the lease.
  logged lost 1 taken || fail "$(cat log)"
  kill "$taker"
  ends_with 143 "$taker"
}

connected() { ss -Htnp state established "dport = :$2" | grep -q "pid=$1,"; }

@test "a master that was stopped and replaced during a request is not believed when it continues" {
  group
  # It knows the scripts then: it is asked once.
  run -0 rlock run late -- true
  old=$(port_of r0)
  stop r0
  start rlock run --connect-timeout 120s late -- touch started
  late=$!
  eventually connected "$late" "$old"
  eventually deposed r0
  hold late
  go_on r0
  # It follows the sentinels to the new master, and waits there.
  eventually waiting 1 late
  let_go late
  ends_with 0 "$late"
}

@test "a lock that a failover lost is restored if no other run had it since" {
  group
  hold lost -t 60 --event-log log
  # From now on nothing reaches the replicas but the link itself.
  token=$(rlock status --json lost | jq '.locks[0].holders[0].token')
  replicated r0
  fail_over
  new=$(master)
  at "$new" flushall >/dev/null
  eventually logged renewed 1 restored
  [ "$(rlock status --json lost | jq '.locks[0].holders[0].token')" = "$token" ]
  let_go lost
  run -0 rlock run lost -- sh -c "[ \"\$RLOCK_TOKEN\" -gt $token ]"
}

@test "a sentinel that is cut off with the old master is not believed, and the command is stopped within its lease" {
  group
  hold alone -t 9 --event-log log
  eventually logged renewed
  stop s1
  stop s2
  ends_with 76 "$holder"
  jq -se '[.[] | select(.event == "renewed") | .t_ns] as $renewed | [.[] | select(.event == "exited") | .t_ns] as $exited |
    $exited[0] - $renewed[-1] < 9000000000' log || fail "it outlived its lease: $(cat log)"
  refuses 78 majority -- rlock run -n alone -- touch started
  go_on s1
  go_on s2
  eventually rlock run -n alone -- true
}

@test "sentinels may be dead or silent as long as most of those named agree" {
  group
  stop s0
  run -0 rlock run lock -- true
  go_on s0
  crash s0
  run -0 rlock run lock -- true
  # The last one may be cut off together with a deposed master; a firewall refuses just as the dead do.
  crash s1
  refuses 78 lock majority "$master_name" "Connection refused" "127.0.0.1:$(port_of s0) (last answered"
}

@test "a sentinel that is stopped costs no short lease, and delays no run by a long connect timeout" {
  group
  stop s0
  run -0 rlock run -t 1s lock -- true
  run -0 rlock run --connect-timeout 5m lock -- true
}

@test "a single named sentinel leads to the others, and decides nothing if it is cut off from them" {
  group
  RLOCK_URL="redis+sentinel://127.0.0.1:$(port_of s2)/$master_name"
  run -0 rlock run lock -- true
  stop s0
  run -0 rlock run lock -- true
  stop s1
  refuses 78 lock "1 of 3 name one" "127.0.0.1:$(port_of s1) (last answered"
  go_on s0
  eventually rlock run -n lock -- true
}

@test "sentinels that were replaced but not reset are reported with the commands to type (78), by doctor too" {
  group
  local ports line
  read -ra ports < <(free_ports 1)
  crash s0
  sentinel s3 "${ports[0]}"
  eventually others s3 2
  RLOCK_URL="redis+sentinel://127.0.0.1:$(port_of s1),127.0.0.1:$(port_of s2),127.0.0.1:${ports[0]}/$master_name"
  eventually others s1 3
  run -0 rlock run lock -- true
  crash s1
  shows 1 "fail  sentinels" "exist" "SENTINEL RESET $master_name" -- rlock doctor
  refuses 78 lock "2 of 4 name one" "127.0.0.1:$(port_of s0) (last answered" "SENTINEL RESET $master_name"
  while read -r line; do
    eval "$line" >/dev/null
  done < <(grep -o "redis-cli -h 127.0.0.1 -p [0-9]* SENTINEL RESET $master_name" <<<"$stderr")
  RLOCK_URL="redis+sentinel://127.0.0.1:$(port_of s2),127.0.0.1:${ports[0]}/$master_name"
  eventually rlock run -n lock -- true
}

# others SENTINEL N: it knows so many others.
others() { [ "$(at "$1" sentinel sentinels "$master_name" | grep -cx runid)" -eq "$2" ]; }

@test "sentinels behind NAT, which announce other addresses, are counted once" {
  # shellcheck disable=SC2034 # read by group
  local sentinel_lines="sentinel announce-ip 127.0.0.99"
  group
  run -0 rlock run lock -- true
  crash s0
  run -0 rlock run lock -- true
  crash s1
  refuses 78 lock "1 of 3 name one" "127.0.0.99:$(port_of s1)"
}

@test "a URL of the wrong kind exits with 78 and names the right URL; doctor names it, too" {
  group
  local sentinel server command
  sentinel=127.0.0.1:$(port_of s0)
  server=127.0.0.1:$(port_of r0)
  for command in "run -n lock -- touch started" "status" "status lock" "acquire --ttl 1m lock" "force-unlock --yes lock"; do
    # shellcheck disable=SC2086 # words
    RLOCK_URL=redis://$sentinel refuses 78 "$sentinel is a Sentinel" "redis+sentinel://$sentinel/$master_name" -- rlock $command
  done
  RLOCK_URL=redis+sentinel://$server/$master_name refuses 78 "$server is no Sentinel: use redis://$server" -- rlock run lock -- touch started
  shows 1 "fail" "redis+sentinel://$sentinel/$master_name" -- rlock doctor --url "redis://$sentinel"
  shows 1 "fail" "is no Sentinel: use redis://$server" -- rlock doctor --url "redis+sentinel://$server/$master_name"
}

@test "--fail-open: a master that refuses has answered, sentinels alone have not" {
  group
  at r0 config set min-replicas-to-write 3 >/dev/null
  refuses 69 lock NOREPLICAS -- rlock run -n --fail-open lock -- touch started
  crash r1
  crash r2
  crash r0
  run -0 --separate-stderr rlock run --fail-open lock -- touch ran
  [[ $stderr == *"without the lock"* ]] || fail "$stderr"
  [ -e ran ]
}

@test "a master that the sentinels do not know is 78, with -n after --connect-timeout and else after five seconds" {
  group
  export RLOCK_URL=${RLOCK_URL/%$master_name/another}
  refuses 78 lock 'does not know a master "another"' 'correct the name of the master' -- rlock run -n --fail-open lock -- touch started
  refuses 78 lock 'does not know a master "another"' 'correct the name of the master' -- rlock run -q --fail-open lock -- touch started
}

@test "exit 77: servers and sentinels have separate passwords" {
  # shellcheck disable=SC2034 # read by group
  local group_password=canary1 sentinel_password=canary2 sentinel_lines
  # shellcheck disable=SC2034 # read by group
  sentinel_lines="requirepass $sentinel_password
sentinel sentinel-pass $sentinel_password"
  group
  local hosts=${RLOCK_URL#redis+sentinel://}
  RLOCK_URL="redis+sentinel://:canary1@$hosts?sentinel_password=canary2" run -0 rlock run lock -- true
  RLOCK_PASSWORD=canary1 RLOCK_URL="redis+sentinel://$hosts?sentinel_password=canary2" run -0 rlock run lock -- true
  for url in "$hosts" ":canary1@$hosts" ":canary1@$hosts?sentinel_password=wrong" ":canary2@$hosts?sentinel_password=canary2"; do
    RLOCK_URL="redis+sentinel://$url" refuses 77 lock
    [[ $stderr != *canary* ]] || fail "$stderr"
  done
}
