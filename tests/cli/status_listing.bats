#!/usr/bin/env bats
# rlock status without NAME: what is in use, and how many other locks there are.
load helpers/helpers

@test "status without a name lists what is held, waited for, broken or cooling down, and counts the rest" {
  reset_server
  local name waiter
  for name in idle-1 idle-2 idle-3; do rlock run "$name" -- true; done
  run -0 rlock status
  [ "$output" = "3 free; --all lists them" ] || fail "$output"
  rlock run --min-hold 5m cooling -- true
  hold held
  start rlock run held -- true
  waiter=$!
  eventually waiting 1 held
  run -0 rlock status
  [[ ${lines[0]} == NAME* && ${lines[1]} == cooling*cooldown* && ${lines[2]} == "held "*" held "* ]] || fail "$output"
  [ "${lines[3]}" = "3 free; --all lists them" ] || fail "$output"
  run -0 rlock status --json
  [ "$(jq -c '[[.locks[].name], .free]' <<<"$output")" = '[["cooling","held"],3]' ] || fail "$output"
  # What only waits: its holder's keys were deleted by hand.
  kill -STOP "$holder" "$waiter"
  redis del "rlock:{held}:holders" >/dev/null
  run -0 rlock status --json
  [ "$(jq -c '[.locks[] | [.name, .state, .waiters]]' <<<"$output")" = '[["cooling","cooldown",0],["held","free",1]]' ] || fail "$output"
  kill -CONT "$waiter"
  kill -KILL "$holder"
  ends_with 0 "$waiter"
}

@test "status --all lists every lock, and a pattern those that match, free ones as well" {
  reset_server
  rlock run free/1 -- true
  rlock run free/2 -- true
  hold taken
  run -0 rlock status --all
  [ "${#lines[@]}" -eq 4 ] || fail "$output"
  [[ ${lines[1]} == "free/1 "*free* && ${lines[3]} == "taken "*held* ]] || fail "$output"
  run -0 rlock status --all --json
  [ "$(jq -c '[[.locks[].name], has("free")]' <<<"$output")" = '[["free/1","free/2","taken"],false]' ] || fail "$output"
  run -0 rlock status 'free/*' --json
  [ "$(jq -c '[[.locks[].name], has("free")]' <<<"$output")" = '[["free/1","free/2"],false]' ] || fail "$output"
  run -64 --separate-stderr rlock status --all taken
  says "--all" "NAME"
  let_go taken
}

@test "100,000 names: status counts them in pages, and reads only those in use" {
  reset_server
  redis eval 'for i = 1, 100000 do redis.call("HSET", string.format("rlock:{lock-%06d}:meta", i), "last", 1) end' 0
  hold one
  redis config resetstat >/dev/null
  run -0 rlock status --json
  [ "$(jq -c '[[.locks[].name], .free]' <<<"$output")" = '[["one"],100000]' ] || fail "$output"
  # Not many more than one: the holder renews its lease, too.
  redis info commandstats | grep -qE '^cmdstat_evalsha:calls=[0-9]{1,2},' || fail "$(redis info commandstats)"
  rlock status --all >all
  [ "$(wc -l <all)" -eq 100002 ] || fail "$(head all)"
  let_go one
}
