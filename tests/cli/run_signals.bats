#!/usr/bin/env bats
# Requests to end; supervision/cancel_test.py and tree_test.py have what they do to a tree of processes.
load helpers/helpers

@test "HUP and QUIT stop the command, and the lock is free only after it is gone" {
  for signal in HUP QUIT; do
    hold_alone ended
    kill "-$signal" "$holder"
    run -0 rlock run ended -- flock -n alone true
    ends_with $((128 + $(kill -l "$signal"))) "$holder"
    gone "$said" || fail "orphaned by $signal"
  done
}

@test "each signal reaches the command once" {
  local all=(TERM INT HUP USR1 USR2) signal traps=''
  for signal in "${all[@]}"; do traps+="trap 'echo $signal >>got' $signal; "; done
  # dash may begin a read although a signal has just come, but never a wait.
  hold_with "$traps read -r _ <&9 & echo >up; while kill -0 \$! 2>/dev/null; do wait; done" forwarded
  for signal in "${all[@]}"; do
    kill "-$signal" "$holder"
    eventually grep -qx "$signal" got
  done
  [ "$(cat got)" = "$(printf '%s\n' "${all[@]}")" ] || fail "$(cat got)"
  echo 1<>go
  ends_with 0 "$holder"
}

@test "rlock waits for a command that answers TERM, and exits with its code" {
  hold_with 'trap "echo ending >up; rlock status -q slow-end; echo \$? >seen; exit 9" TERM; echo up >up; while :; do sleep 0.05; done' slow-end
  kill -TERM "$holder"
  [ "$(next_line up)" = ending ]
  ends_with 9 "$holder"
  [ "$(cat seen)" -eq 0 ]
  nothing_left slow-end
}

@test "a line of output beyond ulimit -f disturbs neither the wait nor the command" {
  hold full
  joins full bash -c 'ulimit -f 0; exec "$RLOCK" run -v full -- true 2>>messages'
  let_go full
  ends_with 0 "$waiter"
  [ ! -s messages ]
  nothing_left full
}

@test "a stopped command is resumed so that it can react to TERM" {
  is_stopped() { [[ $(ps -o stat= -p "$said") == T* ]]; }
  for signal in TERM INT; do
    hold_with 'echo $$ >up; kill -STOP $$; echo >resumed' stopped
    eventually is_stopped
    ends_by "$signal" "$holder"
  done
  [ ! -e resumed ]
}
