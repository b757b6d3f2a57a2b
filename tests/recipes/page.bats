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

@test "catch-up: a later try does the job that failed, once a day; a try that finds it done or running succeeds" {
  recipe "A JOB THAT CATCHES UP, AS WITH ANACRON" | sed 's/^@reboot *//; s/^17 \* \* \* \* *//' >tries
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

@test "over ssh: rlock runs at the host of the job, with a terminal" {
  program bin/ssh '[ "$1 $2" = "-tt web2" ] && shift 2 && exec sh -c "$*"'
  program bin/backup.sh 'rlock status -q shop/nightly && touch ended'
  run -0 sh -c "$(recipe "OVER SSH")"
  [ -e ended ]
}

@test "several locks: the command has both; when the second stays busy, the first is released" {
  program bin/copy-database 'rlock status -q shop/db1 && rlock status -q shop/db2 && echo both'
  run -0 sh -c "$(recipe "SEVERAL LOCKS")"
  [ "$output" = both ]
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
