#!/usr/bin/env bats
# What a monitoring system sees: metrics, check, the last success in status, and how long the history is.
load helpers/helpers

# value METRIC NAME: from what metrics prints.
value() { rlock metrics "$2" | sed -n "s/^$1{name=\"$2\"} //p"; }

@test "metrics shows what runs, and how the runs before it ended" {
  rlock run nightly -- true
  run -7 rlock run nightly -- sh -c 'exit 7'
  hold nightly
  run -75 rlock run -n nightly -- true
  [ "$(value rlock_up nightly)" = "" ]
  rlock metrics | grep -qx 'rlock_up 1'
  [ "$(value rlock_holders nightly)" = 1 ]
  [ "$(value rlock_waiters nightly)" = 0 ]
  [ "$(value rlock_runs_total nightly)" = 2 ]
  [ "$(value rlock_failures_total nightly)" = 1 ]
  [ "$(value rlock_losses_total nightly)" = 0 ]
  [ "$(value rlock_skips_total nightly)" = 1 ]
  [ "$(value rlock_done_total nightly)" = 0 ]
  now=$(redis --raw time | head -n 1)
  for metric in rlock_last_success_timestamp_seconds rlock_last_failure_timestamp_seconds; do
    [ "$(value $metric nightly | cut -d. -f1)" -ge $((now - 60)) ]
  done
}

@test "metrics: the time that runs held the lock grows while one holds it, and waits are added at the end" {
  rlock run quick -- true
  [ "$(value rlock_waited_seconds_total quick | cut -d. -f1)" = 0 ]
  hold sums -t 2h
  queue_up sums
  moved 3600
  [ "$(value rlock_held_seconds_total sums | cut -d. -f1)" -ge 3600 ]
  let_go sums
  wait "$waiter" || true
  [ "$(value rlock_held_seconds_total sums | cut -d. -f1)" -ge 3600 ]
}

@test "metrics without NAME prints locks in use or used lately, with patterns those that match" {
  rlock run lately -- true
  rlock run 'odd"\name' -- true
  redis hset 'rlock:{long-ago}:meta' form 1 last 5 created 5
  run -0 rlock metrics
  [[ $output == *'rlock_runs_total{name="lately"} 1'* ]] || fail "$output"
  [[ $output == *'{name="odd\"\\name"}'* ]] || fail "$output"
  [[ $output != *long-ago* ]] || fail "$output"
  run -0 rlock metrics 'l*'
  [[ $output == *'{name="lately"}'* && $output == *'{name="long-ago"}'* && $output != *odd* ]] || fail "$output"
}

@test "metrics reports a lock that cannot be read, even with a pattern" {
  redis set 'rlock:{bad}:limits' text
  run -65 rlock metrics bad
  run -65 --separate-stderr rlock metrics bad 'team-*'
}

@test "metrics prints at most a thousand locks, and counts the others" {
  redis eval 'for i = 1, 1003 do redis.call("HSET", string.format("rlock:{lock-%04d}:meta", i), "form", 1, "last", 5) end' 0
  run -0 rlock metrics 'lock-*'
  [ "$(grep -c '^rlock_runs_total{' <<<"$output")" = 1000 ]
  [[ $output == *$'\nrlock_omitted_locks 3'* ]] || fail "$output"
}

@test "metrics --output: the file is replaced, and says so when no server answers" {
  rlock run exported -- true
  echo old >metrics.prom
  run -0 rlock metrics --output metrics.prom
  [ -z "$output" ]
  grep -qx 'rlock_runs_total{name="exported"} 1' metrics.prom
  run -69 rlock metrics -u "redis+unix://$here/nothing.sock" --connect-timeout 0.2 --output metrics.prom
  grep -qx 'rlock_up 0' metrics.prom
  [ "$(grep -cv '^#' metrics.prom)" = 1 ]
  [ "$(find . -name 'metrics.prom*' | wc -l)" = 1 ]
  echo old >metrics.prom
  run -69 rlock metrics -q -u "redis+unix://$here/nothing.sock" --connect-timeout 0.2 --output metrics.prom
  [ -z "$output" ] || fail "$output"
  grep -qx 'rlock_up 0' metrics.prom
  run -71 rlock metrics --output no-such-folder/metrics.prom
  [[ $output == *no-such-folder/metrics.prom* ]] || fail "$output"
}

@test "metrics --output: a file beyond ulimit -f is an error, and leaves nothing behind" {
  run -71 bash -c 'ulimit -f 0; exec env --default-signal=XFSZ "$RLOCK" metrics --output metrics.prom'
  [[ $output == *'File too large'* ]] || fail "$output"
  [ -z "$(ls)" ] || fail "$(ls)"
}

@test "metrics --output ignores the file that a run of the same pid left" {
  # As in containers, where each run has the pid of the one that crashed.
  run -0 sh -c ': >"m.prom.$$.tmp"; exec rlock metrics --output m.prom'
  grep -qx 'rlock_up 1' m.prom
}

@test "metrics --output replaces no link, device or pipe" {
  mkdir folder
  echo old >real
  ln -s ../real folder/link
  run -64 rlock metrics --output folder/link
  [ -L folder/link ]
  [ "$(cat real)" = old ]
  mkfifo pipe
  run -64 --separate-stderr rlock metrics --output pipe
  says "pipe is not a regular file" "redirect standard output"
  [ -p pipe ]
  run -64 rlock metrics --output folder
  ln -s nowhere lost
  run -64 rlock metrics --output lost
  [ -L lost ]
  [ -z "$(find . -name '*.tmp')" ]
}

@test "promtool is content with the metrics" {
  command -v promtool >/dev/null || skip "promtool is not installed"
  run -1 rlock run measured -- false
  rlock run measured -- true
  rlock metrics | promtool check metrics
}

@test "check reports a success that is too old, a failure, and a lock that is held for too long" {
  run -2 rlock check checked --within 26h
  [[ $output == 'RLOCK CRITICAL - "checked": never held'* ]] || fail "$output"
  run -3 rlock check checked
  run -7 rlock run checked -- sh -c 'exit 7'
  run -2 rlock check checked --within 26h
  [[ $output == 'RLOCK CRITICAL - "checked": no run has succeeded'* ]] || fail "$output"
  rlock run checked -- true
  run -0 rlock check checked --within 26h
  [[ $output == 'RLOCK OK - "checked": free; last success '*" |"*age=*s\;\;93600.000\;0* ]] || fail "$output"
  [ "${#lines[@]}" = 1 ]
  run -2 rlock check checked --within 0.001
  run -7 rlock run checked -- sh -c 'exit 7'
  run -1 rlock check checked --within 26h
  [[ $output == 'RLOCK WARNING - "checked": the last run failed: exit 7'* ]] || fail "$output"
  run -2 rlock check checked --critical
  rlock run checked -- true
  hold checked
  run -0 rlock check checked --max-held 1h --max-wait 1h --max-waiters 0
  run -1 rlock check checked --max-held 0.001
  [[ $output == *"held for "* ]] || fail "$output"
  run -2 rlock check checked --max-held 0.001 --critical
}

@test "check -q prints nothing if all is well, and check names a known lock with a similar name" {
  rlock run shop/nightly -- true
  quietly rlock check -q shop/nightly --within 26h
  run -2 rlock check -q shop/nightly --within 0.001
  [[ $output == 'RLOCK CRITICAL - "shop/nightly": no run has succeeded'* ]] || fail "$output"
  run -3 rlock check shop/nihgtly
  [[ $output == *'"shop/nihgtly": never held, not within 30 days, or the server has lost its data; did you mean "shop/nightly"?' ]] || fail "$output"
}

@test "check compares the number and age of waiters with its limits" {
  hold waited-for
  queue_up waited-for
  run -1 rlock check waited-for --max-waiters 0
  [[ $output == *"1 waiting (at most 0)"* ]] || fail "$output"
  run -1 rlock check waited-for --max-wait 0.001
  [[ $output == *"the first waiter has waited for "* ]] || fail "$output"
  let_go waited-for
}

@test "check reports what it cannot find out on stdout, and exits with 3" {
  run -3 --separate-stderr rlock check a --config /nowhere
  [[ $output == "RLOCK UNKNOWN - "* ]] || fail "$output"
  run -3 rlock check a -u "redis+unix://$here/nothing.sock" --connect-timeout 0.2
  [[ $output == "RLOCK UNKNOWN - "* ]] || fail "$output"
}

@test "--history keeps so many rows, and the last success is known without any" {
  for _ in 1 2 3; do rlock run --history 2 busy -- true; done
  [ "$(rlock history --json busy | jq '.runs | length')" = 2 ]
  run -1 rlock run --history 0 busy -- false
  [ "$(rlock history --json busy | jq '.runs | length')" = 0 ]
  run -0 rlock status busy
  [[ $output == *"success  "*" at 20"*"Z, took "*"$(id -un)@$(hostname)"*"failure  "*", exit 1"* ]] || fail "$output"
  rlock status --json busy | jq -e --arg host "$(hostname)" '.locks[0] | .last_success.host == $host and
    .last_failure.how == "released" and .last_failure.exit_code == 1 and .last_failure.in_a_row == 1 and
    .counters == {"runs": 4, "failures": 1, "losses": 0, "skips": 0, "done": 0, "superseded": 0}'
}

# died WHEN: history, status, check and metrics say what happened to the run under "dead", the only one.
died() {
  local end last
  read -r end last < <(rlock history dead --json | jq -r '.runs | length as $n | .[0] |
    if $n == 1 and .how == "expired" then "\(.until) \(.last_renewal)" else error("\($n) \(.how)") end')
  [ "$end" = "$(date -u -d "$last + 1 hour" +%Y-%m-%dT%H:%M:%S)${last:19}" ] || fail "$1: $last to $end"
  run -0 rlock status dead
  [[ $output == *free*"failure  "*"at ${end:0:19}Z, its lease expired"*", by "* ]] || fail "$1: $output"
  run -1 rlock check dead
  [[ $output == 'RLOCK WARNING - "dead": the last run, by '*"@$(hostname), died "*"at ${end:0:19}Z |"* ]] || fail "$1: $output"
  run -0 rlock metrics dead
  [[ $output == *'rlock_losses_total{name="dead"} 1'* && $output == *'rlock_runs_total{name="dead"} 1'* ]] || fail "$1: $output"
}

@test "a run that died is shown from the end of its lease on, for days, and counted once" {
  start rlock run --ttl 1h dead -- sh -c 'echo $PPID >guard; exec sleep 1000'
  rlock=$!
  eventually test -s guard
  guard=$(cat guard)
  kill -KILL "$rlock" "$guard" "$(pgrep -P "$guard")"
  for seconds in 3600 5 57 86400; do
    moved "$seconds"
    died "another $seconds s later"
  done
  rlock run dead -- true
  run -0 rlock metrics dead
  [[ $output == *'rlock_losses_total{name="dead"} 1'* && $output == *'rlock_runs_total{name="dead"} 2'* ]] || fail "$output"
  [ "$(rlock history dead --json | jq -c '[.runs[].how]')" = '["released","expired"]' ]
}
