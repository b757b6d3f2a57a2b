#!/usr/bin/env bats
# rlock doctor at a Sentinel group and at a cluster: real servers, each warning and failure provoked.
load topology

# grade CHECK: the states of all checks of that name, one a line.
grade() {
  rlock doctor --json "${@:2}" |
    jq -r --arg check "$1" '[.servers[].checks[] | select(.check == $check) | .state] | join(" ")'
}
is() { [ "$(grade "$2")" = "$1" ]; }

@test "a Sentinel group: the sentinels, the master they name, and the master itself; a silent one, no failover, nobody" {
  group --appendonly yes --appendfsync always
  run -0 rlock doctor
  [[ $output == *"ok    sentinels     3 of 3 answer"*"ok    master        127.0.0.1:$(port_of r0) (all sentinels agree)"* ]] ||
    fail "$output"
  [[ $output == *"ok    failover"*"ok    role          master"* ]] || fail "$output"
  [[ $(rlock doctor --json | jq -r .acl_rule) == *" +role "* ]]
  crash s2
  [ "$(grade sentinels)" = warn ]
  [ "$(grade master)" = ok ]
  [ "$(at s0 sentinel set "$master_name" quorum 3)" = OK ]
  eventually is warn failover
  run -0 rlock doctor
  [[ $output == *"warn  sentinels     2 of 3 answer"* ]] || fail "$output"
  crash s1
  run -1 rlock doctor
  [[ $output == *"warn  sentinels     1 of 3 answer"*"fail  master        no majority"* ]] || fail "$output"
  crash s0
  run -1 rlock doctor
  [[ $output == *"fail  sentinels     0 of 3 answer"*"fail  master        no sentinel names a master"* ]] || fail "$output"
}

@test "sentinels that differ about the master; a master name that they do not know" {
  group
  at s0 sentinel remove "$master_name"
  at s0 sentinel monitor "$master_name" 127.0.0.1 "$(port_of s1)" 2
  [ "$(grade master)" = warn ]
  crash s2
  [ "$(grade master)" = fail ]
  run -1 rlock doctor -u "${RLOCK_URL/the-master/another}"
  [[ $output == *"it does not know a master"* ]] || fail "$output"
}

@test "a cluster: its state, its slots, each master; a slot that nobody serves, a node that is none of a cluster" {
  cluster 0 --appendonly yes --appendfsync always
  run -0 rlock doctor
  [[ $output == *"ok    cluster"*"ok    slots         16384 of 16384"* ]] || fail "$output"
  [ "$(grade commands)" = "ok ok ok" ]
  [ "$(grade role)" = "ok ok ok" ]
  [[ $(rlock doctor --json | jq -r .acl_rule) == *" +cluster|nodes "* ]]
  at c0 config set maxmemory-policy allkeys-lru >/dev/null
  [[ $(grade eviction) == *warn* ]]
  for node in c0 c1 c2; do at "$node" cluster delslots 7 >/dev/null; done
  eventually is fail cluster
  run -1 rlock doctor
  [[ $output == *"fail  slots         16383 of 16384"* ]] || fail "$output"
  own
  port=$(open_port "$own_server")
  run -1 rlock doctor -u "redis+cluster://127.0.0.1:$port"
  [[ $output == *"fail  cluster"*"cluster support disabled"* ]] || fail "$output"
}

@test "least ACL rules: enough over a quorum, at a Sentinel's master and in a cluster, for all that rlock does" {
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
