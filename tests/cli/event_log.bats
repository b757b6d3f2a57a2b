#!/usr/bin/env bats
# --event-log: every outcome of a run has its event, and each line fits docs/json/event-log.schema.json (setup_suite.bash).
load helpers/helpers

# events FILE: its words in order.
events() { jq -r .event "$1" | paste -sd ' '; }

@test "a run: each event has its time, user, host, pid, command, reason and server; the end of the command its code or signal" {
  at_noon
  run -7 rlock run --reason why --event-log log logged -- sh -c 'sleep 0.2; exit 7'
  [ "$(events log)" = "acquired exited released" ] || fail "$(cat log)"
  jq -se --arg user "$(id -un)" --arg host "$(hostname)" '
    all(.[]; .schema == 1 and .host == $host and .pid > 0 and .user == $user and .reason == "why" and
      .command == "sh -c '"'sleep 0.2; exit 7'"'" and (.server | length) > 0 and (.owner | test("^[0-9a-f]{32}$")) and .token > 0 and
      (.time | contains("T12:0")) and (.time | endswith("Z"))) and (map(.pid) | unique | length) == 1 and
    .[0].waited_ms >= 0 and (.[0] | has("held_ms") | not) and
    .[1].held_ms >= 200 and .[2].held_ms >= .[1].held_ms and (.[1] | has("waited_ms") | not) and
    .[1].exit_code == 7 and (.[1] | has("signal") | not)' log || fail "$(cat log)"
  run -137 rlock run --hide-command --event-log killed said -- sh -c 'kill -KILL $$'
  jq -se '.[0].command == null and .[1].signal == 9 and (.[1] | has("exit_code") | not)' killed || fail "$(cat killed)"
}

@test "a log that cannot be opened is a warning, and the command runs" {
  run -3 --separate-stderr rlock run --event-log none/log unwritten -- sh -c 'exit 3'
  says 'warning: "unwritten": cannot open the event log "none/log": No such file or directory; no events of this run are written'
}

@test "/dev/stderr works as a log even if it is a socket, which cannot be opened" {
  /usr/bin/python3 -c 'import socket, subprocess, sys
ours, theirs = socket.socketpair()
subprocess.run(sys.argv[1:], stderr=theirs, check=True)
sys.stdout.buffer.write(ours.recv(65536))' "$RLOCK" run -q --event-log /dev/stderr logged -- true >log
  jq -se '.[-1].event == "released"' log || fail "$(cat log)"
}

@test "events in a file that the caller opened with > neither overwrite its other lines nor are overwritten" {
  for path in /dev/stderr /dev/fd/2 /proc/self/fd/2 /dev/fd/3; do
    [ "$path" = /dev/fd/3 ] && script='echo one >&3; echo two >&3' || script='echo one >&2; echo two >&2'
    "$RLOCK" run -q --event-log "$path" logged -- sh -c "$script" 2>log 3>&2
    [ "$(grep -x 'one\|two' log | paste -sd ' ')" = "one two" ] || fail "$path: $(cat log)"
    [ "$(grep '^{' log | jq -r .event | paste -sd ' ')" = "acquired exited released" ] || fail "$path: $(cat log)"
  done
}

# only_events CODE OPTION…: the run exits with CODE, and each line of its standard error is an event: $words.
only_events() {
  run "-$1" --separate-stderr rlock run -q --event-log /dev/stderr "${@:2}"
  words=$(jq -r 'if .schema == 1 and .name then .event else error("no event") end' <<<"$stderr" | paste -sd ' ') || fail "$stderr"
}

@test "with -q and the log on standard error, each line there is an event" {
  local nobody="unix://$here/nobody"
  only_events 0 logged -- true
  [ "$words" = "acquired exited released" ]
  only_events 137 logged -- sh -c 'kill -KILL $$'
  [ "$words" = "acquired exited released message" ]
  jq -se '.[3].detail | contains("was killed by signal 9")' <<<"$stderr" || fail "$stderr"
  only_events 127 logged -- "$here/no-such-command"
  [ "$words" = "acquired released failed" ] || [ "$words" = "acquired exited released failed" ] || fail "$words"
  only_events 69 -n -u "$nobody" --connect-timeout 0.1 logged -- true
  [ "$words" = unreachable ]
  only_events 0 -u "$nobody" --connect-timeout 0.1 --fail-open logged -- true
  [ "$words" = "unreachable message unlocked exited message" ] || fail "$words"
  only_events 69 -u rediss://127.0.0.1:1 --insecure --connect-timeout 0.1 logged -- true
  [ "$words" = "message unreachable" ] || fail "$words"
  rlock close -q --for 1h logged
  only_events 75 -n logged -- true
  [ "$words" = skipped ]
  hold broken -q --event-log /dev/stderr 2>lines
  rlock force-unlock -q broken --yes
  ends_with 76 "$holder"
  [[ $(events lines) == "acquired lost "*" message" ]] || fail "$(cat lines)"
  jq -se '.[-1].detail | contains("it was broken")' lines || fail "$(cat lines)"
  # An error of the command line is text, and without -q both are printed.
  refuses 64 "unknown option" -- rlock run -q --event-log /dev/stderr --no-such-option logged -- true
  run -75 --separate-stderr rlock run -n --event-log /dev/stderr logged -- true
  [ "$(grep -c '^{' <<<"$stderr")" = 1 ] && [ "$(grep -c '^rlock: ' <<<"$stderr")" = 1 ] || fail "$stderr"
}

@test "a standard error that was closed is no log" {
  for path in /dev/stderr /dev/fd/2; do
    run -64 bash -c '"$RLOCK" run --event-log "$1" logged -- touch ran 2>&-' bash "$path"
    [ ! -e ran ]
  done
}

@test "a skip, a wait that timed out, a waiter that was removed or interrupted: each is an event" {
  hold taken --reason "nightly import"
  run -75 rlock run -n --event-log skipped taken -- true
  [ "$(events skipped)" = skipped ] || fail "$(cat skipped)"
  jq -e '.token == null and .waited_ms >= 0 and (.detail | contains("nightly import"))' skipped
  run -75 rlock run -w 0.3 --event-log late taken -- true
  [ "$(events late)" = "enqueued timed-out" ] || fail "$(cat late)"
  jq -se '.[1].waited_ms >= 300' late
  queue_up taken --event-log removed 2>err
  rlock queue taken --remove "$(rlock queue --json taken | jq -r '.waiters[0].owner')"
  ends_with 75 "$waiter"
  grep -q "removed.*$(id -un)@" err || fail "$(cat err)"
  [ "$(events removed)" = "enqueued removed" ] || fail "$(cat removed)"
  queue_up taken --event-log interrupted
  ends_by TERM "$waiter"
  [ "$(events interrupted)" = "enqueued interrupted" ] || fail "$(cat interrupted)"
  let_go taken
}

@test "a server that nobody reaches is an event, with and without --fail-open" {
  local nobody="unix://$here/nobody"
  run -69 rlock run -n -u "$nobody" --connect-timeout 0.1 --event-log log away -- true
  [ "$(events log)" = unreachable ] || fail "$(cat log)"
  jq -e '.detail | contains("nobody")' log
  rm log
  run -0 rlock run -u "$nobody" --connect-timeout 0.1 --fail-open --event-log log away -- true
  [ "$(events log)" = "unreachable unlocked exited" ] || fail "$(cat log)"
}

@test "a lease that is lost while the command is being stopped for another reason is an event" {
  hold_with 'trap "" TERM; echo >up; read -r _ <&9' twice -t 2h -k 1h --max-run 0.1 --event-log log
  eventually grep -q '"terminating"' log
  rlock force-unlock twice --yes
  eventually grep -q '"lost"' log
  echo 1<>go
  ends_with 124 "$holder"
  [[ $(events log) == "acquired terminating lost exited"* ]] || fail "$(cat log)"
}

@test "a broken lock, a command over its limit and a command that cannot be executed are events" {
  hold broken --event-log forced
  rlock force-unlock broken --yes
  ends_with 76 "$holder"
  [[ $(events forced) == "acquired lost "* ]] || fail "$(cat forced)"
  run -124 rlock run --max-run 0.1 --event-log limit slow -- sleep 1000
  [[ $(events limit) == "acquired terminating "* ]] || fail "$(cat limit)"
  run -127 rlock run --event-log missing none -- "$here/no-such-command"
  [[ $(events missing) == acquired*failed ]] || fail "$(cat missing)"
  jq -se '.[-1].held_ms >= 0 and (.[-1] | has("waited_ms") | not) and (map(.token) | unique | length) == 1' missing ||
    fail "$(cat missing)"
}

@test "a full disk loses events but does not stop the run, and the next run starts on a new line" {
  run -3 --separate-stderr rlock run --event-log /dev/full full -- sh -c 'exit 3'
  says 'warning: "full": the event log "/dev/full" lacks events of this run: No space left on device'
  printf '{"event":"acqu' >log
  quietly rlock run --event-log log full -- true
  [ "$(head -n 1 log)" = '{"event":"acqu' ]
  sed -i 1d log
  [ "$(events log)" = "acquired exited released" ] || fail "$(cat log)"
}

@test "TRACEPARENT of the caller is in every event, in history, status and queue, and reaches the command" {
  export TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
  run -0 rlock run --event-log log traced -- printenv TRACEPARENT
  [ "$output" = "$TRACEPARENT" ]
  jq -se --arg trace "$TRACEPARENT" 'length >= 3 and all(.[]; .traceparent == $trace)' log || fail "$(cat log)"
  rlock history --json traced | jq -e --arg trace "$TRACEPARENT" '.runs[0].traceparent == $trace'
  owner=$(rlock acquire traced --ttl 1m)
  rlock status --json traced | jq -e --arg trace "$TRACEPARENT" '.locks[0].holders[0].traceparent == $trace'
  queue_up traced
  rlock queue --json traced | jq -e --arg trace "$TRACEPARENT" '.waiters[0].traceparent == $trace'
  rlock release traced --owner "$owner"
  ends_with 0 "$waiter"
}

@test "a TRACEPARENT of another form is ignored" {
  for bad in '' x 00-00000000000000000000000000000000-b7ad6b7169203331-01 $'00-\x1b'; do
    rm -f log
    TRACEPARENT=$bad quietly rlock run --event-log log untraced -- true
    jq -se 'all(.[]; has("traceparent") | not)' log || fail "$(cat log)"
    rlock history --json untraced | jq -e '.runs[0].traceparent == null'
  done
}
