#!/usr/bin/env bats
load helpers/helpers

@test "every exit code of the command passes through exactly" {
  for wanted in {0..255}; do
    code=0
    rlock run codes -- sh -c "exit $wanted" || code=$?
    [ "$code" -eq "$wanted" ] || fail "$wanted became $code"
  done
  nothing_left codes
}

@test "a successful run prints nothing, so that cron sends no mail" {
  quietly rlock run quiet -- true
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
  waiting 0 busy
  let_go busy
}

@test "exit 75: the wait timed out, and the message names the holder" {
  hold slow
  run -75 --separate-stderr rlock run -w 0.2 slow -- touch started
  says slow "$(id -un)@" "$holder"
  let_go slow
}

@test "-q skips without a message and keeps the code" {
  hold skipped
  run -75 --separate-stderr rlock run --quiet -n skipped -- true
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

@test "exit 78: no server was given, and the message says where to give one" {
  RLOCK_URL='' run -78 --separate-stderr rlock run unknown -- touch started
  says --url RLOCK_URL local:
}

@test "--report says in one line that the command failed, how and after what time, also with -q" {
  run -3 --separate-stderr rlock run -q --report nightly -- sh -c 'exit 3'
  says "\"nightly\" failed on $(hostname): exit 3 after "
  run -143 --separate-stderr rlock run -q --report nightly -- sh -c 'kill $$'
  says "\"nightly\" failed on $(hostname): signal 15 after "
  quietly rlock run --report nightly -- true
  run -3 --separate-stderr rlock run nightly -- sh -c 'exit 3'
  silent
}
