#!/usr/bin/env bats
load helpers/helpers

# trapping NAME SIGNAL…: a holder whose command writes down each of the signals in the file got.
trapping() {
  local name=$1 signal traps=''
  shift
  for signal in "$@"; do traps+="trap 'echo $signal >>got' $signal; "; done
  rm -f up go got
  mkfifo up go
  start rlock run "$name" -- sh -c "exec 9<>go; $traps echo \$\$ >up; until read -r _ <&9; do :; done"
  holder=$!
  command=$(next_line up)
}

@test "TERM, INT, HUP and QUIT end the job, and the lock is free only after it is gone" {
  local signal
  for signal in TERM INT HUP QUIT; do
    rm -f up
    mkfifo up
    start rlock run ended -- sh -c 'exec 9>>alone; flock -n 9 || exit 1; echo $$ >up; exec sleep 1000'
    holder=$!
    command=$(next_line up)
    kill "-$signal" "$holder"
    run -0 rlock run ended -- flock -n alone true
    ends_with $((128 + $(kill -l "$signal"))) "$holder"
    gone "$command" || fail "orphaned by $signal"
  done
}

@test "each signal reaches the command once" {
  local all=(TERM INT HUP USR1 USR2) signal
  trapping forwarded "${all[@]}"
  for signal in "${all[@]}"; do
    kill "-$signal" "$holder"
    eventually grep -qx "$signal" got
  done
  [ "$(cat got)" = "$(printf '%s\n' "${all[@]}")" ] || fail "$(cat got)"
  echo 1<>go
  ends_with 0 "$holder"
}

@test "a job that answers TERM with a code of its own keeps it, and is waited for" {
  mkfifo up
  start rlock run slow-end -- sh -c 'trap "echo ending >up; held=\$(rlock status -q slow-end; echo \$?); echo \$held >seen; exit 9" TERM; echo up >up; while :; do sleep 0.05; done'
  holder=$!
  next_line up
  kill -TERM "$holder"
  [ "$(next_line up)" = ending ]
  ends_with 9 "$holder"
  [ "$(cat seen)" -eq 0 ]
  nothing_left slow-end
}

@test "TERM ends what left the command's group, too" {
  mkfifo up
  start rlock run strays -- sh -c 'setsid sh -c "echo \$\$ >up; exec sleep 1000" & exec sleep 1000'
  holder=$!
  local stray
  stray=$(next_line up)
  kill -TERM "$holder"
  ends_with 143 "$holder"
  eventually gone "$stray"
}

@test "a line that does not fit below ulimit -f harms neither the wait nor the command" {
  hold full
  start bash -c 'ulimit -f 0; exec "$RLOCK" run -v full -- true 2>>messages'
  local waiter=$!
  eventually waiting 1 full
  let_go full
  ends_with 0 "$waiter"
  [ ! -s messages ]
  nothing_left full
}

@test "a stopped job is resumed to act on a request to end" {
  local signal
  is_stopped() { [[ $(ps -o stat= -p "$command") == T* ]]; }
  mkfifo up
  for signal in TERM INT HUP QUIT; do
    start rlock run stopped -- sh -c 'echo $$ >up; kill -STOP $$; echo >resumed'
    holder=$!
    command=$(next_line up)
    eventually is_stopped
    kill "-$signal" "$holder"
    ends_with $((128 + $(kill -l "$signal"))) "$holder"
  done
  [ ! -e resumed ]
}

@test "signals reach the whole group of the command" {
  mkfifo up
  start setsid -w rlock run group -- sh -c 'sh -c "echo \$\$ >up; exec sleep 1000"; true'
  local waiting=$! child
  child=$(next_line up)
  kill -TERM "$(rlock status --json group | jq '.locks[0].holders[0].pid')"
  eventually gone "$child"
  wait "$waiting" || true
  nothing_left group
}

@test "a signal that the caller ignores stays ignored: nohup works" {
  mkfifo up go
  start nohup rlock run hup -- sh -c 'exec 9<>go; echo $$ >up; read -r _ <&9; exit 3'
  holder=$!
  next_line up
  kill -HUP "$holder"
  held hup
  echo 1<>go
  ends_with 3 "$holder"
}

@test "what the command leaves behind runs on unlocked" {
  mkfifo up
  run -0 rlock run daemon -- sh -c 'setsid sh -c "echo \$\$ >up; exec sleep 1000" >/dev/null 2>&1 3>&- 4>&- & read -r pid <up; echo "$pid"'
  local left=$output
  nothing_left daemon
  gone "$left" && fail "it was ended"
  kill "$left"
}
