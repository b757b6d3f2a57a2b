#!/usr/bin/env bats
# --ticket: a position in the queue that outlives the call.
load helpers/helpers

# asks NAME [OPTION…]: a call with a ticket in FILE (`ticket`) has given up after --wait, and keeps its position.
asks() { refuses 75 "$1" "is kept for 15m" "--ticket" -- rlock run -w 1ms --ticket "${FILE:-ticket}" "$@" -- touch started; }

# aged N: as if N seconds had passed since the 75, on this host.
aged() { jq -c ".at_ms -= 1000 * $1" ticket >aged && cat aged >ticket; }

# returns NAME [OPTION…]: $waiter is a call with the ticket, in the queue of NAME; it writes `returned` to order.
returns() { joins "$1" rlock run --ticket "${FILE:-ticket}" "$@" -- sh -c 'echo returned >>order'; }

# served_in_order NAME LINE…: once the holder ends, the runs of `line` and $waiter are served in this order.
served_in_order() {
  local name=$1 pid
  shift
  let_go "$name"
  for pid in "${line[@]}" "$waiter"; do ends_with 0 "$pid"; done
  [ "$(cat order)" = "$(printf '%s\n' "$@")" ] || overslept || fail "$(cat order)"
}

@test "a call that returns with its ticket is ahead of all that came after its first one, for run and for acquire" {
  hold lock
  asks lock
  line_up lock
  returns lock
  served_in_order lock returned 1 2
  rm order
  hold lock
  refuses 75 "is kept for 15m" -- rlock acquire -t 1m -w 1ms --ticket ticket lock
  line_up lock 1
  returns lock
  served_in_order lock returned 1
}

@test "a position is kept over several calls, and behind those that first asked before" {
  hold lock
  queue_up lock -- sh -c 'echo first >>order'
  local first=$waiter
  asks lock
  asks lock
  line_up lock 1
  asks lock
  returns lock
  line=("$first" "${line[@]}")
  served_in_order lock first returned 1
}

@test "nobody waits for a call that is away" {
  hold lock
  asks lock
  line_up lock
  let_go lock
  in_order
  quietly rlock run --ticket ticket lock -- true
}

@test "the file has a ticket only after a 75, and it counts once" {
  quietly rlock run --ticket ticket lock -- true
  [ ! -s ticket ]
  [ "$(stat -c %a ticket ticket.lock)" = $'600\n600' ]
  hold lock
  asks lock
  [ -s ticket ]
  cp ticket copy
  FILE=copy asks lock
  returns lock
  eventually test ! -s ticket
  ends_by TERM "$waiter"
  [ ! -s ticket ]
  asks lock
  returns lock
  kill -KILL "$waiter"
  ends_with 137 "$waiter"
  [ ! -s ticket ]
  asks lock
  let_go lock
  run -7 rlock run --ticket ticket lock -- sh -c 'test ! -s ticket && exit 7'
  [ ! -s ticket ]
}

@test "a waiter that an operator removes loses its position" {
  hold removed
  asks removed
  returns removed 2>err
  rlock queue removed --remove "$(rlock queue --json removed | jq -r '.waiters[0].owner')"
  ends_with 75 "$waiter"
  [ ! -s ticket ]
}

@test "a ticket is for one lock, prefix, database and kind of waiter, on one boot of one host" {
  local other
  hold purpose
  hold another
  RLOCK_PREFIX=other: hold purpose
  for other in "another" "--prefix other: purpose" "--while-closed purpose"; do
    rm -f ticket
    asks purpose
    # shellcheck disable=SC2086 # words
    run -75 --separate-stderr rlock run -w 1ms --ticket ticket $other -- touch started
    [[ ${stderr_lines[0]} == 'rlock: --ticket: "ticket" is for another lock or host; the position in the queue is the last' ]] || fail "$stderr"
  done
  rm ticket
  asks purpose
  sed -i 's/"boot":"./"boot":"!/' ticket
  run -75 --separate-stderr rlock run -w 1ms --ticket ticket purpose -- touch started
  [[ ${stderr_lines[0]} == *"another lock or host"* ]] || fail "$stderr"
  rm ticket
  asks purpose
  RLOCK_URL="$RLOCK_URL?db=1" run -0 --separate-stderr rlock run --ticket ticket purpose -- true
  says "another lock or host"
}

@test "a ticket counts for 15 minutes" {
  hold aging
  asks aging
  aged 890
  asks aging
  aged 901
  run -75 --separate-stderr rlock run -w 1ms --ticket ticket aging -- touch started
  [[ ${stderr_lines[0]} == 'rlock: --ticket: "ticket" is older than 15m; the position in the queue is the last' ]] || fail "$stderr"
}

@test "a call whose file another one uses begins without a ticket, says so, and leaves the file alone" {
  hold lock
  asks lock
  cp ticket copy
  returns lock
  eventually test ! -s ticket
  run -75 --separate-stderr rlock run -w 1ms --ticket ticket lock -- touch started
  [[ ${stderr_lines[0]} == 'rlock: --ticket: another rlock uses "ticket" now; the position in the queue is the last' ]] || fail "$stderr"
  [[ $stderr != *"is kept"* ]] || fail "$stderr"
  [ ! -s ticket ]
  let_go lock
  ends_with 0 "$waiter"
}

@test "the file is free for the next call while the command runs" {
  hold lock --ticket ticket
  asks lock
  let_go lock
}

@test "exit 78: a file of another kind, a device, a folder, and another user's file or link" {
  echo '#!/bin/sh' >script
  refuses 78 '"script"' "something else" -- rlock run --ticket script lock -- touch started
  [ "$(cat script)" = '#!/bin/sh' ]
  refuses 78 '"/dev/null' -- rlock run --ticket /dev/null lock -- touch started
  refuses 78 '"."' -- rlock run --ticket . lock -- touch started
  refuses 78 '"none/ticket' -- rlock run --ticket none/ticket lock -- touch started
  : >own
  ln -s own link
  quietly rlock run --ticket link lock -- true
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  chown -h nobody link
  refuses 78 '"link"' "symbolic link of another user" -- rlock run --ticket link lock -- touch started
  : >theirs
  chown nobody theirs
  refuses 78 '"theirs"' "belongs to another user" -- rlock run --ticket theirs lock -- touch started
}

@test "--max-queue lets a call return that had a position" {
  hold lock
  asks lock
  line_up lock
  refuses 75 "2 runs waiting" -- rlock run --max-queue 2 lock -- touch started
  returns lock --max-queue 2
  served_in_order lock returned 1 2
}

@test "a position in a closed lock is kept, and a call that finds the work of --once done empties the file" {
  rlock close lock --for 1h
  refuses 75 "did not open" "is kept for 15m" -- rlock run -w 1ms --ticket ticket --once=x lock -- touch started
  rlock open lock
  quietly rlock run --once=x lock -- true
  run -0 rlock run --ticket ticket --once=x lock -- touch started
  [ ! -s ticket ]
}
