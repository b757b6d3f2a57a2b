#!/usr/bin/env bats
load helpers/helpers

# The next holder's first act: is every part of the one before it dead? Its own lease is long: on a busy machine a short
# one may end before the command starts.
next_is_alone() {
  run -0 rlock run "$@" -- flock -n alone true
}

@test "the lease is renewed for as long as the command runs" {
  hold renewed -t 1h
  outlasts renewed
  run -75 rlock run -n renewed -- touch started
  let_go renewed
  nothing_left renewed
}

@test "a run that nobody contends costs its server two scripts, and no text of them" {
  own
  rlock run counted -- true
  local digests texts
  digests=$(calls evalsha) texts=$(calls eval)
  rlock run counted -- true
  [ "$(($(calls evalsha) - digests)) $(($(calls eval) - texts))" = "2 0" ] || fail "$(redis info commandstats)"
}

@test "force-unlock stops the command with 76, and the message says who broke the lock and why" {
  hold_alone forced
  run -0 rlock force-unlock forced --yes --reason "wrong branch"
  ends_with 76 "$holder"
  grep -q "forced.*$(id -un)@.*wrong branch" err || fail "$(cat err)"
  [ "$(wc -l <err)" -eq 1 ]
  next_is_alone forced
}

@test "force-unlock hands over only when the holder's command is dead" {
  hold_alone relay -t 10
  queue_up relay -- flock -n alone true
  run -0 rlock force-unlock relay --yes
  ends_with 0 "$waiter"
  ends_with 76 "$holder"
}

@test "a lock deleted by hand stops the command with 76, and the message says that no other run had it" {
  hold_alone deleted
  redis del 'rlock:{deleted}:holders' >/dev/null
  renew_now 1
  ends_with 76 "$holder"
  grep -q deleted err
  [ "$(wc -l <err)" -eq 1 ]
}

@test "a lease that expired while rlock was stopped is lost to the next holder" {
  hold_alone late -t 3
  kill -STOP "$holder"
  run -0 rlock run -w 60 late -- true
  kill -CONT "$holder"
  ends_with 76 "$holder"
  # A renewal that the stop held up may bring the news first.
  grep -qE 'stopped or got no processor time \(another client has held it since\)|it was taken by another client' err || fail "$(cat err)"
}

@test "a command whose deleted lock has a new holder gets no grace period" {
  # Both are so long that only the loss ends the command.
  hold_with 'trap "" TERM; echo "$RLOCK_OWNER" >up; while :; do sleep 0.1; done' taken -t 1h -k 1h 2>err
  local first=$holder owner=$said
  redis del 'rlock:{taken}:holders' >/dev/null
  hold taken
  redis rpush "rlock:{taken}:wake:$owner" 1 >/dev/null  # the first one renews at once
  ends_with 76 "$first"
  grep -q 'it was taken by ' err || fail "$(cat err)"
  let_go taken
}

@test "after FLUSHALL, and a run of another owner, the run that lost the lock is in the history" {
  hold_with 'echo "$RLOCK_OWNER" >up; read -r _ <&9' wiped -t 1h 2>err
  local first=$holder owner=$said
  redis flushall >/dev/null
  hold wiped
  redis rpush "rlock:{wiped}:wake:$owner" 1 >/dev/null  # the first one renews at once
  ends_with 76 "$first"
  run -0 rlock history wiped
  [[ $output == *lost* ]] || fail "$output"
  let_go wiped
}

@test "after FLUSHALL the message of a run says that the server lost its data" {
  hold wiped -t 1h 2>err
  redis flushall >/dev/null
  let_go wiped
  grep -q 'lost "wiped" .*: the server lost its data; the command exited by itself; rlock doctor checks' err || fail "$(cat err)"
  # Another run has the lock when this one renews.
  hold_with 'echo "$RLOCK_OWNER" >up; read -r _ <&9' wiped -t 1h 2>err
  local first=$holder owner=$said
  redis flushall >/dev/null
  hold wiped
  redis rpush "rlock:{wiped}:wake:$owner" 1 >/dev/null
  ends_with 76 "$first"
  grep -q 'lost "wiped" .*: the server lost its data; then it was taken by .*; rlock doctor checks' err || fail "$(cat err)"
  let_go wiped
  # Another run has had the lock when the command exits.
  hold wiped -t 1h 2>err
  redis flushall >/dev/null
  rlock run wiped -- true
  let_go wiped
  grep -q 'the server lost its data (another client has held it since)' err || fail "$(cat err)"
}

@test "after FLUSHALL rlock restores the lock and the command never notices" {
  hold wiped
  redis flushall >/dev/null
  renew_now 1
  eventually held wiped
  let_go wiped
  nothing_left wiped
}

@test "--no-renew stops the command before the first lease expires, and exits with 76" {
  refuses 76 short -- rlock run -t 1 --no-renew short -- sleep 1000
  nothing_left short
  # A command that is quicker keeps its code; a --kill-after as long as the lease does not end it at its start.
  run -6 --separate-stderr rlock run -t 5 --no-renew short -- sh -c 'exit 6'
  silent
  run -6 --separate-stderr rlock run -t 20 -k 20 --no-renew grace -- sh -c 'sleep 0.5; exit 6'
  silent
}

@test "--on-lost ignore: the command runs to its end, keeps its code, and a warning is given" {
  hold_with 'echo >up; read -r _ <&9; exit 4' ignored -t 1h --on-lost ignore 2>err
  run -0 rlock force-unlock ignored --yes
  moved 3600
  free ignored
  gone "$holder" && fail "the command was ended"
  echo 1<>go
  ends_with 4 "$holder"
  grep -q "ignored" err || fail "no warning: $(cat err)"
}

@test "a lost lease lets the command clean up: TERM first, KILL --kill-after later" {
  hold_with 'trap "echo cleaned >cleaned; exit 0" TERM; echo >up; while :; do sleep 0.05; done' tidy 2>err
  run -0 rlock force-unlock tidy --yes
  ends_with 76 "$holder"
  [ "$(cat cleaned)" = cleaned ]
}

@test "a command whose lease is half over at its start finishes, or is stopped in time with 76" {
  for pause in 440 450 460 470 480; do
    redis client pause "$pause" all
    code=0
    # TERM comes at 500 ms. A starved machine may miss even that.
    rlock run -t 1 -k 500ms half -- sleep 0.3 2>err || code=$?
    [ "$code" = 0 ] || [ "$code" = 76 ] || fail "exit code $code: $(cat err)"
  done
}
