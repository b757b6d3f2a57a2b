#!/usr/bin/env bats
load helpers/helpers

@test "-w 0 is -n: no wait and no position in the queue" {
  hold zero
  for option in "-w 0" "-w0" "--wait=0" "--nonblock"; do
    # shellcheck disable=SC2086
    run -75 rlock run $option zero -- true
  done
  [ "$(waiters zero)" -eq 0 ]
  let_go zero
}

@test "the lock is handed over by the release itself, not fetched by a waiter that polls" {
  hold pushed
  queue_up pushed
  kill -STOP "$waiter"
  let_go pushed
  [ "$(rlock status --json pushed | jq '.locks[0].holders[0].pid')" = "$waiter" ] || overslept
  kill -CONT "$waiter"
  ends_with 0 "$waiter"
}

@test "a hanging server extends neither -w nor the wait after TERM" {
  own
  server=$(cat "$own_server/pid")
  hold stopped -t 10m
  queue_up stopped -- touch started
  endless=$waiter
  queue_up stopped -w 6 -- touch started
  kill -STOP "$server"
  # A wait that the server could hold up would last as long as the lease, which is longer than a test may.
  code=0
  wait "$waiter" || code=$?
  [ "$code" -eq 69 ] || [ "$code" -eq 75 ]
  ends_by TERM "$endless"
  kill -CONT "$server"
  let_go stopped
}

@test "a waiter whose server hangs sleeps until its next report is due" {
  own
  hold hanging -t 10m
  joins hanging strace -f -qq -e trace=poll -o polls "$RLOCK" run -w 6 hanging -- touch started
  kill -STOP "$(cat "$own_server/pid")"
  wait "$waiter" || true
  [ "$(wc -l <polls)" -lt 200 ] || fail "$(wc -l <polls) polls"
  kill -CONT "$(cat "$own_server/pid")"
  let_go hanging
}

@test "stale wake-ups do not stretch the deadline of a wait" {
  hold contended
  queue_up contended -w 6 -- touch started
  owner=$(rlock queue --json contended | jq -r '.waiters[0].owner')
  while ! gone "$waiter"; do
    redis lpush "rlock:{contended}:wake:$owner" x >/dev/null
  done
  ends_with 75 "$waiter"
  redis del "rlock:{contended}:wake:$owner" >/dev/null
  let_go contended
}

@test "waiting does not eat the command's run limit" {
  hold patient
  queue_up patient --max-run 6 -- touch ran
  # Longer than the limit would allow, were it counted from here: the wait is seen to last this long.
  run -75 rlock run -w 7 patient -- true
  hand_over patient
  [ -e ran ]
}

@test "a killed waiter is skipped and its entry removed" {
  hold purged
  queue_up purged -- touch started
  ends_by KILL "$waiter"
  queue_up purged
  let_go purged
  moved 2
  ends_with 0 "$waiter"
  nothing_left purged
}

@test "a signal stops the wait of run and acquire, which leave the queue immediately and die by it" {
  hold interrupted
  for signal in TERM INT HUP QUIT; do
    queue_up interrupted -- touch started
    ends_by "$signal" "$waiter"
    waiting 0 interrupted
    joins interrupted rlock acquire interrupted --ttl 1m
    ends_by "$signal" "$waiter"
    waiting 0 interrupted
  done
  let_go interrupted
}

@test "a wait that a signal stops says so in one line, with -q in none" {
  hold stopped
  queue_up stopped -- touch started 2>err
  ends_by TERM "$waiter"
  grep -qE "^rlock: \"stopped\" at .*: stopped by TERM after [0-9.]+m?s of waiting; the command was not started\$" err || fail "$(cat err)"
  joins stopped rlock acquire stopped --ttl 1m 2>err
  ends_by INT "$waiter"
  grep -qE ": stopped by INT after [0-9.]+m?s of waiting; the lock was not acquired\$" err || fail "$(cat err)"
  queue_up stopped -q -- touch started 2>err
  ends_by TERM "$waiter"
  [ ! -s err ] || fail "$(cat err)"
  let_go stopped
}

@test "off a terminal one line after a second names lock, holder and position, with -q none" {
  hold patient --reason "nightly import"
  start rlock run -q patient -- true 2>quiet
  local first=$! second third owner
  eventually waiting 1 patient
  queue_up patient 2>usual
  second=$waiter
  start sh -c 'rlock acquire patient --ttl 1m' >owner 2>steps
  third=$!
  eventually test -s steps
  eventually test -s usual
  grep -qF "waiting for \"patient\", 2nd in line: held by $(id -un)@$(hostname) (pid $holder) for " usual || fail "$(cat usual)"
  grep -q '3rd in line' steps || fail "$(cat steps)"
  let_go patient
  ends_with 0 "$first"
  ends_with 0 "$second"
  ends_with 0 "$third"
  rlock release patient --owner "$(cat owner)"
  [ ! -s quiet ] || fail "$(cat quiet)"
  # A quick machine is done within the minute: then it was one line.
  [ "$(grep -c "waiting for" usual)" -eq 1 ] || ((SECONDS > 60)) || fail "$(cat usual)"
  [[ $(tail -n 1 usual) =~ ^'rlock: acquired "patient" after '[0-9.ms]+$ ]] || fail "$(cat usual)"
  [[ $(tail -n 1 steps) =~ ^'rlock: acquired "patient" after '[0-9.ms]+$ ]] || fail "$(cat steps)"
}

@test "a release whose connection was cut is repeated over a new connection" {
  hold released
  redis client kill type normal skipme yes >/dev/null
  let_go released
  nothing_left released
}

@test "on a terminal one live line shows the holder and the position in the queue" {
  needs_terminal
  hold live
  joins live in_terminal.py rlock run live -- true >shown
  eventually grep -aq "$(id -un)@" shown
  hand_over live
  # A wait of over a second ends with a line of its own.
  [ "$(wc -l <shown)" -eq "$(grep -ac 'rlock: acquired ' shown)" ] || fail "more than one line: $(cat -v shown)"
}

# reads N: so often the server was asked for a history.
reads() { [ "$(calls lrange)" -eq "$1" ]; }

# in_queue N NAME: as waiting, but without rlock queue, which reads the history, too.
in_queue() { [ "$(redis zcard "rlock:{$2}:queue")" -eq "$1" ]; }

# in_history NAME MS…: successful runs that took so long.
in_history() {
  local name=$1 ms
  shift
  for ms in "$@"; do
    redis lpush "rlock:{$name}:history" "kind=run token=1 since=1700000000000 ended=$((1700000000000 + ms)) how=released result=exit:0 | {}" >/dev/null
  done
}

@test "on a terminal the live line says what to expect, for one read of the history and one more for another holder" {
  needs_terminal
  own
  hold expected
  # The next holder's place in the queue, before that of the run on the terminal.
  mkfifo next.held next.go
  start rlock run -q expected -- sh -c 'exec 9<>next.go; echo >next.held; read -r _ <&9'
  local next=$!
  eventually in_queue 1 expected
  in_history expected 200000 250000 900000
  start in_terminal.py sh -c 'stty cols 250; exec rlock run expected -- true' >shown
  waiter=$!
  eventually grep -aqE "held by [^ ]+ \(pid $holder\) for [0-9.ms]+, usually 4m, about 4m left: " shown
  # It asks for the lock again, but not for the history.
  owner=$(redis --raw zrange 'rlock:{expected}:queue' 1 1)
  for _ in 1 2; do
    seen=$(calls evalsha)
    redis lpush "rlock:{expected}:wake:$owner" x >/dev/null
    eventually called_more_than "$seen" evalsha
  done
  reads 1 || fail "$(calls lrange) reads"
  let_go expected
  next_line next.held >/dev/null
  eventually reads 2
  echo 1<>next.go
  ends_with 0 "$next"
  ends_with 0 "$waiter"
}

@test "off a terminal the first line has the usual time" {
  own
  hold foreseen
  in_history foreseen 200000 250000 900000
  start rlock run foreseen -- true 2>printed
  waiter=$!
  eventually test -s printed
  grep -qE '^rlock: waiting for "foreseen", 1st in line: held by .*, usually 4m: ' printed || fail "$(cat printed)"
  hand_over foreseen
}

@test "a wait that is shorter than what runs usually take is reported once" {
  hold brief
  in_history brief 200000 250000 900000
  start rlock run -w 3m brief -- true 2>printed
  waiter=$!
  eventually grep -qxF 'rlock: -w 3m may be too short: "brief" usually takes 4m' printed
  ends_by INT "$waiter"
  [ "$(grep -c 'usually takes' printed)" -eq 1 ] || fail "$(cat printed)"
  start rlock run -w 5m brief -- true 2>printed
  waiter=$!
  eventually grep -q 'usually 4m' printed
  ends_by INT "$waiter"
  ! grep -q 'usually takes' printed || fail "$(cat printed)"
}

@test "a wait that ^C ends leaves its line on the terminal" {
  needs_terminal
  hold left
  start in_terminal.py rlock run left -- true >shown
  waiter=$!
  eventually grep -aq "$(id -un)@" shown
  kill -USR1 "$waiter"
  ends_with 130 "$waiter"
  [[ $(tr '\r' '\n' <shown | grep -a . | tail -n 1) == *'waiting for "left"'* ]] || fail "$(cat -v shown)"
  let_go left
}

@test "with -q the history is not read, and without a history no time is printed" {
  own
  hold known
  in_history known 60000
  start rlock run -q known -- true
  waiter=$!
  eventually in_queue 1 known
  hand_over known
  reads 0 || fail "$(calls lrange) reads"
  hold unknown
  start rlock run -v unknown -- true 2>printed
  waiter=$!
  eventually grep -q 'held by' printed
  reads 1 || fail "$(calls lrange) reads"
  hand_over unknown
}
