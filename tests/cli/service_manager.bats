#!/usr/bin/env bats
# NOTIFY_SOCKET: what a service manager learns of a run that it starts.
load helpers/helpers

# manager ADDRESS: a service manager's socket; what comes is in the file reports, a line each.
manager() {
  : >reports
  export NOTIFY_SOCKET=$1
  start notify_socket.py "$1" reports
  eventually is_bound "$1"
}

is_bound() { grep -qF "$1" /proc/net/unix; }

reported() { grep -qF -- "$1" reports; }

@test "READY=1 is reported once the lock is held, before the command runs; its own reports pass" {
  manager "$here/notify"
  quietly rlock run app -- notify.py "STATUS=serving"
  eventually reported serving
  [ "$(cat reports)" = $'READY=1; STATUS=holding "app"\nSTATUS=serving' ] || fail "$(cat reports)"
}

@test "reports reach an abstract socket" {
  manager "@rlock-test-$$-$RANDOM"
  rlock run app -- true
  eventually reported 'READY=1; STATUS=holding "app"'
}

@test "a waiting rlock reports what it waits for and extends the start timeout, even with -q" {
  hold app
  manager "$here/notify"
  start rlock run -q app -- true
  waiter=$!
  eventually reported "STATUS=waiting for \"app\", 1st in line: held by $(id -un)@$(hostname) (pid $holder) for "
  eventually reported "; EXTEND_TIMEOUT_USEC=60000000"
  if reported READY; then fail "$(cat reports)"; fi
  # Again and again, though nothing has changed.
  before=$(wc -l <reports)
  eventually more_reports_than "$before"
  let_go app
  ends_with 0 "$waiter"
  eventually reported 'READY=1; STATUS=holding "app"'
}

more_reports_than() { [ "$(wc -l <reports)" -gt "$1" ]; }

@test "a wait that ends without the lock is never reported as ready" {
  hold app
  manager "$here/notify"
  run -75 rlock run -n app -- true
  run -75 rlock run -w 0.3 app -- true
  eventually reported "waiting for"
  if reported READY; then fail "$(cat reports)"; fi
  unset NOTIFY_SOCKET
  let_go app
}

@test "a command that runs without the lock (--fail-open) is reported as such" {
  manager "$here/notify"
  run -0 rlock run -u "unix://$here/nobody" --connect-timeout 0.1 --fail-open app -- true
  eventually reported 'READY=1; STATUS=running without the lock "app"'
}

@test "a run inside another run leaves the reports to the command" {
  manager "$here/notify"
  run -0 rlock run outer -- rlock run inner -- notify.py "STATUS=serving"
  eventually reported serving
  [ "$(wc -l <reports)" -eq 2 ] || fail "$(cat reports)"
  if reported inner; then fail "$(cat reports)"; fi
}

@test "a bad or dead socket harms nothing, and the command inherits its name" {
  long=/$(printf 'x%.0s' {1..120})
  python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(sys.argv[1])' "$here/dead"
  touch file
  for address in "$here/dead" "$here/file" "$here/none" "$long" relative @ "@$long" / '' vsock:2:1 "$SERVER/s"; do
    NOTIFY_SOCKET=$address run -0 --separate-stderr rlock run app -- printenv NOTIFY_SOCKET
    [ "$output" = "$address" ] || fail "$output"
    [ -z "$stderr" ] || fail "$address: $stderr"
  done
}

# named PID OPTION…: what the command of a run finds, which was started as if its pid were PID.
named() {
  # shellcheck disable=SC2016 # both expand their own
  sh -c 'pid=$1; [ "$pid" != own ] || pid=$$; shift; WATCHDOG_PID=$pid LISTEN_PID=$pid LISTEN_FDS=1 exec "$@"' sh "$1" \
    rlock run "${@:2}" app -- sh -c 'echo "$WATCHDOG_PID $LISTEN_PID $LISTEN_FDS $$"'
}

@test "WATCHDOG_PID and LISTEN_PID that name rlock name the command, and that of a nested run; others stay" {
  run -0 named own
  # shellcheck disable=SC2206 # words on purpose
  local seen=($output)
  [ "$output" = "${seen[3]} ${seen[3]} 1 ${seen[3]}" ] || fail "$output"
  run -0 named 1
  [[ $output == "1 1 1 "* ]] || fail "$output"
  run -0 sh -c 'WATCHDOG_PID=$$ exec rlock run outer -- rlock run inner -- sh -c "test \$WATCHDOG_PID = \$\$"'
  # A shell with a job: rlock works in a child of the process that the service manager knows.
  run -0 bash -c 'sleep 3 & WATCHDOG_PID=$$ exec rlock run app -- sh -c "test \$WATCHDOG_PID = \$\$"'
  run -0 sh -c 'SYSTEMD_EXEC_PID=$$ exec rlock run app -- sh -c "test \$SYSTEMD_EXEC_PID = \$\$"'
  run -0 --separate-stderr env -u WATCHDOG_PID rlock run app -- sh -c 'echo "${WATCHDOG_PID-none}"'
  [ "$output" = none ]
}

@test "LISTEN_PIDFDID goes if LISTEN_PID named rlock, and stays otherwise" {
  run -0 sh -c 'LISTEN_PID=$$ LISTEN_PIDFDID=7 exec rlock run app -- sh -c "echo \${LISTEN_PIDFDID-none}"'
  [ "$output" = none ] || fail "$output"
  run -0 env LISTEN_PID=1 LISTEN_PIDFDID=7 rlock run app -- printenv LISTEN_PIDFDID
  [ "$output" = 7 ] || fail "$output"
}

@test "in the journal errors and warnings have their priority, elsewhere and in another stream none" {
  : >err
  local journal
  journal=$(stat -c %d:%i err)
  run sh -c 'JOURNAL_STREAM=$1 rlock run -n -u "unix://$2/nobody" --connect-timeout 0.1 app -- true 2>>err' sh "$journal" "$here"
  grep -q '^<3>rlock: .*nobody' err || fail "$(cat err)"
  : >err
  run -0 sh -c 'JOURNAL_STREAM=$1 rlock run -u "unix://$2/nobody" --connect-timeout 0.1 --fail-open app -- true 2>>err' sh "$journal" "$here"
  grep -q '^<4>rlock: warning: ' err || fail "$(cat err)"
  : >err
  hold app
  run -75 sh -c 'JOURNAL_STREAM=$1 rlock run -n app -- true 2>>err' sh "$journal"
  grep -q '^rlock: .*busy' err || fail "$(cat err)"
  let_go app
  : >err
  run sh -c 'JOURNAL_STREAM=1:1 rlock run -n -u "unix://$1/nobody" --connect-timeout 0.1 app -- true 2>>err' sh "$here"
  grep -q '^rlock: ' err || fail "$(cat err)"
}
