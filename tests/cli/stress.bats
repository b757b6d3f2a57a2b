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
