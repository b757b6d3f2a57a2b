#!/usr/bin/env bats
load helpers/helpers

@test "20 processes x 50 runs of an unlocked counter: no update is lost, tokens strictly increase" {
  local processes=${RLOCK_TEST_PROCESSES:-20} runs=${RLOCK_TEST_RUNS:-50} worker pids=()
  echo 0 >counter
  cat >count <<'SH'
read -r n <counter
sleep 0.001
echo $((n + 1)) >counter
echo "$RLOCK_TOKEN" >>tokens
SH
  # shellcheck disable=SC2016
  for ((worker = 0; worker < processes; ++worker)); do
    start sh -c 'i=0; while [ $i -lt "$1" ]; do rlock run --event-log events counter -- sh count || exit; i=$((i + 1)); done' sh "$runs"
    pids+=($!)
  done
  for worker in "${pids[@]}"; do ends_with 0 "$worker"; done
  [ "$(cat counter)" -eq $((processes * runs)) ]
  [ "$(wc -l <tokens)" -eq $((processes * runs)) ]
  sort --check=quiet --numeric-sort --unique tokens || fail "a token did not increase"
  jq -r 'select(.event == "acquired") | .token' events | sort -n | cmp - tokens || fail "the event log differs"
  nothing_left counter
}

@test "five waiters are killed at once, the sixth gets its turn within their heartbeat" {
  local who pids=() since
  hold mass
  for who in 1 2 3 4 5; do
    start rlock run mass -- false
    pids+=($!)
    eventually waiting "$who" mass
  done
  start rlock run mass -- true
  local sixth=$!
  eventually waiting 6 mass
  kill -KILL "${pids[@]}"
  for who in "${pids[@]}"; do ends_with 137 "$who"; done
  since=$SECONDS
  let_go mass
  ends_with 0 "$sixth"
  echo "# the sixth had its turn after $((SECONDS - since)) s" >&3
  nothing_left mass
}

@test "many short runs at once on the same fresh lock: one at a time, all served" {
  local who pids=()
  for who in {1..30}; do
    start rlock run crowd -- sh -c 'mkdir inside || exit 1; rmdir inside; echo x >>served'
    pids+=($!)
  done
  for who in "${pids[@]}"; do ends_with 0 "$who"; done
  [ "$(wc -l <served)" -eq 30 ]
  nothing_left crowd
}

@test "three contenders for one cron line: one runs, two skip with 75" {
  local who codes=() pids=()
  mkfifo ran go
  for who in 1 2 3; do
    start rlock run -n cron -- sh -c 'exec 9<>go; echo up >ran; read -r _ <&9'
    pids+=($!)
  done
  next_line ran
  eventually two_skipped
  echo 1<>go
  for who in "${pids[@]}"; do
    local code=0
    wait "$who" || code=$?
    codes+=("$code")
  done
  [ "$(printf '%s\n' "${codes[@]}" | sort -n | tr '\n' ' ')" = "0 75 75 " ] || fail "${codes[*]}"
}

two_skipped() {
  local pid alive=0
  for pid in "${started[@]}"; do gone "$pid" || alive=$((alive + 1)); done
  [ "$alive" -eq 1 ]
}
