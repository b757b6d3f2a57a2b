#!/usr/bin/env bats
# A server that fails while the lock is held or waited for. [docs/FAULTS.md, "Faults"]
load helpers/helpers

@test "connections that the server kills are replaced, and the command never notices" {
  hold killed -t 12 --event-log log
  renew_now 1
  eventually logged renewed
  one_more renewed redis client kill type normal
  let_go killed
  nothing_left killed
}

# How long after the grant the first renewal came, in ms.
first_renewal() { jq -r 'select(.event == "renewed") | .held_ms' log | head -n 1; }

@test "a killed connection brings the renewal forward, because the server may have lost the lease" {
  # Otherwise it comes after 10 s. A machine may stand still for longer than that, but not three times.
  for round in 1 2 3; do
    rm -f log
    hold hastened -t 10m --event-log log
    eventually blocked 1
    redis client kill type normal >/dev/null
    eventually logged renewed
    let_go hastened
    [ "$(first_renewal)" -ge 9000 ] || return 0
  done
  fail "$(cat log)"
}

@test "a long lease is renewed as often as one of 30 s" {
  hold patient -t 10m --event-log log
  eventually logged renewed
  let_go patient
}

@test "waiters whose connections are killed keep their positions" {
  hold line
  line_up line 3
  for round in 1 2 3; do
    # The holder listens as well.
    eventually blocked 4 || fail "round $round: $(redis client list)"
    redis client kill type normal >/dev/null
  done
  eventually blocked 4
  waiting 3 line
  let_go line
  in_order
  nothing_left line
}

@test "a server that closes idle connections causes no error" {
  own --timeout 1
  hold idle -t 12 --event-log log
  eventually logged renewed
  ! logged renew-failed || fail "$(cat log)"
  let_go idle
  nothing_left idle
}

@test "a script that keeps the server busy for less than the lease is waited for" {
  own --busy-reply-threshold 100
  hold busy -t 15 --event-log log
  start redis-cli -s "$SERVER/s" eval 'while true do end' 0
  eventually logged renew-failed 1 BUSY
  run -69 --separate-stderr rlock run -n --connect-timeout 1s other -- touch started
  says other BUSY
  one_more renewed redis script kill
  let_go busy
}

@test "CLIENT PAUSE for less than the lease is waited for" {
  own
  hold paused --event-log log
  renewal_held_up
  ! logged renewed || fail "$(cat log)"
  redis client unpause >/dev/null
  eventually logged renewed
  let_go paused
  nothing_left paused
}

@test "a key of the lock that is overwritten by hand stops the command with 76, and stays as it is" {
  hold overwritten -t 6 2>err
  redis set 'rlock:{overwritten}:holders' precious >/dev/null
  ends_with 76 "$holder"
  grep -q 'overwritten.*is used for something else' err || fail "$(cat err)"
  [ "$(grep -vc 'unless the server answers$' err)" -eq 1 ] || fail "$(cat err)"
  [ "$(redis get 'rlock:{overwritten}:holders')" = precious ]
  reset_server
}

@test "with too few replicas a new holder is refused, and an earlier holder survives a short lack" {
  own
  hold replicated -t 15 --event-log log 2>err
  redis config set min-replicas-to-write 1 >/dev/null
  run -69 --separate-stderr rlock run -n other -- touch started
  says other NOREPLICAS
  eventually logged renew-failed 1 NOREPLICAS
  eventually grep -q 'unless the server answers' err
  [ "$(grep -o '"replicated"' err | wc -l)" -eq 1 ] || fail "$(cat err)"
  one_more renewed redis config set min-replicas-to-write 0
  let_go replicated
}

@test "a release that the server refuses is reported, and the lock expires by itself" {
  own
  hold refused -t 1h 2>err
  redis config set min-replicas-to-write 1 >/dev/null
  let_go refused
  grep -q 'refused.*did not confirm the release.*NOREPLICAS' err || fail "$(cat err)"
  redis config set min-replicas-to-write 0 >/dev/null
  run -75 rlock run -n refused -- true
  moved 3600
  run -0 rlock run -n refused -- true
  nothing_left refused
}

@test "a password is in no command line, log, record or message, and the command does not inherit it" {
  own --requirepass canary-secret
  redis() { redis-cli -s "$SERVER/s" -a canary-secret --no-auth-warning "$@"; }
  echo canary-secret >password
  export RLOCK_URL="unix://$SERVER/s"
  hold secret -t 12 -v --event-log log --password-file password 2>err
  start rlock run -v --password-file password secret -- sh -c 'echo "$RLOCK_HELD" >environment' 2>waiter-err
  waiter=$!
  export RLOCK_URL="unix://:canary-secret@$SERVER/s"
  eventually waiting 1 secret
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
  one_more renewed redis client kill type normal
  hand_over secret
  RLOCK_URL="unix://:canary-secret-no@$SERVER/s" run -77 rlock -v run secret -- true
  echo "$output" >>shown
  RLOCK_URL="unix://:canary-secret@$SERVER/none" run -69 rlock -v run -n --connect-timeout 100ms secret -- true
  echo "$output" >>shown
  run ! grep -l canary commands shown err waiter-err log environment
}

traced() { grep -q '^TracerPid:.*[1-9]' "/proc/$1/status"; }

@test "a password file that hangs, as on a dead mount, delays no renewal" {
  own --requirepass canary
  redis() { redis-cli -s "$SERVER/s" -a canary --no-auth-warning "$@"; }
  echo canary >password
  hold hung -t 12 --event-log log --password-file "$here/password"
  # For longer than the lease.
  start strace -f -qq -o /dev/null -P "$here/password" -e trace=openat -e inject=openat:delay_enter=20s -p "$holder"
  local tracer=$!
  eventually traced "$holder"
  # The renewal thread connects, and reads the password again.
  renew_now 1
  eventually logged renewed
  one_more renewed redis client kill type normal
  [ "$(find "/proc/$holder/task" -mindepth 1 -maxdepth 1 | wc -l)" -gt 2 ]
  ends_by KILL "$tracer"
  let_go hung
}

@test "a lease that is lost in an outage says which outage it would have survived" {
  own
  hold brief -t 3 2>err
  end_server "$own_server"
  ends_with 76 "$holder"
  # 3 s, less a hundredth, the margin of the kill, --kill-after, the time between two renewals, and a second attempt.
  grep -q 'the lease could not be renewed: .*; this lease survives every outage of up to 218ms, a longer --ttl more; rlock stopped the command; rlock help 76 says what to do$' err ||
    fail "$(cat err)"
}

@test "no warning announces that rlock will stop a command that it is already stopping" {
  own
  # It ignores TERM, so that it lives when the second renewal has failed for a second.
  hold_with "trap '' TERM; echo up >up; read -r _ <&9" -t 3 ignores 2>err
  end_server "$own_server"
  ends_with 76 "$holder"
  [ "$(wc -l <err)" -eq 1 ] || fail "$(cat err)"
}

@test "an outage and its end are each reported once while the command runs" {
  own
  hold outage -t 20 2>err
  end_server "$own_server"
  eventually grep -q 'rlock will stop the command in .* unless the server answers' err
  restart
  eventually grep -q 'rlock: renewed "outage" again after ' err
  [ "$(grep -c 'unless the server answers' err)" -eq 1 ] || fail "$(cat err)"
  [ "$(wc -l <err)" -eq 2 ] || fail "$(cat err)"
  let_go outage
}
