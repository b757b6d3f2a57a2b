#!/usr/bin/env bats
# A cluster of three masters. [docs/PROTOCOL.md, "Cluster"]
load topology

names="alpha beta gamma delta epsilon zeta"

@test "every command works over a cluster, for locks of all its nodes" {
  cluster 0
  local name owners=
  for name in $names; do
    owners+="$(owner_of "$name") "
    run -0 rlock run "$name" -- printenv RLOCK_NAME
    [ "$output" = "$name" ]
  done
  for name in c0 c1 c2; do [[ $owners == *$name* ]] || fail "no lock is on $name: $owners"; done
  run -0 rlock status --all --json
  [ "$(jq -r '[.locks[].name] | join(" ")' <<<"$output")" = "alpha beta delta epsilon gamma zeta" ] || fail "$output"
  # shellcheck disable=SC2086 # several names
  run -0 rlock status $names
  for name in $names; do
    hold "$name"
    queue_up "$name"
    run -0 rlock force-unlock "$name" --yes
    ends_with 76 "$holder"
    ends_with 0 "$!"
    [ "$(rlock history --json "$name" | jq '.runs | length')" -ge 2 ]
  done
  owner=$(rlock acquire beta --ttl 1m)
  run -0 rlock renew beta --owner "$owner"
  run -0 rlock release beta --owner "$owner"
  run -0 rlock run nested -- rlock run nested -- true
  # shellcheck disable=SC2086 # several names
  run -0 rlock close $names --for 1h
  for name in $names; do
    run -75 rlock run -n "$name" -- true
    run -0 rlock run --while-closed "$name" -- true
  done
  # shellcheck disable=SC2086 # several names
  run -0 rlock open $names
  for name in $names; do run -0 rlock run -n "$name" -- true; done
  hold alpha
  queue_up alpha
  local first=$waiter
  queue_up alpha
  run -0 rlock queue alpha --first 2
  let_go alpha
  ends_with 0 "$waiter"
  ends_with 0 "$first"
}

# seen_all FILE: each of the names is in it.
seen_all() {
  local name
  for name in $names; do grep -q "\"name\":\"$name\".*\"state\":\"held\"" "$1" || return; done
}

@test "watch over a cluster reads the locks of all its nodes in batches" {
  cluster 0
  for name in $names; do rlock acquire "$name" --ttl 20m; done
  start rlock watch >changes
  local listing=$!
  # shellcheck disable=SC2086 # several names
  start rlock watch $names >named
  eventually seen_all changes
  eventually seen_all named
  kill -TERM "$listing" "$!"
  ends_with 143 "$!"
}

@test "one live seed node is enough" {
  # So long that the cluster does not call the silent node failed.
  cluster 0 --cluster-node-timeout 60000
  alive="127.0.0.1:$(port_of c0)"
  RLOCK_URL="redis+cluster://127.0.0.1:1,127.0.0.1:2,$alive" run -0 rlock run alpha -- true
  stop c1
  for name in $names; do
    [ "$(owner_of "$name")" != c1 ] || continue
    RLOCK_URL="redis+cluster://127.0.0.1:$(port_of c1),$alive" run -0 rlock run "$name" -- true
  done
  go_on c1
  RLOCK_URL="redis+cluster://127.0.0.1:1,127.0.0.1:2" run -69 --separate-stderr rlock run -n alpha -- true
  says alpha "Connection refused"
}

@test "a plain URL to one node says which scheme to write" {
  cluster 0
  port=$(port_of "$(other_than "$(owner_of alpha)")")
  RLOCK_URL="redis://127.0.0.1:$port" run -78 --separate-stderr rlock run alpha -- touch started
  says alpha "use redis+cluster://127.0.0.1:$port"
}

# dumped NAME: all that the lock has, everywhere.
dumped() {
  local node key
  for node in c0 c1 c2; do
    for key in $(at "$node" --raw keys "rlock:{$1}:*" | sort); do
      echo "$key $(at "$node" dump "$key" | md5sum)"
    done
  done | sort
}

@test "while a slot moves nothing is written to the wrong node, and afterwards every command works" {
  cluster 0
  from=$(owner_of mover)
  to=$(other_than "$from")
  slot=$(slot_of mover)
  hold mover -t 60
  queue_up mover -- sh -c 'echo next >>order'
  open_move "$slot" "$from" "$to"
  for step in 0 3 100; do
    move_keys "$slot" "$from" "$to" "$step"
    before=$(dumped mover)
    run -69 --separate-stderr rlock run -n mover -- touch started
    [[ $stderr == *TRYAGAIN* ]] || fail "after $step keys: $stderr"
    [ "$(dumped mover)" = "$before" ] || fail "something was written after $step keys"
  done
  # The one key of another format answers where it is: ASK is followed.
  run -0 rlock run -n --format plain mover -- true
  close_move "$slot" "$from" "$to"
  [ "$(owner_of mover "$to")" = "$to" ]
  eventually waiting 1 mover
  hand_over mover
  [ "$(cat order)" = next ]
  run -1 rlock status -q mover
}

@test "a slot moves under a holder and a queue: renewed and handed over at the new node" {
  cluster 0
  from=$(owner_of moved)
  to=$(other_than "$from")
  slot=$(slot_of moved)
  hold moved -t 12 --event-log log
  queue_up moved
  open_move "$slot" "$from" "$to"
  move_keys "$slot" "$from" "$to" 100
  close_move "$slot" "$from" "$to"
  one_more renewed
  one_more renewed
  hand_over moved
}

@test "kill -9 of a node: the promoted replica serves holders and waiters" {
  cluster 1
  node=$(owner_of kept)
  hold kept -t 120 --event-log log
  queue_up kept -- sh -c 'echo next >>order'
  replicated "$node" 1
  one_more renewed crash "$node"
  eventually waiting 1 kept
  run -75 rlock run -n kept -- true
  hand_over kept
  [ "$(cat order)" = next ]
}

@test "if the cluster is down, runs exit with 69, and the holder's command is stopped within its lease" {
  cluster 0
  hold down -t 3
  node=$(owner_of down)
  crash "$(other_than "$node")"
  eventually cluster_down "$node"
  eventually gone "$command"
  ends_with 76 "$holder"
  run -69 --separate-stderr rlock run -n down -- touch started
  [[ $stderr == *CLUSTERDOWN* || $stderr == *"Connection refused"* ]] || fail "$stderr"
}

cluster_down() { at "$1" cluster info | grep -q cluster_state:fail; }

@test "status on a cluster with a dead master: the rest is listed, the missing one named, 69" {
  # The others go on serving their slots.
  cluster 0 --cluster-require-full-coverage no
  local dead name left=""
  dead=$(owner_of alpha)
  for name in $names; do
    run -0 rlock run "$name" -- true
    [ "$(owner_of "$name")" = "$dead" ] || left+="$name "
  done
  crash "$dead"
  run -69 --separate-stderr rlock status --all --connect-timeout 4s
  for name in $left; do [[ $output == *"$name "* ]] || fail "no $name in: $output"; done
  [[ $output != *alpha* && $output != *"no locks"* ]] || fail "$output"
  [[ $stderr == "rlock: cannot list locks: "*"127.0.0.1:$(port_of "$dead")"* ]] || fail "$stderr"
  run -69 --separate-stderr rlock status --all --json --connect-timeout 4s
  [ "$(jq -r '[.locks[].name] | join(" ")' <<<"$output") " = "$(tr ' ' '\n' <<<"${left% }" | sort | paste -sd' ') " ] || fail "$output"
}
