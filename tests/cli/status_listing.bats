#!/usr/bin/env bats
# rlock status without NAME: what is in use, and how many other locks there are.
load helpers/helpers

@test "status without a name lists what is held, waited for, broken or cooling down, and counts the rest" {
  reset_server
  rlock run idle-1 -- true
  run -0 rlock status
  [ "$output" = "1 free; --all lists it" ] || fail "$output"
  for name in idle-2 idle-3; do rlock run "$name" -- true; done
  run -0 rlock status
  [ "$output" = "3 free; --all lists them" ] || fail "$output"
  rlock run --min-hold 5m cooling -- true
  hold held
  queue_up held
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
  let_go taken
}

@test "a lock that is named twice, or named and matched, is listed once" {
  reset_server
  for name in ab ac; do rlock run "$name" -- true; done
  run -0 rlock status --json ab ab 'a*'
  [ "$(jq -c '[.locks[].name]' <<<"$output")" = '["ab","ac"]' ] || fail "$output"
}

@test "status --json --all counts the runs of free locks" {
  reset_server
  rlock run counted -- true
  run -0 rlock status --json --all
  jq -e '.locks[0] | .name == "counted" and .counters.runs == 1 and .last_success != null' <<<"$output" || fail "$output"
}

@test "status asks over one connection, and for no key that is not rlock's own" {
  own
  redis acl setuser rlock on nopass ~rlock:* +@all >/dev/null
  before=$(redis info stats | tr -d '\r' | sed -n 's/^total_connections_received://p')
  run -0 rlock status --user rlock free
  [ "$(redis info stats | tr -d '\r' | sed -n 's/^total_connections_received://p')" -eq $((before + 2)) ]
  [ -z "$(redis acl log)" ]
}

# Far more than a pipe of one page holds.
@test "output to a pipe that the caller made non-blocking is not cut" {
  run -0 python3 - <<'PYTHON'
import array, fcntl, os, subprocess, termios
reader, writer = os.pipe()
size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
os.set_blocking(writer, False)
run = subprocess.Popen(["rlock", "completion", "bash"], stdout=writer)
os.close(writer)
full = array.array("i", [0])
while full[0] < size and run.poll() is None:
    fcntl.ioctl(reader, termios.FIONREAD, full)
text = b""
while piece := os.read(reader, 65536):
    text += piece
assert run.wait() == 0, run.returncode
assert text == subprocess.check_output(["rlock", "completion", "bash"])
PYTHON
}

@test "a closed stdout is an error, not silence" {
  run -71 --separate-stderr sh -c 'rlock status --json >&-'
  says "cannot write to stdout"
  run -1 sh -c 'rlock status -q nobody-has-it >&-'
}

@test "the pages of a long queue bring no holders" {
  reset_server
  redis config set slowlog-log-slower-than 0 slowlog-max-len 1000 >/dev/null
  redis slowlog reset >/dev/null
  rlock queue asked
  redis --json slowlog get 100 >slow
  redis config set slowlog-log-slower-than 10000 >/dev/null
  jq -e '[.[][3] | select(.[0] | test("^eval"; "i"))] | any(index("waiters")) and all(index("holders") | not)' slow
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

@test "a server that falls silent after the names is asked no further" {
  own
  rlock acquire lock0 --ttl 1h
  redis eval 'for i = 1, 999 do redis.call("copy", KEYS[1], "rlock:{lock" .. i .. "}:holders") end' 1 'rlock:{lock0}:holders'
  [ "$(rlock status --json | jq '.locks | length')" -eq 1000 ]
  # Lets SCAN through, but no script. Each of ten batches would take five seconds.
  redis client pause 600000 write
  run -69 timeout 20 "$RLOCK" status
  [[ $output == *"$SERVER/s: no answer in time"* ]] || fail "$output"
}
