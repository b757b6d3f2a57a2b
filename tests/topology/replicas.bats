#!/usr/bin/env bats
# --replicas: what counts only once replicas have confirmed it.
load topology

# replicated_server REPLICAS ARG…: r0 with $REPLICAS replicas r1…; $RLOCK_URL leads to r0.
replicated_server() {
  local replicas=$1 ports i
  shift
  read -ra ports < <(free_ports $((replicas + 1)))
  node r0 "${ports[0]}" "$@"
  for ((i = 1; i <= replicas; i++)); do node "r$i" "${ports[i]}" --replicaof 127.0.0.1 "${ports[0]}" "$@"; done
  eventually replicas_linked r0 "$replicas"
  export RLOCK_URL="redis://127.0.0.1:${ports[0]}"
}

# asked: how often WAIT was sent to r0.
asked() { at r0 info commandstats | sed -nE 's/^cmdstat_wait:calls=([0-9]+),.*/\1/p'; }
asked_more_than() { [ "$(asked)" -gt "$1" ]; }

@test "a run, nested runs and steps succeed if the replica confirms everything" {
  replicated_server 1
  run -0 --separate-stderr rlock run --replicas 1 works -- rlock run --replicas 1 works -- printenv RLOCK_NAME
  [ "$output" = works ]
  owner=$(rlock acquire --replicas 1 --ttl 1m steps)
  run -0 rlock renew --replicas 1 steps --owner "$owner" --ttl 2m
  run -0 rlock release steps --owner "$owner"
  hold first --replicas 1
  queue_up first --replicas 1 -- touch served
  hand_over first
  [ -e served ]
  # One for each claim, entry, renewal and release; none for a place in the queue.
  asked_more_than 8
}

@test "a grant that no replica confirms is kept, and its command starts once one does" {
  replicated_server 1
  stop r1
  start rlock run --replicas 1 late -- touch ran 2>printed
  local waiter=$!
  eventually grep -q 'granted, but 0 of 1 replicas confirmed it' printed
  run -75 rlock run -n late -- true
  [ ! -e ran ]
  go_on r1
  ends_with 0 "$waiter"
  [ -e ran ]
}

@test "a grant that no replica confirms is cancelled with -n, at the end of the wait and after a signal" {
  replicated_server 1
  stop r1
  run -69 --separate-stderr rlock run -n --replicas 1 unsafe -- touch ran
  [[ $stderr == *'granted, but 0 of 1 replicas confirmed it'* ]] || fail "$stderr"
  run -1 rlock status -q unsafe
  run -69 rlock run -w 0.3 --replicas 1 unsafe -- touch ran
  run -1 rlock status -q unsafe
  run -69 rlock run -n --fail-open --replicas 1 unsafe -- touch ran
  run -69 rlock acquire -n --replicas 1 --ttl 1m unsafe
  start rlock run --replicas 1 unsafe -- touch ran 2>printed
  local waiter=$!
  eventually grep -q 'granted, but' printed
  ends_by TERM "$waiter"
  run -1 rlock status -q unsafe
  [ ! -e ran ]
  [ "$(rlock history --json unsafe | jq '[.runs[] | select(.exit_code != null)] | length')" -eq 0 ]
}

@test "a master that is cut off from its replicas ends its commands" {
  replicated_server 1
  hold cut -t 3 --replicas 1
  stop r1
  ends_with 76 "$holder"
}

@test "a renewal that no replica confirms has failed" {
  replicated_server 1
  owner=$(rlock acquire --replicas 1 --ttl 1m steps)
  stop r1
  run -69 --separate-stderr rlock renew --replicas 1 steps --owner "$owner"
  [[ $stderr == *'renewed, but 0 of 1 replicas confirmed it'* ]] || fail "$stderr"
}

@test "an operator's release that no replica confirms is not reported as done" {
  replicated_server 1
  owner=$(rlock acquire --replicas 1 --ttl 1m steps)
  stop r1
  run -69 --separate-stderr rlock release --replicas 1 steps --owner "$owner"
  [[ $stderr == *'released, but 0 of 1 replicas confirmed it'* ]] || fail "$stderr"
}

@test "the option is a key of rlock.toml" {
  replicated_server 1
  echo 'replicas = 2' >replicas.toml
  run -69 --separate-stderr rlock run --config replicas.toml -n works -- touch ran
  [[ $stderr == *'granted, but '?' of 2 replicas confirmed it'* ]] || fail "$stderr"
  [ ! -e ran ]
}

@test "a release that no replica confirms is repeated until one does" {
  replicated_server 1
  hold repeated --replicas 1
  stop r1
  before=$(asked)
  echo 1<>go.repeated
  eventually free repeated
  eventually asked_more_than $((before + 2))
  go_on r1
  ends_with 0 "$holder"
}

@test "a user who may not run WAIT gets no lock" {
  replicated_server 1
  at r0 acl setuser rlock on nopass '~*' +@all -wait >/dev/null
  run -77 --separate-stderr rlock run --user rlock --replicas 1 denied -- touch ran
  [[ $stderr == *wait* ]] || fail "$stderr"
  [ ! -e ran ]
  run -1 rlock status -q denied
}

@test "doctor counts the replicas, and warns if a failover would leave too few" {
  replicated_server 2
  run rlock doctor --replicas 1
  [[ $output == *'ok    replicas'*'2 online: '* ]] || fail "$output"
  run rlock doctor --replicas 2
  [[ $output == *'warn  replicas'*'a failover or an unavailable replica stops all'* ]] || fail "$output"
  run -1 rlock doctor --replicas 3
  [[ $output == *'fail  replicas'*'add replicas: no run starts until 3 of them confirm'* ]] || fail "$output"
  rlock doctor --json --replicas 1 | jq -e '.acl_rule | contains("+wait")'
  [[ $(rlock doctor --json | jq -r .acl_rule) != *+wait* ]]
}

@test "doctor: replicas that are online and hang confirm nothing" {
  replicated_server 2
  stop r1
  run rlock doctor --replicas 1
  [[ $output != *'confirmed a write'* ]] || fail "$output"
  stop r2
  run -1 rlock doctor --replicas 1 --connect-timeout 300ms
  [[ $output == *'fail  replicas'*'only 0 confirmed a write'* ]] || fail "$output"
  go_on r1
  go_on r2
}

@test "Sentinel: a confirmed grant is held at the new master, whichever that is" {
  group
  hold kept -t 90 --replicas 2
  fail_over
  run -75 rlock run -n kept -- true
  let_go kept
}

@test "Sentinel: with a replica to spare the command survives a failover" {
  group
  hold kept -t 90 --replicas 1 --event-log log
  one_more renewed crash r0
  let_go kept
  ends_with 0 "$holder"
  eventually free kept
}

@test "Cluster: the replicas of the lock's master confirm" {
  cluster 1
  run -0 rlock run --replicas 1 works -- true
  run -69 --separate-stderr rlock run -n --replicas 2 works -- true
  [[ $stderr == *'granted, but '?' of 2 replicas confirmed it'* ]] || fail "$stderr"
}
