#!/usr/bin/env bats
# rlock doctor at a Sentinel group and at a cluster: real servers, each warning and failure provoked.
load topology

# grade CHECK: the states of all checks of that name, one a line.
grade() {
  rlock doctor --json "${@:2}" |
    jq -r --arg check "$1" '[.servers[].checks[] | select(.check == $check) | .state] | join(" ")'
}
is() { [ "$(grade "$2")" = "$1" ]; }

@test "doctor checks the sentinels of a group and their master, and reports each that fails" {
  group --appendonly yes --appendfsync always
  run -0 rlock doctor
  [[ $output == *"ok    sentinels     3 of 3 answer"*"ok    master        127.0.0.1:$(port_of r0) (all sentinels agree)"* ]] ||
    fail "$output"
  [[ $output == *"ok    failover"*"ok    role          master"* ]] || fail "$output"
  [[ $(rlock doctor --json | jq -r .acl_rule) == *" +role "* ]]
  # The slowest sentinel counts.
  [ "$(grade outage)" = ok ]
  at s1 sentinel set "$master_name" down-after-milliseconds 30000 >/dev/null
  [ "$(grade outage)" = ok ]
  at s1 sentinel set "$master_name" down-after-milliseconds 60000 >/dev/null
  [ "$(grade outage)" = warn ]
  [[ $(rlock doctor) == *"(down-after-milliseconds 60000), and a run with --ttl 1m survives every outage of up to 40s"*"-> use --ttl 1m30s"* ]]
  [ "$(grade outage -t 90s)" = ok ]
  [ "$(grade outage -t 90s -k 30s)" = warn ]
  printf '[run]\nttl = "5m"\n' >rlock.toml
  [ "$(grade outage --config rlock.toml)" = ok ]
  at s1 sentinel set "$master_name" down-after-milliseconds 9223372036854775807 >/dev/null
  [[ $(rlock doctor) == *"warn  outage        a failover takes about 104249991d"*"-> make the failover quicker: "* ]] || fail "$(rlock doctor)"
  at s1 sentinel set "$master_name" down-after-milliseconds 1000 >/dev/null
  stop s2
  run -0 rlock doctor
  [[ $output == *"warn  sentinels     2 of 3 answer"*"127.0.0.1:$(port_of s2)"* ]] || fail "$output"
  go_on s2
  crash s2
  [ "$(grade sentinels)" = warn ]
  [ "$(grade master)" = ok ]
  [ "$(at s0 sentinel set "$master_name" quorum 3)" = OK ]
  eventually is warn failover
  run -0 rlock doctor
  [[ $output == *"warn  sentinels     2 of 3 answer"* ]] || fail "$output"
  crash s1
  run -1 rlock doctor
  [[ $output == *"fail  sentinels     1 of 3 answer"*"fail  master        no majority"* ]] || fail "$output"
  crash s0
  run -1 rlock doctor
  [[ $output == *"fail  sentinels     0 of 3 answer"*"fail  master        no sentinel names a master"* ]] || fail "$output"
}

@test "doctor warns of a user who may not list the sentinels, and its advice, pasted, fixes that" {
  # shellcheck disable=SC2034 # read by group
  local sentinel_lines="user rl on >canary +@all -sentinel|myid -sentinel|sentinels" found
  group
  [ "$(grade counting)" = ok ]
  RLOCK_URL+="?sentinel_username=rl&sentinel_password=canary"
  [ "$(grade counting)" = warn ]
  run -0 rlock doctor
  [[ $output == *"warn  counting "*"not tested: this user may not run SENTINEL MYID at 127.0.0.1:$(port_of s0)"* ]] || fail "$output"
  # It names one sentinel after the other.
  for found in 0 1 2; do
    at "s$found" acl setuser rl '+sentinel|myid' >/dev/null
    run -0 rlock doctor
    [[ $output == *"this user may not run SENTINEL SENTINELS at 127.0.0.1:$(port_of "s$found")"* ]] || fail "$output"
    run -0 sh -c "$(rlock doctor --json | jq -r '.servers[0].checks[] | select(.check == "counting") | .advice')"
  done
  run -0 rlock doctor
  [[ $output == *"ok    counting      together the sentinels know of 3"* && $output != *canary* ]] || fail "$output"
  at s0 sentinel flushconfig
  grep -q '^user rl .*+@all' "$fleet/s0/conf" || fail "$(cat "$fleet/s0/conf")"
  at s0 acl setuser rl '-sentinel|ckquorum' '-sentinel|master' >/dev/null
  run -0 rlock doctor
  [[ $output == *"warn  failover      not tested: this user may not run SENTINEL CKQUORUM at"* ]] || fail "$output"
}

@test "doctor reports sentinels that differ about the master, or do not know its name" {
  group
  at s0 sentinel remove "$master_name"
  at s0 sentinel monitor "$master_name" 127.0.0.1 "$(port_of s1)" 2
  [ "$(grade master)" = warn ]
  crash s2
  [ "$(grade master)" = fail ]
  run -1 rlock doctor -u "${RLOCK_URL/the-master/another}"
  [[ $output == *"it does not know a master"* ]] || fail "$output"
}

@test "doctor checks the state, slots and masters of a cluster, and reports a slot without a node" {
  cluster 0 --appendonly yes --appendfsync always
  run -0 rlock doctor
  [[ $output == *"ok    cluster"*"ok    slots         16384 of 16384"* ]] || fail "$output"
  [ "$(grade commands)" = "ok ok ok" ]
  [ "$(grade role)" = "ok ok ok" ]
  [[ $(rlock doctor --json | jq -r .acl_rule) == *" +cluster|nodes "* ]]
  [ "$(grade outage)" = ok ]
  for node in c0 c1 c2; do at "$node" config set cluster-node-timeout 30000 >/dev/null; done
  [ "$(grade outage)" = warn ]
  [ "$(grade outage -t 5m)" = ok ]
  at c0 config set maxmemory-policy allkeys-lru >/dev/null
  [[ $(grade eviction) == *warn* ]]
  for node in c0 c1 c2; do at "$node" cluster delslots 7 >/dev/null; done
  eventually is fail cluster
  run -1 rlock doctor
  [[ $output == *"fail  slots         16383 of 16384"* ]] || fail "$output"
  own
  port=$(open_port "$own_server")
  run -1 rlock doctor -u "redis+cluster://127.0.0.1:$port"
  [[ $output == *"fail  seeds"*"0 of 1 answer"*"no node of a cluster: use redis://127.0.0.1:$port"* ]] || fail "$output"
}

@test "doctor passes a cluster whose master has one slot, and reports servers in the URL that do not answer" {
  local ports i
  read -ra ports < <(free_ports 7)
  for i in 0 1 2; do node "c$i" "${ports[i]}" --cluster-enabled yes --cluster-node-timeout 5000 --cluster-port "${ports[3 + i]}"; done
  at c0 cluster addslotsrange 0 8000 >/dev/null
  at c1 cluster addslotsrange 8001 16382 >/dev/null
  at c2 cluster addslots 16383 >/dev/null
  for i in 1 2; do at c0 cluster meet 127.0.0.1 "${ports[i]}" "${ports[3 + i]}" >/dev/null; done
  for i in 0 1 2; do eventually sees_all "c$i"; done
  export RLOCK_URL="redis+cluster://127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}"
  run -0 rlock doctor
  [ "$(grade commands)" = "ok ok ok" ]
  [ "$(grade scripts)" = "ok ok ok" ]
  [ "$(grade seeds)" = ok ]
  [ "$(grade replicas)" = "warn warn warn" ]
  for i in 0 1 2; do [ "$(at "c$i" dbsize)" -eq 0 ]; done
  RLOCK_URL="${RLOCK_URL/\/\//\/\/127.0.0.1:${ports[6]},}" run -0 rlock doctor
  [[ $output == *"warn  seeds "*"2 of 3 answer"*"127.0.0.1:${ports[6]}"* ]] || fail "$output"
}

# moving: the nodes that doctor warns of, each with what it says.
moving() {
  rlock doctor --json | jq -r '.servers[] | .server as $at | .checks[] |
    select(.check == "moving slots" and .state == "warn") | "\($at) \(.detail)"'
}

@test "a slot that is stuck half-way in a move is a warning at both nodes, and the advice ends the move" {
  local advised
  cluster 0 --appendonly yes --appendfsync always
  [ -z "$(moving)" ]
  open_move 93 c0 c1
  [[ $(moving) == *":$(port_of c0) 93 to another node"* ]] || fail "$(moving)"
  [[ $(moving) == *":$(port_of c1) 93 from another node"* ]] || fail "$(moving)"
  run -0 rlock doctor
  advised=$(rlock doctor --json | jq -r '[.servers[].checks[] | select(.check == "moving slots") | .advice // empty][0]')
  [[ $advised =~ ^redis-cli.*"--cluster fix 127.0.0.1:"("$(port_of c0)"|"$(port_of c1)")" " ]] || fail "$advised"
  run -0 sh -c "$advised"
  eventually at_rest
}

at_rest() { [ -z "$(moving)" ]; }

@test "doctor reports a Sentinel group whose replicas are all gone" {
  group
  [ "$(grade replicas)" = ok ]
  crash r1
  crash r2
  eventually is warn replicas
  [ "$(grade failover)" = ok ]
}

@test "the least ACL rules are enough over a quorum, at a Sentinel's master and in a cluster, for all that rlock does" {
  quorum 3
  rule=$(rlock doctor --json | jq -r .acl_rule)
  RLOCK_URL=
  for i in 1 2 3; do
    # Words on purpose.
    # shellcheck disable=SC2086
    at_server "$i" redis acl setuser least on '>pw' $rule >/dev/null
    RLOCK_URL+="unix://least:pw@$quorum_folder/$i/s "
  done
  run -0 rlock run job -- true
  for i in 1 2 3; do [ "$(at_server "$i" redis acl log)" = "" ]; done

  cluster 0
  rule=$(rlock doctor --json | jq -r .acl_rule)
  # shellcheck disable=SC2086
  for node in c0 c1 c2; do at "$node" acl setuser least on '>pw' $rule >/dev/null; done
  RLOCK_URL=${RLOCK_URL/redis+cluster:\/\//redis+cluster:\/\/least:pw@}
  for i in 1 2 3 4; do run -0 rlock run "job$i" -- true; done
  run -0 rlock status
  for node in c0 c1 c2; do [ "$(at "$node" acl log)" = "" ]; done
}
