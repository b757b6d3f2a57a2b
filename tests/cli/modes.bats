#!/usr/bin/env bats
load helpers/helpers

# another NAME OPTION…: a second holder.
another() {
  start rlock run "${@:2}" "$1" -- sleep 1000
  eventually held_by 2 "$1"
}
held_by() { [ "$(rlock status --json "$2" | jq '.locks[0].holders | length')" -eq "$1" ]; }
shown() { rlock status --json "$1" | jq -rc '.locks[0] | [.mode, .slots]'; }

@test "--slots 2: two runs hold the lock, a third finds it busy" {
  hold pool --slots 2
  run -0 rlock run -n --slots 2 pool -- true
  another pool --slots 2
  refuses 75 pool busy ': 2 of 2 slots are held, one of them held by '"$(id -un)@" -- rlock run -n --slots 2 pool -- touch started
  refuses 75 pool '2 of 2 slots are held (this run allows 4, a holder 2)' -- rlock run -w 10ms --slots 4 pool -- touch started
  refuses 75 pool '2 of 2 slots are held (this run allows 4, a holder 2)' -- rlock acquire -n --ttl 1m --slots 4 pool
  let_go pool
}

# slot_of NAME: starts a holder of one of three slots of NAME, whose RLOCK_SLOT becomes $slot; $! is its pid.
slot_of() {
  mkfifo "slot.$1.$((++slots))"
  start rlock run --slots 3 "$1" -- sh -c 'echo "$RLOCK_SLOT" >"$1"; exec sleep 1000' sh "slot.$1.$slots"
  slot=$(next_line "slot.$1.$slots")
}

@test "RLOCK_SLOT is the lowest number that no other live holder has; status and acquire --json show it" {
  local slot slots=0 second
  slot_of team
  [ "$slot" -eq 1 ]
  slot_of team
  [ "$slot" -eq 2 ]
  second=$!
  slot_of team
  [ "$slot" -eq 3 ]
  ends_by TERM "$second"
  [ "$(rlock status --json team | jq -c '[.locks[0].holders[].slot] | sort')" = "[1,3]" ]
  [[ $(rlock status team) == *"up to 3 holders; this is slot 3"* ]]
  [ "$(rlock acquire -n --ttl 1m --slots 3 --json team | jq .slot)" -eq 2 ]
}

@test "each holder restores its lease and slot on a server that lost its data" {
  own
  local slot slots=0 first
  slot_of team
  first=$!
  slot_of team
  ends_by TERM "$first"
  redis flushall >/dev/null
  renew_now 1
  eventually held team
  [ "$(rlock status --json team | jq -c '.locks[0] | [.mode, .slots, .holders[].slot]')" = '["slots",3,2]' ]
  [ "$(rlock run --slots 3 crew -c 'echo "$RLOCK_SLOT"')" = 1 ]
}

@test "RLOCK_SLOT belongs to runs with --slots, and nested runs have that of the outer run" {
  local shown='echo "${RLOCK_SLOT-none}"'
  export RLOCK_SLOT=7
  [ "$(rlock run plain -c "$shown")" = none ]
  [ "$(rlock run --slots 1 plain -c "$shown")" = 1 ]
  [ "$(rlock run -s book -c "$shown")" = none ]
  [ "$(rlock run --slots 3 crew -c "$shown")" = 1 ]
  [ "$(rlock run --slots 3 crew -- rlock run --slots 3 crew -c "$shown")" = 1 ]
  [ "$(rlock run --slots 3 crew -- rlock run other -c "$shown")" = none ]
  [ "$(RLOCK_URL=unix:///none rlock run --fail-open --connect-timeout 0.2 --slots 3 crew -c "$shown" 2>/dev/null)" = none ]
  [ "$(rlock acquire -n --ttl 1m --json alone | jq .slot)" = null ]
}

@test "if runs differ in --slots, status shows the smallest, which applies" {
  hold mixed --slots 3
  another mixed --slots 2
  [ "$(shown mixed)" = '["slots",2]' ]
  run -0 rlock status mixed
  [[ $output == *"2 of 2 slots"* ]] || fail "$output"
  [[ $output == *"mode     slots, up to 3 holders"* ]] || fail "$output"
  [ "$(rlock status --json mixed | jq -c '[.locks[0].holders[] | .slots] | sort')" = '[2,3]' ]
  let_go mixed
}

@test "--shared: any number of shared runs overlap, an exclusive one does not" {
  hold book -s
  [ "$(shown book)" = '["shared",null]' ]
  run -0 rlock run -n --shared book -- true
  run -75 rlock run -n book -- true
  let_go book
  hold book2
  run -75 rlock run -n -s book2 -- true
  let_go book2
}

@test "--max-queue N exits with 75 if N runs wait already, and leaves nothing in the queue" {
  hold short
  refuses 75 short busy -- rlock run --max-queue 0 short -- true
  queue_up short --max-queue 1
  refuses 75 "short\" at $SERVER/s is busy and has 1 run waiting (--max-queue 1): held by" -- rlock run --max-queue 1 short -- true
  run -9 rlock run --max-queue 1 -E 9 short -- true
  waiting 1 short
  hand_over short
  run -0 rlock run --max-queue 0 short -- true
}

@test "--max-queue soon stops counting a dead waiter" {
  hold purged -t 1h
  queue_up purged
  ends_by KILL "$waiter"
  run -75 rlock run -n --max-queue 1 purged -- true
  moved 15
  queue_up purged --max-queue 1
  hand_over purged
}

@test "after FLUSHALL a shared holder restores its lease as shared" {
  own
  hold both -s
  redis flushall >/dev/null
  renew_now 1
  eventually held both
  [ "$(shown both)" = '["shared",null]' ]
  let_go both
}
