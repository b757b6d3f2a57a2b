#!/usr/bin/env bats
load helpers/helpers

@test "every exit code of the command passes through exactly" {
  local wanted code
  for wanted in {0..255}; do
    code=0
    rlock run codes -- sh -c "exit $wanted" || code=$?
    [ "$code" -eq "$wanted" ] || fail "$wanted became $code"
  done
  nothing_left codes
}

@test "a shell sees 128 + N for a signal" {
  run -143 --separate-stderr rlock run signal -- sh -c 'kill -TERM $$'
}

@test "a successful run prints nothing, so that cron sends no mail" {
  run -0 --separate-stderr rlock run quiet -- true
  silent
}

@test "exit 126: the command cannot be executed, and the lock is free again" {
  touch plain
  run -126 --separate-stderr rlock run unstarted -- ./plain
  says unstarted ./plain "Permission denied"
  nothing_left unstarted
}

@test "exit 127: the command was not found, and the lock is free again" {
  run -127 --separate-stderr rlock run unstarted -- no-such-command-here
  says unstarted no-such-command-here
  nothing_left unstarted
}

@test "exit 75: busy, and the message names the lock, the server and the holder" {
  hold busy --reason "nightly import"
  run -75 --separate-stderr rlock run -n busy -- touch started
  says busy "$SERVER/s" "$(id -un)@" "$holder"
  [ ! -e started ]
  waiting 0 busy
  let_go busy
}

@test "exit 75: the wait timed out, and the message names the holder" {
  hold slow
  run -75 --separate-stderr rlock run -w 0.2 slow -- touch started
  says slow "$(id -un)@" "$holder"
  [ ! -e started ]
  let_go slow
}

@test "-q skips without a message and keeps the code" {
  hold skipped
  run -75 --separate-stderr rlock run -q -n skipped -- true
  silent
  run -75 --separate-stderr rlock run -qn skipped -- true
  silent
  let_go skipped
}

@test "-E changes the code of a skip, and of nothing else" {
  hold changed
  run -3 --separate-stderr rlock run -n -E 3 changed -- true
  run -0 --separate-stderr rlock run -n -E 0 changed -- true
  run -255 --separate-stderr rlock run -w 0.1 --conflict-exit-code=255 changed -- true
  let_go changed
  run -127 --separate-stderr rlock run -E 3 changed -- no-such-command-here
  run -9 --separate-stderr rlock run -E 3 changed -- sh -c 'exit 9'
}

@test "-E 600 is an error, not 88" {
  local code
  for code in 600 256 -1 x '' 1.5; do
    run -64 --separate-stderr rlock run -E "$code" changed -- touch started
    says rlock:
  done
  [ ! -e started ]
}

@test "exit 124: --max-run ends the command" {
  run -124 --separate-stderr rlock run --max-run 0.2 limited -- sleep 1000
  says limited
  nothing_left limited
}

@test "exit 124: --max-run kills what ignores TERM, --kill-after later" {
  run -124 --separate-stderr rlock run --max-run 0.2 -k 0.2 stubborn -- sh -c 'trap "" TERM; while :; do sleep 1000; done'
  says stubborn
  nothing_left stubborn
}

@test "--max-run lets a quicker command keep its code" {
  run -5 --separate-stderr rlock run --max-run 60 limited -- sh -c 'exit 5'
  silent
}

@test "exit 71: the system refuses to fork, and no key is left" {
  strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
  run -71 --separate-stderr strace -qq -o /dev/null -e trace=clone,clone3,fork,vfork \
    -e inject=clone,clone3,fork,vfork:error=EAGAIN rlock run unforked -- touch started
  says unforked
  [ ! -e started ]
  nothing_left unforked
}

@test "exit 78: no server was given, and the message says where to give one" {
  RLOCK_URL='' run -78 --separate-stderr rlock run unknown -- touch started
  says --url RLOCK_URL local:
  [ ! -e started ]
}

@test "every way to fail has a code of its own" {
  hold distinct
  local codes=()
  codes+=("$(rlock run -n distinct -- true 2>/dev/null; echo $?)")
  codes+=("$(rlock run --frobnicate distinct -- true 2>/dev/null; echo $?)")
  codes+=("$(rlock run -u "unix://$here/nobody" distinct -- true 2>/dev/null; echo $?)")
  codes+=("$(rlock run -u "unix://:wrong@$SERVER/s" distinct -- true 2>/dev/null; echo $?)")
  codes+=("$(RLOCK_URL='' rlock run distinct -- true 2>/dev/null; echo $?)")
  codes+=("$(rlock run free -- no-such-command-here 2>/dev/null; echo $?)")
  [ "${codes[*]}" = "75 64 69 77 78 127" ] || fail "${codes[*]}"
  let_go distinct
}

@test "--report says in one line that the command failed, how and after what time, also with -q" {
  run -3 --separate-stderr rlock run -q --report nightly -- sh -c 'exit 3'
  says "\"nightly\" failed on $(hostname): exit 3 after "
  run -143 --separate-stderr rlock run -q --report nightly -- sh -c 'kill $$'
  says "\"nightly\" failed on $(hostname): signal 15 after "
  run -0 --separate-stderr rlock run --report nightly -- true
  silent
  run -3 --separate-stderr rlock run nightly -- sh -c 'exit 3'
  silent
}
