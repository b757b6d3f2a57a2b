#!/usr/bin/env bats
# A server that fails while the lock is held or waited for. [docs/FAULTS.md, "Faults"]
load helpers/helpers

# logged EVENT COUNT [TEXT]: so many of them are in the event log of this test (and TEXT in one of them).
logged() {
  local lines
  lines=$(grep "\"event\":\"$1\"" events) || return
  [ "$(wc -l <<<"$lines")" -ge "$2" ] && [[ $lines == *"${3:-}"* ]]
}
count() { grep -c "\"event\":\"$1\"" events || true; }

# one_more EVENT COMMAND…: another EVENT comes after COMMAND.
one_more() {
  local event=$1 before
  shift
  "$@" >/dev/null
  before=$(count "$event")
  eventually logged "$event" $((before + 1))
}

blocked() { [ "$(redis client list | grep -c 'cmd=blpop')" -eq "$1" ]; }

@test "connections that the server kills are replaced, and the command never notices" {
  hold killed -t 3 --event-log events
  one_more renewed redis client kill type normal
  one_more renewed redis client kill type normal
  let_go killed
  nothing_left killed
}

@test "a connection that was killed hastens the renewal: the server may have lost the lease" {
  hold hastened -t 10m --event-log events
  eventually blocked 1
  redis client kill type normal >/dev/null
  eventually logged renewed 1
  let_go hastened
}

@test "waiters whose connections are killed keep their places" {
  hold line
  local who pids=() round
  for who in 1 2 3; do
    start rlock run line -- sh -c 'echo "$1" >>order' sh "$who"
    pids+=($!)
    eventually waiting "$who" line
  done
  for round in 1 2 3; do
    # The holder listens as well.
    eventually blocked 4 || fail "round $round: $(redis client list)"
    redis client kill type normal >/dev/null
  done
  eventually blocked 4
  waiting 3 line
  let_go line
  for who in "${pids[@]}"; do ends_with 0 "$who"; done
  [ "$(tr -d '\n' <order)" = 123 ]
  nothing_left line
}

@test "a server that closes idle connections causes no error" {
  own --timeout 1
  hold idle -t 6 --event-log events
  eventually logged renewed 2
  ! logged renew-failed 1 || fail "$(cat events)"
  let_go idle
  nothing_left idle
}

@test "SCRIPT FLUSH is invisible to holder and waiter" {
  hold flushed -t 3 --event-log events
  start rlock run flushed -- true
  waiter=$!
  eventually waiting 1 flushed
  one_more renewed redis script flush
  redis script flush >/dev/null
  let_go flushed
  ends_with 0 "$waiter"
  ! logged renew-failed 1 || fail "$(cat events)"
  nothing_left flushed
}

@test "a script that keeps the server busy for less than the lease is waited for" {
  own --busy-reply-threshold 100
  hold busy -t 9 --event-log events
  start redis-cli -s "$SERVER/s" eval 'while true do end' 0
  eventually logged renew-failed 1 BUSY
  run -69 --separate-stderr rlock run --connect-timeout 300ms other -- touch started
  says other BUSY
  one_more renewed redis script kill
  let_go busy
  [ ! -e started ]
}

@test "CLIENT PAUSE for less than the lease is waited for" {
  own
  hold paused -t 12 --event-log events
  one_more renewed redis client pause 5000
  let_go paused
  nothing_left paused
}

@test "a key of the lock that is overwritten by hand ends the command with 76, and is left alone" {
  hold overwritten -t 2 2>err
  redis set 'rlock:{overwritten}:holders' precious >/dev/null
  ends_with 76 "$holder"
  grep -q 'overwritten.*is used for something else' err || fail "$(cat err)"
  [ "$(wc -l <err)" -eq 1 ] || fail "$(cat err)"
  [ "$(redis get 'rlock:{overwritten}:holders')" = precious ]
  reset_server
}

@test "too few replicas: a new holder is refused, one from before goes on where that passes" {
  own
  hold replicated -t 9 --event-log events
  redis config set min-replicas-to-write 1 >/dev/null
  run -69 --separate-stderr rlock run other -- touch started
  says other NOREPLICAS
  eventually logged renew-failed 1 NOREPLICAS
  one_more renewed redis config set min-replicas-to-write 0
  let_go replicated
  [ ! -e started ]
}

@test "a release that the server refuses is reported, and the lock expires by itself" {
  own
  hold refused -t 3 2>err
  redis config set min-replicas-to-write 1 >/dev/null
  let_go refused
  grep -q 'refused.*was not confirmed.*NOREPLICAS' err || fail "$(cat err)"
  redis config set min-replicas-to-write 0 >/dev/null
  run -0 rlock run -w 30 refused -- true
  nothing_left refused
}

@test "a password is not in any command line, log, record, message or what the command inherits" {
  own --requirepass canary-secret
  redis() { redis-cli -s "$SERVER/s" -a canary-secret --no-auth-warning "$@"; }
  echo canary-secret >password
  export RLOCK_URL="unix://$SERVER/s"
  hold secret -t 3 -v --event-log events --password-file password 2>err
  start rlock run -v --password-file password secret -- sh -c 'echo "$RLOCK_HELD" >environment' 2>waiter-err
  waiter=$!
  export RLOCK_URL="unix://:canary-secret@$SERVER/s"
  eventually waiting 1 secret
  local pid
  for pid in "$holder" "$waiter" $(pgrep -P "$holder"); do
    tr '\0' ' ' <"/proc/$pid/cmdline" >>commands
  done
  [ "$(wc -c <commands)" -gt 0 ]
  for pid in status queue history; do
    rlock "$pid" secret >>shown
    rlock "$pid" --json secret >>shown
  done
  redis --raw hgetall 'rlock:{secret}:who' >>shown
  grep -q '"command"' shown || fail "no record"
  redis client kill type normal >/dev/null
  eventually logged renewed 2
  let_go secret
  ends_with 0 "$waiter"
  RLOCK_URL="unix://:canary-secret-no@$SERVER/s" run -77 rlock -v run secret -- true
  echo "$output" >>shown
  RLOCK_URL="unix://:canary-secret@$SERVER/none" run -69 rlock -v run --connect-timeout 100ms secret -- true
  echo "$output" >>shown
  run ! grep -l canary commands shown err waiter-err events environment
}

@test "an outage is reported once while the command runs, and so is its end" {
  own
  hold outage -t 20 2>err
  end_server "$own_server"
  eventually grep -q 'the command will be ended in .* unless the server answers' err
  restart
  eventually grep -q 'rlock: renewed "outage" again after ' err
  [ "$(grep -c 'unless the server answers' err)" -eq 1 ] || fail "$(cat err)"
  [ "$(wc -l <err)" -eq 2 ] || fail "$(cat err)"
  let_go outage
}
