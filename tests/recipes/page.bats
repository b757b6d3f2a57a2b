#!/usr/bin/env bats
# Sections of rlock-recipes(7) whose commands are in no file: each is run as it is written there.
load ../cli/helpers/helpers
load example

# begin_recipe SECTION [N]: starts it.
begin_recipe() {
  local text
  text=$(recipe "$@") || return
  start sh -c "$text"
}

# line SECTION [N]: its block, as one line.
line() { recipe "$@" | sed -z 's, \\\n *, ,g'; }

@test "each block of commands of the page is run by a test" {
  local section n block missing='' first='([^ ]| [^2-9]|$)'
  while read -r n section; do
    # Its title in a test, alone for the first block. The tests of COMING FROM run all blocks of their section.
    case "$section $n" in *' 1' | 'COMING FROM '*) block=$first ;; *) block=" $n" ;; esac
    grep -qhE "\"$section\"$block|^$section/$n$" "$BATS_TEST_DIRNAME"/*.bats || missing+="$section $n; "
  done < <(awk -F '"' '/^\.SH /{ section = $2; n = 0 } /^\.nf$/ { print ++n, section }' "$BATS_TEST_DIRNAME/../../man/rlock-recipes.7")
  [ -z "$missing" ] || fail "no test runs: $missing"
}

@test "a stuck lock: the first command stops the job, the second frees the lock immediately" {
  recipe "A LOCK IS STUCK AT 3 A.M." | sed 's/ *#.*//; s/$/ --yes/' >commands
  start rlock run -q shop/nightly -- sleep 1000
  eventually held shop/nightly
  run -0 sh -c "$(sed -n 1p commands)"
  ends_with 76 $!
  rlock acquire shop/nightly --ttl 1h >/dev/null
  run -0 sh -c "$(sed -n 2p commands)"
  free shop/nightly
}

@test "after a failover: the runs that may have overlapped are in the list, and no others" {
  rlock run steady -- true
  hold_with 'exec 9<>go; echo >up; read -r _ <&9' taken
  redis del 'rlock:{taken}:'{holders,limits,who,meta} >/dev/null
  rlock run taken -- true
  echo 1<>go
  ends_with 0 "$holder"
  run -0 sh -c "$(recipe "AFTER A FAILOVER")"
  [[ ${#lines[@]} -eq 1 && $output == *" taken "*" lost "* ]] || fail "$output"
}

@test "a mail comes if a job has not run in time, and none if it has" {
  line "ALERTS" 2 | sed 's/^0 8 \* \* \* nobody //' >job
  run -2 sh job
  [[ $output == *'"shop/nightly": never held'* ]] || fail "$output"
  rlock run shop/nightly -- true
  run -0 sh job
  [ -z "$output" ] || fail "$output"
}

@test "once a day: a failed job sends a mail even if it prints nothing, the next host does it, and a skip is silent" {
  [ "$(recipe "A JOB ONCE A DAY ON TEN HOSTS" | grep -c '^MAILTO=root$')" -eq 1 ]
  line "A JOB ONCE A DAY ON TEN HOSTS" | sed -n 's/^0 3 \* \* \* //p' >job
  at_noon
  program bin/backup.sh 'exit 7'
  run -7 sh job
  [[ $output == *"on $(hostname)"*7* ]] || fail "$output"
  program bin/backup.sh 'echo >>ran'
  for _ in 1 2; do
    run -0 sh job
    [ -z "$output" ] || fail "$output"
  done
  [ "$(wc -l <ran)" -eq 1 ]
}

@test "once a day: nothing that a contained job has started outlives it" {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  program bin/import 'setsid sleep 86462 & echo >>ran'
  recipe "A JOB ONCE A DAY ON TEN HOSTS" 2 | sed 's/^5 3 \* \* \* //' >job
  run -0 sh job
  [ -e ran ]
  run ! pgrep -fx "sleep 86462"
}

@test "four test databases: a run has the first that is free" {
  program tests 'echo "$DATABASE"'
  run -0 --separate-stderr sh -c "$(recipe "A POOL OF FOUR TEST DATABASES")"
  [ "$output" = test1 ] || fail "$output $stderr"
}

@test "a program that must not run twice: what changes nothing needs no server, and all else takes the lock" {
  program real 'echo "$RLOCK_NAME: $*"'
  program bin/terraform "$(recipe "A PROGRAM THAT MUST NOT RUN TWICE AT A TIME" | sed "s,/usr/bin/terraform,$here/real,")"
  RLOCK_URL=unix://$here/none run -0 terraform plan
  [ "$output" = ": plan" ] || fail "$output"
  run -0 --separate-stderr terraform -chdir=prod apply
  [ "$output" = "shop/terraform: -chdir=prod apply" ] || fail "$output $stderr"
}

@test "the event log: a line for each event" {
  program bin/job true
  run -0 sh -c "$(recipe "THE EVENT LOG" | sed "s,/var/log/rlock/,$here/,")"
  [ "$(jq -r .event events.jsonl | tr '\n' ' ')" = "acquired exited released " ] || fail "$(cat events.jsonl)"
}

@test "alerts: the crontab line writes the metrics of each lock" {
  rlock run shop/nightly -- true
  run -0 sh -c "$(line "ALERTS" | sed "s/^\* \* \* \* \* root //; s,/var/lib/prometheus/node-exporter,$here,")"
  grep -q 'name="shop/nightly"' rlock.prom || fail "$(cat rlock.prom)"
}

@test "catch-up: a later try does the job that failed, once a day; a try that finds it done or running succeeds" {
  line "A JOB THAT CATCHES UP, AS WITH ANACRON" | sed 's/^@reboot *//; s/^17 \* \* \* \* *//' >tries
  [ "$(wc -l <tries)" -eq 2 ] || fail "$(cat tries)"
  at_noon
  program bin/report 'echo failed >>ran; exit 7'
  while read -r try; do run -7 sh -c "$try"; done <tries
  hold shop/report
  run -0 sh -c "$(tail -n 1 tries)"
  let_go shop/report
  program bin/report 'echo done >>ran'
  while read -r try; do run -0 sh -c "$try"; done <tries
  [ "$(tr '\n' ' ' <ran)" = "failed failed done " ] || fail "$(cat ran)"
}

@test "catch-up: a try at the boot waits for the network" {
  line "A JOB THAT CATCHES UP, AS WITH ANACRON" | sed -n 's/^@reboot *//; s/ -q / /; 1p' >try
  program bin/report 'echo done >>ran'
  RLOCK_URL=unix://$here/later start sh try 2>errors
  local waiter=$!
  eventually grep -qE 'for another (5m|4m5[0-9]s)' errors
  ln -s "$SERVER/s" later
  ends_with 0 "$waiter"
  [ -e ran ]
}

@test "a ping: only the run that did the job sends it, and a monitor that does not answer is no failure" {
  export PING_URL=https://ping.example.org/nightly
  program bin/curl 'echo "$*" >>pings'
  program bin/backup.sh 'exit 7'
  run -7 sh -c "$(recipe "A PING TO A MONITOR")"
  [ ! -e pings ]
  program bin/backup.sh 'echo >>ran'
  run -0 sh -c "$(recipe "A PING TO A MONITOR")"
  run -0 sh -c "$(recipe "A PING TO A MONITOR")"
  [ "$(cat pings)" = "-fsS -m 10 --retry 3 $PING_URL" ] || fail "$(cat pings)"
  reset_server
  program bin/curl 'exit 28'
  run -0 sh -c "$(recipe "A PING TO A MONITOR")"
  run -0 sh -c "$(recipe "A PING TO A MONITOR")"
  [ "$(wc -l <ran)" -eq 2 ]
}

@test "a ping: a program in between gets the command, and its exit code is the run's" {
  export UUID=8a51
  program bin/runitor 'echo "$1 $2 $3" >>pings; shift 3; "$@"; code=$?; echo "$code" >>pings; exit "$code"'
  program bin/backup.sh 'exit 7'
  run -7 sh -c "$(recipe "A PING TO A MONITOR" 2)"
  [ "$(cat pings)" = $'-uuid 8a51 --\n7' ] || fail "$(cat pings)"
}

@test "a lock that moves to another host is held there until its work is done or has failed, and by no one in between" {
  program bin/ssh '[ "$1" = web2 ] && shift && exec sh -c "$*"'
  program bin/roll-out "$(recipe "A LOCK THAT MOVES TO ANOTHER HOST" 2)"
  program bin/build true
  program bin/install-release 'rlock run -n shop/deploy -- true; [ $? -eq 75 ] && rlock status shop/deploy --json | jq ".locks[0].holders[0].left_ms" >lease'
  run -0 sh -c "$(recipe "A LOCK THAT MOVES TO ANOTHER HOST")"
  jq -e '. > 3000000' lease || fail "the lease was not extended: $(rlock status --json shop/deploy)"
  run -1 rlock status -q shop/deploy
  program bin/install-release 'exit 7'
  run -7 sh -c "$(recipe "A LOCK THAT MOVES TO ANOTHER HOST")"
  run -1 rlock status -q shop/deploy
  program bin/build false
  program bin/ssh 'touch moved'
  run -1 sh -c "$(recipe "A LOCK THAT MOVES TO ANOTHER HOST")"
  run -1 rlock status -q shop/deploy
  [ ! -e moved ]
}

@test "a lock that moves to another host is released there by a shell that a signal kills" {
  program bin/roll-out "$(recipe "A LOCK THAT MOVES TO ANOTHER HOST" 2)"
  program bin/install-release 'echo $PPID >installing; exec sleep 1000'
  start dash bin/roll-out "$(rlock acquire shop/deploy --ttl 10m)"
  local shell=$!
  eventually test -s installing
  kill -TERM "$(pgrep -P "$shell")" "$shell"
  ends_with 143 "$shell"
  free shop/deploy
}

@test "a server with tokens: when a token expires, the run and a waiter get the next one and lose nothing" {
  own
  redis acl setuser lock-user on '>old' '~*' '&*' +@all >/dev/null
  echo old >token
  mkfifo go
  program bin/redis-token "cat '$here/token'"
  program bin/backup.sh 'read -r _ <go; echo >>ran'
  begin_recipe "A SERVER WITH TOKENS"
  local first=$!
  eventually blocked 1
  begin_recipe "A SERVER WITH TOKENS"
  local second=$!
  eventually blocked 2
  echo new >token
  redis acl setuser lock-user resetpass '>new' >/dev/null
  redis client kill type normal >/dev/null
  eventually blocked 2
  for run in "$first" "$second"; do
    echo >go
    ends_with 0 "$run"
  done
  [ "$(wc -l <ran)" -eq 2 ]
}

@test "a time limit: a call that is repeated after 75 keeps its position" {
  export HOME=$here
  program deploy.sh 'echo >>ran'
  hold shop/deploy
  run -75 sh -c "$(recipe "A CALLER WITH A TIME LIMIT" | sed 's/100s/1ms/')"
  [ -s deploy.ticket ]
  let_go shop/deploy
  run -0 sh -c "$(recipe "A CALLER WITH A TIME LIMIT")"
  [ -s ran ] && [ ! -s deploy.ticket ]
}

@test "over ssh: rlock runs at the host of the job, with a terminal" {
  program bin/ssh '[ "$1 $2" = "-tt web2" ] && shift 2 && exec sh -c "$*"'
  program bin/backup.sh 'rlock status -q shop/nightly && touch ended'
  run -0 sh -c "$(recipe "OVER SSH")"
  [ -e ended ]
}

@test "several locks: the command has both; when the second stays busy, the first is released" {
  program bin/copy-database 'rlock status -q shop/db1 && rlock status -q shop/db2 && echo both'
  run -0 --separate-stderr sh -c "$(recipe "SEVERAL LOCKS")"
  [ "$output" = both ] || fail "$output $stderr"
  run -1 rlock status -q shop/db1
  run -1 rlock status -q shop/db2
  hold shop/db2
  run -75 sh -c "$(recipe "SEVERAL LOCKS" | sed 's/10m/100ms/g')"
  run -1 rlock status -q shop/db1
  let_go shop/db2
}

@test "named resources: each run has one, no two have the same, and the next run waits" {
  printf '%s\n' pixel 'galaxy 9' iphone >phones
  program bin/run-tests 'mkdir "taken $1" || exit; until [ -e go ]; do sleep 0.02; done; rmdir "taken $1"'
  for _ in 1 2 3 4; do begin_recipe "A POOL OF UNLIKE THINGS"; done
  all_taken() { [ -d "taken pixel" ] && [ -d "taken galaxy 9" ] && [ -d "taken iphone" ]; }
  eventually all_taken
  eventually waiting 1 shop/phone
  touch go
  all_done
}

@test "three starts an hour: the fourth waits until the first is an hour ago, whether the others succeeded or not" {
  program bin/fetch-report 'echo >>ran; exit 7'
  for _ in 1 2 3; do run -7 sh -c "$(recipe "AT MOST THREE STARTS AN HOUR")"; done
  begin_recipe "AT MOST THREE STARTS AN HOUR"
  waiter=$!
  eventually waiting 1 shop/api
  [ "$(wc -l <ran)" -eq 3 ]
  [ "$(rlock status --json shop/api | jq '[.locks[0].holders[] | select(.left_ms > 3000000)] | length')" -eq 3 ] || fail "$(rlock status shop/api)"
  moved 3600
  ends_with 7 "$waiter"
}

@test "worktrees: all of a repository share one server, two of them build at a time, and one has the port" {
  command -v git >/dev/null || skip "git is not installed"
  git init -q repository
  git -C repository -c user.name=a -c user.email=a@b commit -q --allow-empty -m first
  git -C repository worktree add -q ../second
  program bin/make 'echo >>"$HERE/built"'
  export HERE=$here
  for tree in repository second; do
    program "$tree/integration-tests" 'mkdir "$HERE/port" && sleep 0.1 && rmdir "$HERE/port"'
    start sh -c "cd $tree && $(recipe "MANY WORKTREES OF ONE REPOSITORY")"
  done
  all_done
  [ "$(wc -l <built)" -eq 2 ]
  RLOCK_URL=local:$here/repository/.git/rlock run -0 rlock history --json shop/port-8080
  [ "$(jq '.runs | length' <<<"$output")" -eq 2 ] || fail "$output"
}

@test "a freeze: running jobs finish, only exempt runs start, and the others start at its end" {
  job=$(recipe "FREEZE OF AN ENVIRONMENT")
  freeze=$(recipe "FREEZE OF AN ENVIRONMENT" 2)
  program deploy.sh 'echo deployed >>ran'
  program hotfix.sh 'echo fixed >>ran'
  run -0 sh -c "$job"
  hold shop/prod -s
  start sh -c "$freeze"
  local freezing=$!
  closed() { [ "$(rlock status --json shop/prod | jq -r '.locks[0].closed.reason')" = "release freeze" ]; }
  eventually closed
  joins shop/prod sh -c "$job"
  let_go shop/prod
  ends_with 0 "$freezing"
  run -0 sh -c "$(recipe "FREEZE OF AN ENVIRONMENT" 3 | head -n 1)"
  [ "$(tr '\n' ' ' <ran)" = "deployed fixed " ] || fail "$(cat ran)"
  run -0 sh -c "$(recipe "FREEZE OF AN ENVIRONMENT" 3 | tail -n 1)"
  ends_with 0 "$waiter"
  [ "$(tr '\n' ' ' <ran)" = "deployed fixed deployed " ] || fail "$(cat ran)"
}

@test "the newest ends the running preview, and an older one that is retried ends none" {
  text=$(recipe "THE NEWEST ENDS THE RUNNING ONE")
  program preview.sh 'echo "$CI_PIPELINE_IID" >>ran; exec sleep 1000'
  ran() { [ "$(tr '\n' ' ' <ran)" = "$1" ]; }
  start env CI_PIPELINE_IID=1 sh -c "$text"
  local first=$! second
  eventually ran "1 "
  start env CI_PIPELINE_IID=2 sh -c "$text"
  second=$!
  ends_with 76 "$first"
  eventually ran "1 2 "
  CI_PIPELINE_IID=1 run -75 sh -c "$text"
  rlock status -q shop/preview
  ends_by TERM "$second"
}

@test "a container: rlock runs inside, with the server's URL" {
  program bin/docker '[ "$1 $2 $3 $4 $5" = "run --rm -e RLOCK_URL shop/backup" ] && shift 5 && exec "$@"'
  program bin/backup.sh 'rlock status -q shop/nightly && echo ran'
  run -0 --separate-stderr sh -c "$(recipe "WHAT A DAEMON STARTS")"
  [ "$output" = ran ] || fail "$output $stderr"
}

@test "a migration: a replica serves after its own, one migrates at a time, and none serves if it fails" {
  text=$(recipe "A MIGRATION THAT ONE REPLICA DOES")
  program migrate 'mkdir migrating || exit 8; rlock status -q shop/migrate && echo >>migrated; rmdir migrating'
  program serve 'echo >>served'
  for _ in 1 2 3; do start sh -c "$text"; done
  all_done
  [ "$(wc -l <migrated) $(wc -l <served)" = "3 3" ] || fail "$(wc -l migrated served)"
  program migrate 'exit 7'
  run -7 sh -c "$text"
  [ "$(wc -l <served)" -eq 3 ]
}

@test "a migration that must not be repeated is done once for each release and environment, and again after a restore" {
  text=$(recipe "A MIGRATION THAT ONE REPLICA DOES" 2)
  program backfill 'echo "$ENVIRONMENT $RELEASE" >>filled'
  program serve 'echo >>served'
  export RELEASE=v1
  for ENVIRONMENT in staging prod prod; do ENVIRONMENT=$ENVIRONMENT run -0 sh -c "$text"; done
  RELEASE=v2 ENVIRONMENT=prod run -0 sh -c "$text"
  rlock forget shop/backfill-prod --once v1 --yes
  ENVIRONMENT=prod run -0 sh -c "$text"
  [ "$(tr '\n' ' ' <filled)" = "staging v1 prod v1 prod v2 prod v1 " ] || fail "$(cat filled)"
  [ "$(wc -l <served)" -eq 5 ]
}
