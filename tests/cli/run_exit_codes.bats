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

@test "exit 126: the interpreter of a script does not exist, for example because of Windows line ends" {
  printf '#!/bin/sh\r\necho ran\r\n' >windows
  printf '#! /nonexistent/python3 -u\n' >moved
  chmod +x windows moved
  refuses 126 unstarted ./windows 'the interpreter "/bin/sh" and a CR behind it' -- rlock run unstarted -- ./windows
  refuses 126 unstarted ./moved 'the interpreter "/nonexistent/python3", which does not exist' -- rlock run unstarted -- ./moved
  PATH=$here:$PATH refuses 126 unstarted 'the interpreter "/nonexistent/python3"' -- rlock run unstarted -- moved
  rlock history unstarted | grep -q 126
  free unstarted
}

@test "exit 126 and 127: the command cannot be executed or was not found, and rlock releases the lock" {
  touch plain
  refuses 126 unstarted ./plain "Permission denied" -- rlock run unstarted -- ./plain
  nothing_left unstarted
  run -127 --separate-stderr rlock run unstarted -- no-such-command-here
  says unstarted no-such-command-here
  nothing_left unstarted
}

@test "exit 75: a lock that is busy immediately or after a wait is named with its server and holder" {
  hold busy --reason "nightly import"
  refuses 75 busy "$SERVER/s" "$(id -un)@" "$holder" -- rlock run -n busy -- touch started
  waiting 0 busy
  refuses 75 busy "$SERVER/s" "$(id -un)@" "$holder" -- rlock run -w 0.2 busy -- touch started
  let_go busy
}

@test "-q skips without a message and keeps the code; -E changes the code of a skip, and of nothing else" {
  hold changed
  for option in --quiet -q; do
    run -75 --separate-stderr rlock run "$option" -n changed -- true
    silent
  done
  run -3 --separate-stderr rlock run -n -E 3 changed -- true
  run -0 --separate-stderr rlock run -n -E 0 changed -- true
  run -255 --separate-stderr rlock run -w 0.1 --conflict-exit-code=255 changed -- true
  let_go changed
  run -127 --separate-stderr rlock run -E 3 changed -- no-such-command-here
  run -9 --separate-stderr rlock run -E 3 changed -- sh -c 'exit 9'
}

@test "--exit-code unavailable, denied and config choose the codes for 69, 77 and 78, of run and acquire" {
  local codes=unavailable=3,denied=4,config=0
  own --requirepass canary
  for command in 'run -n x -- touch started' 'acquire --ttl 1m --json x'; do
    # shellcheck disable=SC2086 # several words
    set -- $command
    run -3 --separate-stderr rlock --exit-code "$codes" --connect-timeout 300ms -u "unix://$here/nobody" "$@"
    [[ $stderr == *"No such file"* ]] || fail "$stderr"
    run -4 --separate-stderr rlock --exit-code "$codes" "$@"
    [[ $stderr == *NOAUTH* ]] || fail "$stderr"
    RLOCK_URL='' run -0 --separate-stderr rlock --exit-code "$codes" "$@"
    [[ $stderr == *"no server given"* ]] || fail "$stderr"
    RLOCK_CONFIG=none run -0 --separate-stderr rlock --exit-code "$codes" "$@"
    # The code of a command is its own, and a wrong command line is 64.
    run -64 rlock --exit-code "$codes" --wait never "$@"
  done
  [ "$(rlock acquire x --ttl 1m --json --exit-code "$codes" 2>/dev/null | jq .error.code)" = 4 ]
  RLOCK_PASSWORD=canary run -69 rlock run --exit-code "$codes" x -- sh -c 'exit 69'
}

@test "a command that only a shell can run is named, with -c" {
  run -127 --separate-stderr rlock run x -- 'backup.sh --full'
  says "rlock starts no shell: write -c 'backup.sh --full' instead of -- COMMAND"
  run -127 --separate-stderr rlock run x -- LEVEL=1 backup.sh
  says "write -c 'LEVEL=1 backup.sh' instead"
  run -127 --separate-stderr rlock run x -- source env.sh
  says "write -c 'source env.sh' instead"
  run -127 --separate-stderr rlock run x -- no-such-command-here --full
  says "no-such-command-here"
  [[ $stderr != *"starts no shell"* ]] || fail "$stderr"
  SHELL=/usr/sbin/nologin refuses 64 "SHELL is \"/usr/sbin/nologin\", which runs no command: set SHELL=/bin/sh" -- rlock run x -c 'touch started'
  SHELL=/bin/false refuses 64 "SHELL" -- rlock run x -c 'touch started'
}

@test "exit 124: --max-run stops the command" {
  run -124 --separate-stderr rlock run --max-run 0.2 limited -- sleep 1000
  says limited
  nothing_left limited
  # What ignores TERM is killed, --kill-after later.
  run -124 --separate-stderr rlock run --max-run 0.2 -k 0.2 stubborn -- sh -c 'trap "" TERM; while :; do sleep 1000; done'
  says stubborn
  nothing_left stubborn
  # A quicker command keeps its code.
  run -5 --separate-stderr rlock run --max-run 60 limited -- sh -c 'exit 5'
  silent
}

@test "exit 78: if no server was given, the message says where to give one" {
  RLOCK_URL='' refuses 78 --url RLOCK_URL 'url = "URL" in' -- rlock run unknown -- touch started
}

@test "--report prints how and after what time the command failed, even with -q" {
  run -3 --separate-stderr rlock run -q --report nightly -- sh -c 'exit 3'
  says "\"nightly\" failed on $(hostname): exit 3 after "
  run -143 --separate-stderr rlock run -q --report nightly -- sh -c 'kill $$'
  says "\"nightly\" failed on $(hostname): TERM after "
  run -137 --separate-stderr rlock run -q --report nightly -- sh -c 'kill -KILL $$'
  says "\"nightly\" failed on $(hostname): KILL after "
  quietly rlock run --report nightly -- true
  run -3 --separate-stderr rlock run nightly -- sh -c 'exit 3'
  silent
}

@test "a killed command, as by the OOM killer, is reported, because its exit code would look as if rlock had been killed" {
  run -137 --separate-stderr rlock run -q nightly -- sh -c 'kill -KILL $$'
  says "\"nightly\" at /" ": the command was killed by signal 9 (SIGKILL)"
}
