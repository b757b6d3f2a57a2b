#!/usr/bin/env bats
load helpers/helpers

# guarded NAME [OPTION…]: a holder whose command keeps a flock for as long as any part of it lives.
guarded() {
  local name=$1
  shift
  rm -f up
  mkfifo up
  start rlock run "$@" "$name" -- sh -c 'exec 9>>alone; flock -n 9 || exit 1; echo $$ >up; setsid sleep 1000; sleep 1000' 2>err
  holder=$!
  next_line up >/dev/null
}

# The next holder's first act: is every part of the one before it dead? Its own lease is long: on a busy machine a short
# one may end before the command starts.
next_is_alone() {
  run -0 rlock run "$@" -- flock -n alone true
}

@test "the lease is renewed for as long as the command runs" {
  hold renewed -t 1
  start rlock run -w 4 renewed -- touch started
  ends_with 75 $!
  [ ! -e started ]
  let_go renewed
  nothing_left renewed
}

@test "force-unlock ends the command with 76, and the message says who did it and why" {
  guarded forced
  run -0 rlock force-unlock forced --yes --reason "wrong branch"
  ends_with 76 "$holder"
  grep -q "forced.*$(id -un)@.*wrong branch" err || fail "$(cat err)"
  [ "$(wc -l <err)" -eq 1 ]
  next_is_alone forced
}

@test "force-unlock hands over only when the holder's command is dead" {
  guarded relay -t 10
  start rlock run relay -- flock -n alone true
  waiter=$!
  eventually waiting 1 relay
  run -0 rlock force-unlock relay --yes
  ends_with 0 "$waiter"
  ends_with 76 "$holder"
}

@test "a lock deleted by hand ends the command with 76: it ended, nobody had it since" {
  guarded deleted -t 1
  redis del 'rlock:{deleted}:holders' >/dev/null
  ends_with 76 "$holder"
  grep -q deleted err
  [ "$(wc -l <err)" -eq 1 ]
}

@test "a lease that ended while rlock was stopped: nobody had it since" {
  guarded alone -t 1
  kill -STOP "$holder"
  eventually free alone
  kill -CONT "$holder"
  ends_with 76 "$holder"
  grep -q 'stopped or got no processor time (nobody has held it since)' err || fail "$(cat err)"
}

@test "a lease that ended while rlock was stopped: another had it since" {
  guarded late -t 1
  kill -STOP "$holder"
  run -0 rlock run -w 60 late -- true
  kill -CONT "$holder"
  ends_with 76 "$holder"
  grep -q 'stopped or got no processor time (another client has held it since)' err || fail "$(cat err)"
}

@test "--on-lost ignore: a lock that another owner had meanwhile is reported as such" {
  mkfifo up go
  start rlock run -t 1 --on-lost ignore stale -- sh -c 'exec 9<>go; echo up >up; read -r _ <&9' 2>err
  holder=$!
  next_line up
  kill -STOP "$holder"
  eventually free stale
  run -0 rlock run -w 60 stale -- true
  echo 1<>go
  kill -CONT "$holder"
  ends_with 0 "$holder"
  grep -q 'warning: lost "stale"' err || fail "$(cat err)"
  ! grep -q 'nobody has held it since' err || fail "$(cat err)"
}

@test "a lock deleted by hand and taken by another owner: no grace period" {
  mkfifo up
  start rlock run -t 9 -k 5 --event-log events taken -- sh -c 'trap "" TERM; echo up >up; while :; do sleep 0.1; done' 2>err
  local first=$!
  next_line up
  redis del 'rlock:{taken}:holders' >/dev/null
  hold taken
  ends_with 76 "$first"
  grep -q 'it was taken by ' err || fail "$(cat err)"
  [ $((($(ns killed) - $(ns lost)) / 1000000)) -lt 5000 ] || fail "$(cat events)"
  let_go taken
}

@test "after FLUSHALL the lock is put back and the command never notices" {
  hold wiped -t 3
  redis flushall >/dev/null
  eventually held wiped
  let_go wiped
  nothing_left wiped
}

@test "--no-renew: the command is ended when the first lease ends, 76" {
  run -76 --separate-stderr rlock run -t 1 --no-renew short -- sleep 1000
  says short
  nothing_left short
}

@test "--no-renew: a --kill-after as long as the lease does not end the command at its start" {
  run -6 --separate-stderr rlock run -t 20 -k 20 --no-renew grace -- sh -c 'sleep 0.5; exit 6'
  silent
}

@test "--no-renew: a command that is quicker keeps its code" {
  run -6 --separate-stderr rlock run -t 5 --no-renew short -- sh -c 'exit 6'
  silent
}

@test "--on-lost ignore: the command runs to its end, keeps its code, and a warning is given" {
  mkfifo up go
  start rlock run -t 1 --on-lost ignore ignored -- sh -c 'exec 9<>go; echo up >up; read -r _ <&9; exit 4' 2>err
  holder=$!
  next_line up
  run -0 rlock force-unlock ignored --yes
  eventually free ignored
  gone "$holder" && fail "the command was ended"
  echo 1<>go
  ends_with 4 "$holder"
  grep -q "ignored" err || fail "no warning: $(cat err)"
}

free() { ! held "$1"; }

@test "a lost lease lets the command clean up: TERM first, KILL --kill-after later" {
  mkfifo up
  start rlock run -t 10 -k 1 tidy -- sh -c 'trap "echo cleaned >cleaned; exit 0" TERM; echo up >up; while :; do sleep 0.05; done' 2>err
  holder=$!
  next_line up
  run -0 rlock force-unlock tidy --yes
  ends_with 76 "$holder"
  [ "$(cat cleaned)" = cleaned ]
}

@test "a crash blocks for one short lease, not for a day" {
  guarded crashed -t 1
  kill -KILL "$holder"
  run -0 rlock run -w 60 crashed -- true
}

@test "the server stops answering: the command is ended inside its lease, 76" {
  own
  guarded silenced -t 1
  kill -STOP "$(cat "$own_server/pid")"
  ends_with 76 "$holder"
  grep -q silenced err || fail "$(cat err)"
  run -0 flock -n alone true
}

# ns EVENT: when it was logged first.
ns() { jq -r --arg event "$1" 'select(.event == $event) | .t_ns' events | head -n 1; }

@test "a full pipe on stderr delays neither start, kill nor release of a run with -v" {
  mkfifo full
  exec 8<>full
  dd if=/dev/zero of=full bs=65536 count=1 conv=notrunc status=none
  run -124 sh -c 'rlock run -v --event-log events --max-run 1 -k 200ms piped -- sh -c "trap \"\" TERM; sleep 1000; :" 2>full'
  exec 8<&-
  # Each line may wait for a second where it waits at all, and there are five of them, beside the 1.2 s of the run.
  [ $((($(ns released) - $(ns acquired)) / 1000000)) -lt 6000 ] || fail "$(cat events)"
}

@test "a lease that is half over when the command starts is renewed at once" {
  local pause code
  for pause in 440 450 460 470 480; do
    redis client pause "$pause" all
    code=0
    # TERM comes at 500 ms. A starved machine may miss even that.
    rlock run -t 1 -k 500ms half -- sleep 0.3 2>err || code=$?
    [ "$code" = 0 ] || [ "$code" = 76 ] || fail "exit code $code: $(cat err)"
  done
}
