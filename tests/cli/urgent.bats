#!/usr/bin/env bats
# --urgent and queue --first: who is served before those that came earlier, and who is not.
load helpers/helpers

setup() { begin && reset_server; }

# ask NAME [OPTION…]: the run NAME waits for deploy; it writes its name to the file ran.
ask() {
  queue_up deploy "${@:2}" -- sh -c 'echo "$0" >>ran' "$1"
  line+=("$waiter")
}

# served NAME…: they ran in this order.
served() {
  local pid
  for pid in "${line[@]}"; do ends_with 0 "$pid"; done
  [ "$(tr '\n' ' ' <ran)" = "$* " ] || overslept || fail "$(cat ran)"
}

@test "an urgent run overtakes runs that came at most DUR before it" {
  hold deploy
  ask early
  moved 6
  ask late
  ask hotfix --urgent=5s
  ask last
  run -0 rlock queue deploy
  [[ $output == *$'\n2 '*"[urgent 5s] "*hotfix* ]] || fail "$output"
  run -0 rlock queue --json deploy
  [ "$(jq -c '[.waiters[].urgent_ms]' <<<"$output")" = '[0,5000,0,0]' ] || fail "$output"
  let_go deploy
  served early hotfix late last
  run -0 rlock history --json deploy
  [ "$(jq -c '[.runs[].urgent_ms]' <<<"$output")" = '[0,0,5000,0,0]' ] || overslept || fail "$output"
}

@test "without DUR an urgent run counts as having come an hour earlier" {
  hold deploy
  ask ordinary
  ask urgent --urgent
  ask earlier --urgent=2h
  let_go deploy
  served earlier urgent ordinary
}

# first_is_urgent_at N: the Nth server's first waiter is.
first_is_urgent_at() {
  [ "$(RLOCK_URL=unix://$quorum_folder/$1/s rlock queue --json deploy | jq '.waiters[0].urgent_ms')" = 3600000 ]
}

@test "over a quorum an urgent run is first at every server" {
  quorum 3
  hold deploy
  ask ordinary
  ask urgent --urgent
  for i in 1 2 3; do eventually first_is_urgent_at "$i"; done
  let_go deploy
  served urgent ordinary
}

@test "queue --first moves a waiter to the head, by its position, its owner id or the beginning of it" {
  hold deploy
  for name in a b c d; do ask "$name"; done
  run -0 rlock queue deploy --first 3 --reason 'customers wait'
  pid=$(rlock queue --json deploy | jq '.waiters[0].pid')
  [[ $output == "moved $(id -un)@$(hostname) (pid $pid) to the head of the queue of \"deploy\": "*" c" ]] || fail "$output"
  by="by $(id -un)@$(hostname): customers wait"
  run -0 rlock queue deploy
  [[ $output == *$'\n1 '*"[first, $by] "*" c"* ]] || fail "$output"
  owner=$(rlock queue --json deploy | jq -r '.waiters[3].owner')
  run -0 rlock queue --json deploy --first "${owner:0:12}"
  [ "$(jq -r .moved <<<"$output")" = "$owner" ]
  run -0 rlock queue -q deploy --first "$owner"
  let_go deploy
  served d c a b
  run -0 rlock history --json deploy
  [ "$(jq -r '.runs[2].moved' <<<"$output")" = "$by" ] || overslept || fail "$output"
  run -0 rlock history deploy
  [[ $output == *"[first, $by] "* ]] || fail "$output"
}

@test "queue --first moves no run that does not wait" {
  hold deploy
  owner=$(about deploy owner)
  run -75 --separate-stderr rlock queue deploy --first "$owner"
  says "\"deploy\" is held by $owner, which is not waiting"
  run -0 rlock queue deploy --first 1
  [ "$output" = 'the queue of "deploy" has no position 1 and no owner id that begins with 1 (rlock queue deploy lists them): nothing to move' ]
  run -0 rlock queue --json deploy --first abc123
  [ "$(jq -c .moved <<<"$output")" = null ]
  let_go deploy
}
