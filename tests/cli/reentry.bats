#!/usr/bin/env bats
load helpers/helpers

@test "runs that wait for each other report it, and status shows it" {
  local me
  me=$(id -un)@$(hostname)
  mkfifo a.go b.go
  hold_with 'echo >up; read -r _ <a.go; exec rlock run b -- true' a 2>one
  local one=$holder two
  hold_with 'echo >up; read -r _ <b.go; exec rlock run -w 10m a -- true' b 2>two
  two=$holder
  echo >a.go
  eventually waiting 1 b
  run -0 rlock status b
  [[ $output != *deadlock* ]] || fail "$output"
  [[ $(rlock doctor) == *"ok    deadlocks  "* ]] || fail "$(rlock doctor)"
  echo >b.go
  eventually grep -qE '"a" is held by '"$me"' \(pid [0-9]+\), which waits for "b", which this run, '"$me"' \(pid [0-9]+\), holds: neither of them can continue until this wait ends, in 10m; to resolve this, stop one of these runs, or break a lock: rlock force-unlock a$' two
  # If it looked too early it looks again after a minute.
  eventually grep -qE '^rlock: warning: "b" is held by [^ ]+ \(pid [0-9]+\), which waits for "a", which this run, '"$me"' \(pid [0-9]+\), holds: neither of them can continue; to resolve this, stop one of these runs, or break a lock: rlock force-unlock b$' one
  run -0 rlock status a
  [[ $output == *'deadlock "a" is held by '*', which waits for "b", which is held by '*', which waits for "a"'* ]] || fail "$output"
  rlock status --json a | jq -e '.locks[0].deadlock | startswith("\"a\" is held by ")'
  [[ $output == *"to end it, stop one of these runs, or break a lock with rlock force-unlock"* ]] || fail "$output"
  run -0 rlock status
  [ "$(grep -c '\[deadlock\]' <<<"$output")" -eq 2 ] || fail "$output"
  rlock doctor --json | jq -e '.deadlocks | .state == "warn" and (.detail | contains("(pid ")) and (.advice | contains("force-unlock"))'
  run -1 rlock doctor -q --strict
  ends_by TERM "$two"
  ends_with 0 "$one"
  [ "$(grep -c warning: one)" -eq 1 ] || fail "$(cat one)"
}

@test "acquire inside a run that holds the lock says that it waits for that run" {
  run ! --separate-stderr rlock run around -- rlock acquire around -t 1m -w 2s
  [[ ${stderr_lines[0]} =~ 'warning: "around" is held by the run around this command, '.*' (pid '[0-9]+'): rlock acquire waits until that run ends; rlock run enters the lock instead' ]] || fail "$stderr"
}

has_entries() { [ "$(about "$2" entries)" = "$1" ]; }

@test "a nested run of a held lock starts immediately, with the same owner id and token" {
  run -0 rlock run deep -- sh -c 'echo $RLOCK_OWNER $RLOCK_TOKEN; rlock run -n deep -- sh -c "echo \$RLOCK_OWNER \$RLOCK_TOKEN; rlock run deep -- sh -c \"echo \\\$RLOCK_OWNER \\\$RLOCK_TOKEN\""'
  [ "${#lines[@]}" -eq 3 ]
  [ "$(sort -u <<<"$output" | wc -l)" -eq 1 ] || fail "$output"
  nothing_left deep
}

@test "A inside B inside A re-enters A" {
  run -0 rlock run A -- rlock run B -- rlock run -n A -- rlock run -n B -- true
}

@test "-v and the event log say entered, with the outer run's owner" {
  run -0 --separate-stderr rlock run entered -- sh -c 'echo $RLOCK_OWNER; exec rlock run -v --event-log log entered -- true'
  [[ $stderr == *entered* ]] || fail "$stderr"
  [ "$(jq -r .event log | tr '\n' ' ')" = "entered exited released " ]
  [ "$(jq -r .owner log | sort -u)" = "$output" ]
}

@test "nested runs enter in parallel, and each releases only its own entry" {
  mkfifo go.1 go.2
  start rlock run siblings -- sh -c '
    for i in 1 2; do rlock run -n siblings -- sh -c "read -r _ <go.$i" & done
    wait
    rlock status --json siblings >after'
  holder=$!
  eventually has_entries 3 siblings
  echo 1 >go.1
  eventually has_entries 2 siblings
  echo 1 >go.2
  ends_with 0 "$holder"
  [ "$(jq '.locks[0].holders[0].entries' after)" = 1 ]
  nothing_left siblings
}

@test "without RLOCK_HELD a run waits like any other run" {
  run -75 rlock run strict -- env -u RLOCK_HELD rlock run -n strict -- true
  run -75 rlock run strict -- env -u RLOCK_HELD rlock run -w 0.2 strict -- true
  run -0 rlock run -s strict -- env -u RLOCK_HELD rlock run -n -s strict -- true
}

@test "an exclusive run inside a shared one is refused, because it would wait for itself" {
  run -64 --separate-stderr rlock run -s wide -- rlock run wide -- touch started
  says wide
  run -64 rlock run --slots 3 wide -- rlock run --slots 2 wide -- true
  nothing_left wide
}

@test "a shared run inside an exclusive one enters, and the lock stays exclusive" {
  run -0 --separate-stderr rlock run narrow -- rlock run -s narrow -- sh -c 'rlock status --json narrow | jq -r ".locks[0].mode"; env -u RLOCK_HELD rlock run -n -s narrow -- true; echo $?'
  [ "$output" = $'exclusive\n75' ] || fail "$output"
}

@test "after FLUSHALL a nested shared run restores the exclusive lock as exclusive" {
  own
  run -0 --separate-stderr rlock run flushed -- sh -c 'redis-cli -s "$SERVER/s" flushall >&2; rlock run -s flushed -- rlock status --json flushed'
  [ "$(jq -r '.locks[0].mode' <<<"$output")" = exclusive ] || fail "$output"
}

@test "a run with a stale RLOCK_HELD acquires the lock like any other" {
  stale=$(rlock run stale -- printenv RLOCK_HELD)
  run -0 env RLOCK_HELD="$stale" "$RLOCK" run stale -- printenv RLOCK_OWNER
  [[ $stale != *"$output"* ]]
  hold stale
  run -75 env RLOCK_HELD="$stale" "$RLOCK" run -n stale -- true
  let_go stale
}

@test "another server or prefix is another lock" {
  RLOCK_PREFIX=other: run -0 rlock run separate -- rlock run --prefix rlock: -n separate -- printenv RLOCK_HELD
  [ "$(tr ';' '\n' <<<"$output" | wc -l)" -eq 2 ]
  local first=$RLOCK_URL
  own
  run -0 env RLOCK_URL="$first" "$RLOCK" run far -- env RLOCK_URL="$RLOCK_URL" "$RLOCK" run -n far -- printenv RLOCK_HELD
  [ "$(tr ';' '\n' <<<"$output" | wc -l)" -eq 2 ]
}

@test "hostile RLOCK_HELD is ignored" {
  for text in ';;;' '%' 'a,b,c,d,e,f,g' "$(printf ',%.0s' {1..5000})" $'\x01\xff' "$SERVER/s,rlock:,bad,zz,1,1,0"; do
    RLOCK_HELD=$text run -0 rlock run bad -- true
  done
}

@test "the command of a killed nested run dies, and the outer run continues" {
  hold_with 'rlock run cut -- sh -c "echo \$PPID \$\$ >up; setsid sleep 1000; :"; echo $? >inner; rlock run cut -- true && echo fine >outer' cut
  read -r guard command <<<"$said"
  kill -KILL "$(ps -o ppid= -p "$guard" | tr -d ' ')"
  ends_with 0 "$holder"
  [ "$(cat inner)" = 137 ]
  [ "$(cat outer)" = fine ]
  eventually gone "$command"
}

@test "nothing survives a killed outer run" {
  hold_with 'rlock run lost -- rlock run other -- rlock run lost -- setsid --wait sh -c "exec 8>>alone; flock -n 8; echo \$\$ >up; sleep 1000"; :' lost
  kill -KILL "$holder"
  eventually gone "$said"
  run -0 flock -w 60 alone true
  ends_with 137 "$holder"
}

@test "--max-run of a nested run does not stop the outer command" {
  run -0 --separate-stderr rlock run limited -- sh -c 'sleep 1000 & rlock run --max-run 0.1 limited -- sleep 1000; echo $?; kill -0 $! && kill $! && echo alive'
  [ "$output" = $'124\nalive' ] || fail "$output"
}

# killed_with OPTION…: $holder is a run over a nested run, and neither command exits by TERM. What rlock says comes to the file err.
killed_with() {
  hold_with 'exec rlock run killed -- sh -c "trap \"\" TERM; echo >up; while :; do sleep 1000; done"' -k 100ms "$@" killed 2>err
}

@test "a nested run that is killed with its outer command keeps the lock, which is reported" {
  local held='the lock stays held for up to (1m|[0-9]+s), until the lease of a nested run ends; rlock force-unlock --now killed frees it now'
  killed_with --stop-after 100ms
  kill -TERM "$holder"
  ends_with 137 "$holder"
  grep -qE "^rlock: .*; warning: \"killed\" at .*: $held" err || fail "$(cat err)"
  run -75 rlock run -nq killed -- true
  run -0 rlock force-unlock --now --yes killed
  run -0 rlock run -n killed -- true
  killed_with
  start rlock force-unlock --yes killed
  ends_with 76 "$holder"
  grep -qE "^rlock: lost \"killed\" at .*; $held" err || fail "$(cat err)"
  run -0 rlock force-unlock --now --yes killed
  run -0 rlock run -n killed -- true
}

@test "a nested run that a hangup spares keeps the lock, and is not taken for a killed one" {
  hold_with 'nohup rlock run spared -- sh -c "echo \$\$ >up; exec sleep 1000" >/dev/null 2>&1 & exec sleep 1000' spared 2>err
  kill -HUP "$holder"
  ends_with 129 "$holder"
  grep -q "ignored the hang-up and keep running" err || fail "$(cat err)"
  if grep "stays held" err; then fail "$(cat err)"; fi
  run -75 rlock run -nq spared -- true
  kill "$said"
  run -0 rlock run -w 60 spared -- true
}

@test "force-unlock of a lock with a nested run stops both runs with 76" {
  for round in 1 2; do
    hold_with 'trap : TERM; rlock run both -- sh -c "echo >up; sleep 1000"; echo $? >inner; sleep 1000; :' both
    # Both listen for operators once their commands have lived for a second; before that they ask.
    [ "$round" = 1 ] || eventually blocked 2
    run -0 rlock force-unlock both --yes --reason "wrong branch"
    ends_with 76 "$holder"
    [ "$(cat inner)" = 76 ] || fail "inner: $(cat inner)"
    run -0 rlock run -w 60 both -- true
    rm inner
  done
}

@test "a nested run in the background keeps the lock after the outer run ends" {
  mkfifo up go
  run -0 rlock run kept -- sh -c 'rlock run kept -- sh -c "echo >up; read -r _ <go" >/dev/null 2>&1 3>&- 4>&- & read -r _ <up'
  held kept
  run -75 rlock run -n kept -- true
  echo 1 >go
  run -0 rlock run -w 60 kept -- true
}

@test "-n, -w and --max-queue do not affect a run that enters; a busy lock inside it does" {
  hold elsewhere
  run -0 rlock run mine -- rlock run -n --max-queue 0 mine -- true
  run -75 rlock run mine -- rlock run -n elsewhere -- true
  let_go elsewhere
}

# spelled_otherwise OUTER INNER: a run of URL INNER inside one of URL OUTER enters its lock.
spelled_otherwise() {
  RLOCK_URL=$1 run -0 rlock run alias -- sh -c 'echo "$RLOCK_OWNER $RLOCK_TOKEN"; RLOCK_URL=$1 rlock run -w 5 alias -- sh -c "echo \$RLOCK_OWNER \$RLOCK_TOKEN"' sh "$2"
  [ "${#lines[@]}" -eq 2 ]
  [ "${lines[0]}" = "${lines[1]}" ] || fail "$output"
}

@test "a nested run enters even if the server is spelled differently" {
  spelled_otherwise "unix://$SERVER/s" "unix://$SERVER/../${SERVER##*/}/s"
  nothing_left alias
  spelled_otherwise "local:$here/locks" "local:$here/locks/"
  own --bind 127.0.0.1
  port=$(open_port "$SERVER") || skip "this server opens no port while it runs"
  spelled_otherwise "redis://127.0.0.1:$port" "redis://localhost:$port"
  nothing_left alias
}

@test "a nested run enters in whatever order a quorum's servers are named" {
  quorum 3
  local -a urls
  read -ra urls <<<"$RLOCK_URL"
  spelled_otherwise "${urls[*]}" "${urls[2]} ${urls[0]} ${urls[1]}"
}

@test "a run inside a nested run of another spelling finds the lock under both, even after FLUSHALL" {
  own
  local alias="unix://$SERVER/../${SERVER##*/}/s"
  run -0 --separate-stderr rlock run two -- env RLOCK_URL="$alias" "$RLOCK" run two -- sh -c '
    redis-cli -s "$SERVER/s" flushall >&2
    echo "$RLOCK_OWNER"
    rlock run -n two -- printenv RLOCK_OWNER
    RLOCK_URL=unix://$SERVER/s rlock run -n two -- printenv RLOCK_OWNER'
  [ "${#lines[@]}" -eq 3 ]
  [ "$(sort -u <<<"$output" | wc -l)" -eq 1 ] || fail "$output"
}

@test "a stale RLOCK_HELD restores no old token and leaves no lock without a holder" {
  own
  stale=$(rlock run -t 4 over -- sh -c 'printf %s "$RLOCK_HELD"')
  last=$(rlock run over -- printenv RLOCK_TOKEN)
  redis flushall >/dev/null
  run -0 --separate-stderr env RLOCK_HELD="$stale" "$RLOCK" run over -- printenv RLOCK_TOKEN
  [ "$output" -gt "$last" ] || fail "token $output after $last"
  nothing_left over
}

@test "a nested run waits until an outer run that it cannot see restores its lease" {
  own
  hold_with 'echo "$RLOCK_HELD" >up; read -r _ <&9' unseen -t 9
  owner=$(about unseen owner)
  redis flushall >/dev/null
  # Not below the outer run: as in a container, or on another host.
  run -0 --separate-stderr env RLOCK_HELD="$said" "$RLOCK" run -n -v unseen -- printenv RLOCK_OWNER
  [ "$output" = "$owner" ] || fail "$output instead of $owner: $stderr"
  [[ $stderr == *"waiting for that run to restore it"* ]] || fail "$stderr"
  echo 1<>go
  ends_with 0 "$holder"
}

@test "a signal stops a nested run that waits for the outer lease or the server, and no entry remains" {
  own
  hold_with 'echo "$RLOCK_HELD" >up; read -r _ <&9' signalled -t 9
  kill -STOP "$holder"
  redis flushall >/dev/null
  RLOCK_HELD=$said start rlock run -v signalled -- touch started 2>err
  inner=$!
  eventually grep -q 'waiting for that run' err
  kill "$inner"
  ends_with 143 "$inner"
  kill -CONT "$holder"
  eventually held signalled
  blocked=$(redis info clients | sed -n 's/^blocked_clients:\([0-9]*\).*/\1/p')
  redis client pause 60000 WRITE >/dev/null
  RLOCK_HELD=$said start rlock run signalled -- touch started
  inner=$!
  more_blocked() { [ "$(redis info clients | sed -n 's/^blocked_clients:\([0-9]*\).*/\1/p')" -gt "$blocked" ]; }
  eventually more_blocked
  kill "$inner"
  redis client unpause >/dev/null
  ends_with 143 "$inner"
  eventually has_entries 1 signalled
  echo 1<>go
  ends_with 0 "$holder"
  nothing_left signalled
}
