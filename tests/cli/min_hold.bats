#!/usr/bin/env bats
load helpers/helpers

state() { rlock status --json "$1" | jq -r '.locks[0].state'; }

@test "a quick job does not run again on a host whose clock is slow" {
  run -0 rlock run -n --min-hold 1h nightly -- true
  refuses 75 nightly --min-hold -- rlock run -n --min-hold 1h nightly -- touch again
  [ ! -e again ]
  [ "$(state nightly)" = cooldown ]
  run -0 rlock status nightly
  [[ $output == *"free in 59m"* && $output != *"held by"* && $output != *renewed* ]] || fail "$output"
}

@test "--min-hold counts from the acquisition: a longer command is not held back" {
  rlock run --min-hold 1ms counted -- sleep 0.05
  run -0 rlock run -n counted -- true
}

@test "the next waiter starts when the cool-down is over" {
  rlock run --min-hold 1h passed -- true
  queue_up passed
  moved 3600
  ends_with 0 "$waiter"
}

@test "--min-hold outlives a crash of the holder's host" {
  hold crashed -t 10m --min-hold 1h
  kill -KILL "$holder"
  eventually gone "$command"
  moved 600
  run -75 rlock run -n crashed -- true
  [ "$(state crashed)" = cooldown ]
}

@test "a command that cannot be started leaves no cool-down" {
  echo text >not_executable
  for command in ./nowhere ./not_executable; do
    code=127
    [ -e "$command" ] && code=126
    run -$code --separate-stderr rlock run -n --min-hold 1h "missing" -- "$command"
    says '"missing" at ' 'was released'
    run -1 rlock status -q missing
    run -0 rlock run -n missing -- true
  done
  [ "$(rlock history --json missing | jq -c '[.runs[].exit_code]')" = '[0,126,0,127]' ]
}

@test "the --min-hold of a nested run applies to the lock" {
  rlock run inner -- rlock run --min-hold 1h inner -- true
  [ "$(state inner)" = cooldown ]
}
