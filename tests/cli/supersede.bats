#!/usr/bin/env bats
# --supersede: of the waiters with this option only the newest stays.
load helpers/helpers

setup() { begin && reset_server; }

# deploy WHO [OPTION…]: a run of "deploy" in the background that adds WHO to the file order; its pid is $deploy, and
# what it says comes to the file said.WHO.
deploy() {
  local who=$1
  shift
  start rlock run "$@" deploy -- sh -c 'echo "$1" >>order' sh "$who" 2>"said.$who"
  deploy=$!
}

# newest PID: that run waits for "deploy", and nobody else does.
newest() { [ "$(rlock queue --json deploy | jq -c '[.waiters[].pid]')" = "[$1]" ]; }

@test "of 20 deploys that wait for another one, the newest runs and 19 name the run that superseded them" {
  local i pids=()
  hold deploy
  for ((i = 1; i <= 20; i++)); do
    deploy "$i" "--supersede=$i"
    pids+=("$deploy")
    eventually newest "$deploy"
  done
  for ((i = 1; i < 20; i++)); do
    ends_with 75 "${pids[i - 1]}"
    grep -qE "\"deploy\" at $SERVER/s: number $i was superseded by number [0-9]+ of $(id -un)@$(hostname) \(pid " "said.$i" || fail "$(cat "said.$i")"
  done
  grep -qF "(pid ${pids[1]})" said.1 || fail "$(cat said.1)"
  # An old one that is tried again.
  run -75 --separate-stderr rlock run --supersede=7 deploy -- touch old
  says "number 7 was superseded by number 20 of" "(pid ${pids[19]}), which has waited since " "; see rlock queue deploy"
  newest "${pids[19]}"
  let_go deploy
  ends_with 0 "${pids[19]}"
  [ "$(cat order)" = 20 ]
  [ ! -e old ]
  rlock history deploy | grep -qF "[20 superseded] [number 7] touch old" || fail "$(rlock history deploy)"
  nothing_left deploy
}

@test "of 20 deploys that start together, the one with the greatest number runs" {
  local i pids=()
  hold deploy
  for i in $(seq 20 | shuf); do
    deploy "$i" -q --connect-timeout 30s "--supersede=$i"
    pids[i]=$deploy
  done
  for ((i = 1; i < 20; i++)); do ends_with 75 "${pids[i]}"; done
  eventually newest "${pids[20]}"
  let_go deploy
  ends_with 0 "${pids[20]}"
  [ "$(cat order)" = 20 ]
}

@test "without a number the latest run takes the position of the earlier one, and no other waiter loses its position" {
  hold deploy
  deploy first --supersede
  first=$deploy
  eventually waiting 1 deploy
  deploy other
  other=$deploy
  eventually waiting 2 deploy
  deploy latest --supersede --exit-code superseded=9
  ends_with 75 "$first"
  eventually waiting 2 deploy
  let_go deploy
  ends_with 0 "$deploy"
  ends_with 0 "$other"
  [ "$(tr '\n' ' ' <order)" = "latest other " ] || overslept || fail "$(cat order)"
}

@test "a run that does not wait supersedes no waiter" {
  hold deploy
  deploy first --supersede=1
  first=$deploy
  eventually waiting 1 deploy
  run -75 --separate-stderr rlock run -n --supersede=2 deploy -- true
  says busy
  let_go deploy
  ends_with 0 "$first"
}

@test "a superseded run exits with --exit-code superseded=, is an event, and prints nothing with -q" {
  hold deploy
  deploy old -q --supersede=1 --exit-code superseded=9 --event-log log
  local old=$deploy
  eventually newest "$old"
  deploy new --supersede=2
  ends_with 9 "$old"
  [ ! -s said.old ] || fail "$(cat said.old)"
  [ "$(jq -r .event log | tr '\n' ' ')" = "enqueued superseded " ] || fail "$(cat log)"
  let_go deploy
  ends_with 0 "$deploy"
}

@test "acquire --supersede: the older one exits with 75, kind superseded in JSON" {
  hold deploy
  start rlock acquire --ttl 1m --json --supersede=1 deploy >old.json 2>/dev/null
  local old=$!
  eventually waiting 1 deploy
  start rlock acquire --ttl 1m --json --supersede=2 deploy >new.json
  ends_with 75 "$old"
  [ "$(jq -c '.error | [.kind, .code, .name]' old.json)" = '["superseded",75,"deploy"]' ] || fail "$(cat old.json)"
  let_go deploy
  ends_with 0 $!
  rlock release deploy --owner "$(jq -r .owner new.json)"
}

@test "numbers that start again at 1 are explained with both numbers and rlock forget, and status, history and metrics show them" {
  run -0 rlock run --supersede=57 shop/deploy -- true
  run -75 --separate-stderr rlock run --supersede=1 shop/deploy -- touch started
  says "number 1 was superseded by number 57 of $(id -un)@$(hostname) (pid " "which was granted the lock " ", at 20" "rlock forget shop/deploy"
  shows 0 "number   57, granted the lock " "by $(id -un)@$(hostname)" -- rlock status shop/deploy
  run -0 rlock status --json shop/deploy
  jq -e '.locks[0] | .newest.number == 57 and (.newest.since | startswith("20")) and .counters.superseded == 1' <<<"$output"
  shows 0 "[1 superseded] [number 1] touch" "[number 57] true" -- rlock history shop/deploy
  [ "$(rlock history --json shop/deploy | jq -c '[.skips.supersede, .runs[0].supersede]')" = "[1,57]" ]
  rlock metrics shop/deploy | grep -qx 'rlock_superseded_total{name="shop/deploy"} 1'
  run -0 rlock forget shop/deploy --yes
  run -0 rlock run --supersede=1 shop/deploy -- true
  rlock status --json shop/deploy | jq -e '.locks[0].newest.number == 1'
}
