#!/usr/bin/env bats
# Work that is done once: --once, --once-per, --once-within, and what forget lets be done again.
load helpers/helpers

setup() { begin && reset_server; }

# times N: the work was done so often.
times() {
  local count=0
  [ ! -e ran ] || count=$(wc -l <ran)
  [ "$count" -eq "$1" ] || fail "done $count times, not $1"
}

# work OPTION…: a run of "job" that succeeds at once.
work() { rlock run "$@" job -- sh -c 'echo >>ran'; }

# found_done OPTION…: such a run finds that it was done.
found_done() {
  run -0 --separate-stderr work "$@"
  says "was done by"
}

# queued_work OPTION…: such a run that waits, in the background; $waiter is its pid.
queued_work() { queue_up job "$@" -- sh -c 'echo >>ran'; }

@test "--once: a later run does nothing and says who did the work and when; another KEY is other work" {
  quietly work --once v1
  run -0 --separate-stderr work --once v1
  says "\"job\" was done by $(hostname) "
  [[ $stderr =~ \ (just\ now|[0-9]+s\ ago),\ at\ [0-9-]{10}T[0-9:]{8}Z\ \(took\  ]] || fail "$stderr"
  quietly work -q --once v1
  run -9 work -q --once v1 --exit-code done=9
  times 1
  quietly work --once "v 1 =%\"'"
  found_done --once "v 1 =%\"'"
  times 2
  nothing_left job
}

@test "one of 50 replicas that start together does the work, and the others continue after it" {
  local i
  mkfifo go
  local replica='
    rlock run -q --connect-timeout 30s --once v1 migrate -- sh -c "echo >>ran; read -r _ <go; echo >>finished"
    code=$?
    [ -s finished ] && echo "$code" >>went-on'
  for ((i = 0; i < 50; i++)); do
    start sh -c "$replica"
  done
  eventually waiting 49 migrate
  times 1
  [ ! -e went-on ]
  echo >go
  all_done
  times 1
  [ "$(sort went-on | uniq -c | tr -s ' ')" = " 50 0" ] || fail "$(cat went-on)"
  nothing_left migrate
}

@test "a failed run does not count as done: the next waiter does the work, then the others continue" {
  hold_with 'echo >up; read -r _ <&9; exit 3' job --once v1
  queued_work --once v1
  local second=$waiter
  queued_work --once v1
  echo 1<>go
  ends_with 3 "$holder"
  ends_with 0 "$second"
  ends_with 0 "$waiter"
  times 1
}

@test "a command that was asked to stop and exits with 0 is no success" {
  for signal in TERM INT HUP QUIT; do
    hold_with 'trap "exit 0" TERM INT HUP QUIT; echo >up; while :; do sleep 0.02; done' job --once v1 2>said
    kill "-$signal" "$holder"
    ends_with 0 "$holder"
    grep -q "rlock was asked to stop it, so its success is not recorded; it may run again" said || fail "$(cat said)"
  done
  [ "$(rlock history --json job | jq -c '[.runs[].how] | unique')" = '["stopped"]' ]
  [ "$(rlock status --json job | jq -c '.locks[0] | [.last_success, .last_failure]')" = '[null,null]' ]
  work --once v1
  times 1
}

@test "a command that exits with 0 after ^C is no success" {
  needs_terminal
  mkfifo on
  start in_terminal.py rlock run --once v1 job -- \
    sh -c 'trap "exit 0" INT; echo >"$1"; while :; do sleep 0.02; done' sh on >said </dev/null
  next_line on
  kill -USR1 $!
  ends_with 0 $!
  grep -q "asked to stop" said || fail "$(cat said)"
  work --once v1
  times 1
}

@test "--max-run, a broken lock and a missing command are no success" {
  run -124 rlock run --once v1 --max-run 0.2 job -- sh -c 'trap "exit 0" TERM; while :; do sleep 0.02; done'
  run -127 rlock run --once v1 job -- no-such-command-here
  hold job --once v1 --on-lost ignore
  rlock force-unlock --yes --now job
  let_go job
  work --once v1
  times 1
}

@test "finished work counts before a busy lock, -n, --max-queue and a cool-down" {
  work --once v1
  hold job
  found_done -n --once v1
  run -0 work --max-queue 0 --once v1
  run -75 work -n --once v2
  let_go job
  rlock run --min-hold 60 job -- true
  found_done --once v1
  times 1
}

@test "--once-per does the work once in each period; day and longer follow the local date" {
  # At every moment it is another day in these two zones.
  local period east='<+14>-14' west='<-12>12'
  for period in month week hour minute; do
    run -0 rlock run --once-per $period "per $period" -- true
  done
  export TZ=$east
  at_noon
  quietly work --once-per day
  found_done --once-per day
  export TZ=$west
  quietly work --once-per day
  times 2
}

@test "--once-per: the clock that counts is not time(2), which lags behind when a timer starts rlock at midnight" {
  at_noon
  run -0 work --once-per day
  COARSE_CLOCK_LAG=86400 found_done --once-per day
  times 1
}

@test "--once-within: runs that asked soon after the last success, or before it was granted, do nothing" {
  run -0 work --once-within 1h
  moved 1800
  run -0 work --once-within 1h
  times 1
  moved 1800
  run -0 work --once-within 1h
  times 2
  # A run that waited for it is done with it, however long ago the one that did the work began to ask.
  hold job
  queued_work --once-within 1ms
  local first=$waiter
  queued_work --once-within 1ms
  let_go job
  ends_with 0 "$first"
  ends_with 0 "$waiter"
  times 3
}

@test "--max-failures: after so many failures no run tries again, except for another KEY" {
  for i in 1 2; do
    run -3 rlock run --once v1 --max-failures 2 job -- sh -c 'exit 3'
  done
  run -75 --separate-stderr work -q --once v1 --max-failures 2
  silent
  refuses 75 "failed 2 times" '"job"' "$SERVER/s" -- work --once v1 --max-failures 2
  run -0 work --once v2 --max-failures 2
  times 1
}

@test "--once inside a run of the same NAME is an error, under another NAME it is not" {
  refuses 64 "inside a run that holds the lock" -- rlock run job -- rlock run --once v1 job -- touch started
  run -0 rlock run other -- rlock run --once v1 job -- touch inside
  [ -e inside ]
  nothing_left job
}

@test "a second TERM stops the attempts to record a success at a dead server" {
  own
  start sh -c 'exec rlock run -t 1d --event-log log --once v1 job -- sh -c '\''kill -KILL "$(cat "$1")"'\'' sh "$1" 2>said' sh "$own_server/pid"
  local rlock=$!
  eventually logged exited
  # A signal that comes with the end of the command is not counted.
  eventually asked_once "$rlock"
  sleep 0.5  # what comes before is the same request
  kill "$rlock" || true
  ends_with 0 "$rlock"
  grep -q 'a second TERM or INT stopped the attempts' said || fail "$(cat said)"
}

asked_once() {
  kill "$1"
  grep -q 'a second TERM or INT makes rlock give up' said
}

@test "--fail-open runs without the lock and without a record, and says so" {
  run -0 --separate-stderr env RLOCK_URL="unix://$here/none" rlock run --fail-open --connect-timeout 0.2 --once v1 job -- true
  [[ $stderr == *"its success will not be recorded"*"its success is not recorded; it may run again"* ]] || fail "$stderr"
}

@test "a run that finds its work done is in the history and the event log, and sends READY=1" {
  work --once v1
  : >reports
  start notify_socket.py "$here/notify" reports
  eventually grep -qF "$here/notify" /proc/net/unix
  NOTIFY_SOCKET=$here/notify work -q --event-log log --once v1
  eventually grep -q '^READY=1; STATUS="job" was done by ' reports
  [ "$(jq -r .event log)" = "done" ] || fail "$(cat log)"
  work -q --once v1
  shows 0 "2 found it done" -- rlock history job
  [ "$(rlock history --json job | jq -c '.skips | [.count, .done]')" = "[2,2]" ]
}

@test "forget: the work is done again; with --once KEY only that" {
  work --once v1
  work --once v2
  refuses 64 "--yes" '"job"' -- rlock forget job </dev/null
  refuses 64 "use --once KEY" -- rlock forget job --key v1 --yes
  run -0 rlock forget job --once v1 --yes
  [ "$output" = 'forgot that "v1" was done under "job"' ] || fail "$output"
  work --once v2
  times 2
  work --once v1
  times 3
  run -0 rlock forget job --yes --json
  [ "$(jq -c '[.name, .key]' <<<"$output")" = '["job",null]' ] || fail "$output"
  [ "$(jq .forgotten <<<"$output")" -ge 1 ]
  work --once v1
  work --once v2
  times 5
  run -0 --separate-stderr rlock forget nothing-here --yes
  [ "$output" = 'nothing was recorded under "nothing-here"' ] || fail "$output"
  run -3 rlock run --once v3 --max-failures 2 job -- sh -c 'exit 3'
  run -0 rlock forget job --once v3 --yes
  [ "$output" = 'forgot that "v3" failed under "job"' ] || fail "$output"
  run -3 rlock run --once v3 --max-failures 2 job -- sh -c 'exit 3'
  run -0 rlock forget job --yes
  rlock run --supersede=4 deploy -- true
  run -0 rlock forget deploy --yes
  [ "$output" = 'forgot the number of --supersede under "deploy"; no success was recorded' ] || fail "$output"
}

@test "forget asks on a terminal" {
  needs_terminal
  work --once v1
  run -75 in_terminal.py rlock forget job <<<n
  [[ $output == *"will forget what was done"*"nothing was changed"* ]] || fail "$output"
  run -0 in_terminal.py rlock forget job <<<y
  work --once v1
  times 2
}

@test "a record of done work names its KEY or period and the command" {
  rlock run --once v17 shop/migrate -- sh -c 'echo migrated' sh --to 17 >/dev/null
  run -0 --separate-stderr rlock run --once v17 shop/migrate -- touch started
  says '"shop/migrate" was done by' "(took " "), with the KEY \"v17\": sh -c 'echo migrated' sh --to 17"
  at_noon
  rlock run --once-per day shop/nightly -- true
  run -0 --separate-stderr rlock run --once-per day shop/nightly -- touch started
  [[ $stderr =~ "), for day "[0-9-]{10}": true; warning: " ]] || fail "$stderr"
  rlock run --once-per 6h --hide-command shop/sync -- true
  run -0 --separate-stderr rlock run --once-per 6h shop/sync -- touch started
  [[ $stderr == *"), for 6h 20"*"T12:00Z" ]] || fail "$stderr"
}

@test "work that another program did is a warning, with -q too; other arguments or another folder are none" {
  rlock run --once v17 shop/migrate -- true --to 17
  run -0 --separate-stderr rlock run -q --once v17 shop/migrate -- touch started
  says '"shop/migrate" was done by' ": true --to 17; warning: this run was to execute another program, touch, which did not run"
  quietly rlock run -q --once v17 shop/migrate -- true --to 18
  quietly rlock run -q --once v17 shop/migrate -- /bin/true
  rlock run --hide-command --once v18 shop/migrate -- true
  quietly rlock run -q --once v18 shop/migrate -- touch started
}

@test "run and acquire refuse a NAME or KEY with a variable that was not replaced; other commands accept it" {
  local text
  for text in 'shop/$(APP)' '$APP' 'a$(b)'; do
    refuses 64 "bad lock name \"$text\"" "left the variable in it as it is" -- rlock run "$text" -- touch started
    refuses 64 "bad lock name \"$text\"" -- rlock acquire --ttl 1m "$text"
    refuses 64 "bad lock name \"$text\"" -- rlock close --for 1h "$text"
    run -0 rlock status "$text"
    run -0 rlock queue "$text"
    run -0 rlock history "$text"
    run -0 rlock force-unlock --yes "$text"
    run -0 rlock open "$text"
  done
  for text in '$(RELEASE)' '$RELEASE' 'v$(RELEASE)'; do
    refuses 64 "bad KEY of --once \"$text\"" -- rlock run --once "$text" lock -- touch started
    run -0 rlock forget --yes --once "$text" lock
  done
  for text in 'shop/${APP}' 'shop/{{ app }}'; do
    refuses 64 "bad lock name" -- rlock run "$text" -- touch started
  done
  # A name with a $ inside is one, and a key of another program may have any.
  run -0 rlock run 'cost-in-$' -- true
  run -0 rlock run --format plain '$queue' -- true
}

@test "a NAME with an empty part is refused by run, acquire and close; other commands, patterns and peers take it" {
  local text
  for text in shop/ shop//nightly redis://db//x; do
    refuses 64 "bad lock name \"$text\": a part between slashes is empty" "correct the variable" -- rlock run "$text" -- touch started
    refuses 64 "bad lock name \"$text\"" -- rlock acquire --ttl 1m "$text"
    refuses 64 "bad lock name \"$text\"" -- rlock close --for 1h "$text"
    for command in status queue history "force-unlock --yes" open; do
      # shellcheck disable=SC2086 # words
      run -0 rlock $command "$text"
    done
    run -0 rlock run --format plain "$text" -- true
    run -0 rlock run --format redisson "$text" -- true
  done
  run -0 rlock run /var/lock/nightly -- true
  run -0 rlock run 'deploy https://git.example.org/shop' -- true
  rlock run --prefix shop/ nightly -- true
  rlock run shop/nightly -- true
  run -0 --separate-stderr rlock status 'shop/*'
  [[ $output == *shop/nightly* ]] || fail "$output"
  run -0 rlock close --for 1h 'shop/*'
}

@test "--once-per 15m and 6h do the work once in each part of a day, which begins at midnight in UTC" {
  at_noon
  quietly work --once-per 6h
  found_done --once-per 6h
  found_done --once-per 360m
  CLOCK_SHIFT=$((CLOCK_SHIFT - 60)) quietly work --once-per 6h
  CLOCK_SHIFT=$((CLOCK_SHIFT + 21600 - 60)) found_done --once-per 6h
  CLOCK_SHIFT=$((CLOCK_SHIFT + 21600)) quietly work --once-per 6h
  times 3
  TZ=XYZ-5:45 quietly work --once-per 15m
  found_done --once-per 15m
  CLOCK_SHIFT=$((CLOCK_SHIFT + 900)) quietly work --once-per 15m
  quietly work --once-per hour
  found_done --once-per 1h
  times 6
}

@test "--once-per day on hosts in two time zones causes a warning, even with -q, in the event log and the history" {
  at_noon
  # Europe/Berlin, without the files of tzdata.
  local berlin=CET-1CEST,M3.5.0,M10.5.0/3
  TZ=$berlin quietly work --once-per day
  TZ=$berlin run -0 --separate-stderr work -q --once-per day
  silent
  TZ=UTC0 run -0 --separate-stderr work -q --once-per day --event-log log
  says '"job" was done by' "; warning: $(hostname) has another time zone (UTC+0" ", here UTC+00:00)" "do not mean the same day"
  jq -e 'select(.event == "done") | .detail | contains("another time zone")' log
  TZ=UTC0 run -0 --separate-stderr rlock run -q --once-per day job -- touch started
  [ "$(grep -o 'warning: ' <<<"$stderr" | wc -l)" -eq 1 ] || fail "$stderr"
  says "was to execute another program, touch"
  shows 0 "[UTC+00:00]" "[UTC+0" -- rlock history job
  [[ $(rlock history --json job | jq -r '.runs[0].asked') == 20*T1*:*+0[12]:00 ]] || fail "$(rlock history --json job)"
  TZ=UTC0 quietly work --once-per 12h
  TZ=$berlin found_done --once-per 12h
  [[ $stderr != *"time zone"* ]] || fail "$stderr"
}
