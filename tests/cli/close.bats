#!/usr/bin/env bats
# close and open: nothing is granted but with --while-closed.
load helpers/helpers

setup() { begin && reset_server; }

# open_at SERVER: of a quorum. A run that has just ended may still be there, and then the key is no sorted set.
open_at() { [ -z "$(at_server "$1" redis zscore 'rlock:{job}:holders' '~closed')" ]; }

closed() { rlock status --json "$1" | jq -e '.locks[0].closed' >/dev/null; }

@test "while a lock is closed nothing runs, and every run shows until when, by whom and why" {
  run -0 --separate-stderr rlock close deploy --for 2h --reason 'database upgrade'
  until=$(rlock status --json deploy | jq -r '.locks[0].closed.until | sub("\\.[0-9]+Z"; "Z")')
  said="closed until $until by $(id -un)@$(hostname): database upgrade"
  [ "$output" = "closed \"deploy\" until $until" ] || fail "$output"
  run -75 --separate-stderr rlock run -n deploy -- touch started
  says "\"deploy\" at $SERVER/s is $said; see rlock status deploy, and to open it: rlock open deploy"
  run -9 rlock run -n -E 9 deploy -- touch started
  run -75 --separate-stderr rlock run -w 10ms deploy -- touch started
  says "did not open within" "$said" "to open it: rlock open deploy"
  run -75 --separate-stderr rlock run --verbose -w 10ms deploy -- touch started
  [[ $stderr == *"waiting for \"deploy\", 1st in line: $said"* ]] || fail "$stderr"
  run -0 rlock status deploy
  [[ $output == "deploy: closed, 0 waiting"*"closed   ${said#closed }; closed "*", at 20"*"; to open it: rlock open deploy"* ]] || fail "$output"
  run -0 rlock force-unlock --yes deploy
  [ "$output" = "no run holds \"deploy\", but it is $said; to open it: rlock open deploy" ] || fail "$output"
  [[ $(rlock status --json deploy | jq -r '.locks[0].closed.since') == 20* ]]
  run -0 rlock status
  [[ $output == *deploy*closed*"database upgrade"* ]] || fail "$output"
  run -1 rlock status -q deploy
  run -0 rlock queue deploy
  [[ $output == *"$said"* ]] || fail "$output"
  run -75 --separate-stderr rlock acquire -n --ttl 1m --json deploy
  jq -e '.error | (has("holder") | not) and .closed.reason == "database upgrade"' <<<"$output"
  # The client chose the end before the server noted the start, and no row says 1h59m.
  rlock close later --for 2h
  [[ $(rlock history later) == *" 2h "*" closed "* ]] || fail "$(rlock history later)"
}

@test "open serves the first waiter, and succeeds for a lock that is already open" {
  rlock close -q deploy --for 1h
  queue_up deploy
  run -0 rlock open deploy
  [ "$output" = 'opened "deploy"' ]
  ends_with 0 "$waiter"
  run -0 rlock open deploy
  [ "$output" = '"deploy" is already open' ]
  run -1 rlock status -q deploy
}

@test "close with a pattern that no lock matches closes nothing and exits with 64" {
  rlock run prod-db -- true
  refuses 64 '"prdo-*"' "nothing was closed" -- rlock close prod-db 'prod-*' 'prdo-*' --for 1h
  run -1 closed prod-db
  run -0 rlock open 'prdo-*'
}

@test "a closure ends by itself" {
  rlock close -q deploy --for 1h
  queue_up deploy
  moved 3600
  ends_with 0 "$waiter"
  run -1 closed deploy
}

@test "a holder and its nested runs keep running after close, which lists them; -w waits for their end" {
  hold deploy -t 8s --event-log log
  run -0 rlock close deploy --for 1h
  [[ $output == *'keeps running: held by'* ]] || fail "$output"
  one_more renewed
  run -75 --separate-stderr rlock close deploy --for 1h -w 1s
  says '"deploy" is closed, but after 1s (--wait) it is still held by'
  says 'wait for longer, or stop this run: rlock force-unlock deploy'
  closed deploy
  start rlock close -q deploy --for 1h -w 60s
  local closer=$!
  let_go deploy
  ends_with 0 "$closer"
  closed deploy
  rlock open deploy
  run -0 rlock run deploy -- sh -c 'rlock close -q deploy --for 1h && rlock run deploy -- echo nested'
  [ "$output" = nested ] || fail "$output"
}

@test "close -w does not wait for a cool-down, in which nothing runs" {
  run -0 rlock run --min-hold 10m cooling -- true
  run -75 rlock run -n cooling -- true
  run -0 rlock close -q cooling --for 1h -w 1s
}

@test "close -w exits with 75 if the lock was opened or closed again before all runs had ended" {
  hold deploy
  start rlock close deploy --for 1h -w 60s 2>err
  local closer=$!
  eventually closed deploy
  rlock open -q deploy
  ends_with 75 "$closer"
  grep -q 'someone else changed the closure of "deploy": it is open' err || fail "$(cat err)"
  run -75 --separate-stderr rlock close --json deploy --for 1s -w 60s
  says 'it is open'
  [ "$(jq -r '.error.kind' <<<"$output")" = busy ] || fail "$output"
  start rlock close deploy --for 1h -w 60s 2>err
  closer=$!
  eventually closed deploy
  rlock close -q deploy --for 2h --reason 'somebody else'
  ends_with 75 "$closer"
  grep -q 'someone else changed the closure of .*: closed until .*: somebody else' err || fail "$(cat err)"
  let_go deploy
}

@test "a run with --while-closed goes before the waiters, but waits for a holder" {
  rlock close -q deploy --for 1h
  queue_up deploy
  run -0 rlock run -n --while-closed deploy -- echo passed
  [ "$output" = passed ]
  owner=$(rlock acquire -n --ttl 1m --while-closed deploy)
  run -75 --separate-stderr rlock run -n --while-closed deploy -- true
  says 'is busy: held by'
  rlock release deploy --owner "$owner"
  waiting 1 deploy
  rlock open -q deploy
  ends_with 0 "$waiter"
}

@test "no run joins the slots or shared holders of a closed lock, and all that fit run after its end" {
  hold pool --slots 3
  rlock close -q pool --for 1h
  run -75 rlock run -n --slots 3 pool -- true
  run -75 rlock run -n -s pool -- true
  run -0 rlock run -n --slots 3 --while-closed pool -- sh -c 'echo "$RLOCK_SLOT"'
  [ "$output" = 2 ] || fail "$output"
  [ "$(rlock status --json pool | jq '.locks[0].holders | length')" -eq 1 ]
  let_go pool
}

@test "finished work counts as done while the lock is closed" {
  rlock run --once v1 job -- true
  rlock close -q job --for 1h
  run -0 --separate-stderr rlock run --once v1 job -- touch started
  says 'was done by'
}

@test "closing again replaces end and reason and shows the old ones, for several names and patterns" {
  rlock run prod-a -- true
  rlock run prod-b -- true
  rlock close -q prod-a --for 1h --reason one
  before=$(rlock status --json prod-a | jq -r '.locks[0].closed.until | sub("\\.[0-9]+Z"; "Z")')
  run -0 rlock close 'prod-*' --for 2h --reason two
  [[ $output == *'closed again: "prod-a" until '*"  it was closed until $before by $(id -un)@$(hostname): one"*'closed "prod-b"'*'2 locks were closed; a lock that is first used later is open' ]] ||
    fail "$output"
  [ "$(rlock status --json prod-a | jq -r '.locks[0].closed.reason')" = two ]
  run -0 rlock open prod-a prod-b
  run -0 rlock run -n prod-a -- true
}

@test "with a pattern, the locks that were as asked before share a line" {
  for name in shop-a shop-b shop-c; do rlock run "$name" -- true; done
  rlock close -q shop-a --until "$(date -ud '+1 hour' +%FT%TZ)"
  until=$(date -ud '+2 hours' +%FT%TZ)
  run -0 rlock close 'shop-*' --until "$until"
  [[ $output != *already* ]] || fail "$output"
  run -0 rlock close 'shop-*' --until "$until"
  [ "$output" = '3 locks were already closed until then
3 locks were closed; a lock that is first used later is open' ] || fail "$output"
  rlock open -q shop-a shop-b
  run -0 rlock open 'shop-*'
  [ "$output" = 'opened "shop-c"
2 locks were already open' ] || fail "$output"
  run -0 rlock open shop-a
  [ "$output" = '"shop-a" is already open' ] || fail "$output"
}

@test "--until takes a time of day, a date, and UTC" {
  TZ=UTC-2 rlock close -q one --until "$(TZ=UTC-2 date -d '+90 minutes' +%H:%M)"
  left() { rlock status --json "$1" | jq '.locks[0].closed.left_ms / 60000 | floor'; }
  [ "$(left one)" -ge 88 ] && [ "$(left one)" -le 90 ] || fail "$(left one)"
  rlock close -q two --until "$(date -u -d '+2 days' +%Y-%m-%dT%H:%M:%SZ)"
  [ "$(left two)" -ge 2878 ] && [ "$(left two)" -le 2880 ] || fail "$(left two)"
}

@test "force-unlock, history, metrics and check show that a lock is closed" {
  rlock run deploy -- true
  rlock close -q deploy --for 1h --reason why
  run -0 rlock force-unlock deploy --yes
  closed deploy
  run -0 rlock check deploy --within 1ms
  [[ $output == *'OK - "deploy": closed until'* ]] || fail "$output"
  run -0 rlock metrics deploy
  [[ $output == *'rlock_closed{name="deploy"} 1'* && $output == *'rlock_holders{name="deploy"} 0'* ]] || fail "$output"
  rlock open -q deploy --reason finished
  run -2 rlock check deploy --within 1ms
  run -0 rlock history deploy
  [[ $output == *opened*finished*closed*why* ]] || fail "$output"
  [ "$(rlock history --json deploy | jq -c '[.closings[].reason]')" = '["finished","why"]' ]
  run -0 rlock history
  [[ $output == *opened* ]] || fail "$output"
}

# close_at CODE SOCKET RULE…: `rlock close deploy` ends so over a proxy with these rules.
close_at() {
  local code=$1 socket=$2
  shift 2
  start picky_server.py "$here/$socket" "$SERVER/s" "$here/$socket.log" "$@"
  eventually test -S "$socket"
  run "-$code" --separate-stderr rlock close -u "unix://$here/$socket" deploy --for 1h
}

# bats test_tags=one_program
@test "close without an answer exits with 69 and says whether the lock may be closed" {
  close_at 0 all
  # It looks before it closes.
  local look close
  read -r look close _ < <(awk '$2 == "EVALSHA" && !seen[$3]++ { printf "%s ", $3 } END { print "" }' all.log)
  close_at 69 none "EVALSHA ${look^^}=close"
  [[ $stderr != *'may be closed'* ]] || fail "$stderr"
  close_at 69 some "EVALSHA ${close^^}=close"
  says '"deploy" may be closed: check with rlock status --url unix://'"$here/some deploy"
  own --maxmemory 1
  run -69 --separate-stderr rlock close deploy --for 1h
  says OOM '"deploy" was not closed'
  run -1 closed deploy
}

# closed_by USER DUR: as if that user had closed the lock `deploy` for so long.
closed_by() {
  rlock close -q deploy --for "$2" --replace
  local line
  line=$(redis --raw hget 'rlock:{deploy}:who' '~closed')
  redis hset 'rlock:{deploy}:who' '~closed' "${line//$(id -un)/$1}" >/dev/null
}

@test "close does not shorten the closure of another user without --replace, and closes the other names" {
  closed_by alice 2h
  rlock run other -- true
  run -75 --separate-stderr rlock close deploy other --for 1h
  says '"deploy" stays closed until' "by alice@$(hostname)" "add --replace"
  [[ $output == 'closed "other" until '* ]] || fail "$output"
  closed other
  rlock open -q other
  run -75 --separate-stderr rlock close -q '*' --for 1h
  says '"deploy" stays closed until'
  closed other
  run -0 rlock close deploy --for 3h
  closed_by alice 2h
  run -0 rlock close deploy --for 1h --replace
  # Everybody may shorten a closure of their own.
  run -0 rlock close deploy --for 30m
  rlock open -q deploy
}

@test "a quorum: a lock is closed at a majority, although two of five servers are down" {
  quorum 5
  rlock run job -- true
  signal_server KILL 4
  signal_server KILL 5
  run -0 rlock close job --for 1h
  [[ $output == *'on 3 of 5 servers; an outage of one of them opens the lock'* ]] || fail "$output"
  run -75 rlock run -n job -- touch started
  run -0 rlock status job
  [[ $output == *'on 3 of 5 servers'* ]] || fail "$output"
  run -0 rlock open job
  # A server that was slow to learn the scripts may have missed the end of the first run, and keeps it for a lease.
  run -0 rlock run -w 60s job -- true
}

# A server that is slow to show what it has is not closed; then there is nothing to open again.
closes_too_few() {
  run -69 --separate-stderr rlock close job --for 1h
  [[ $stderr == *"closed on only 1 of 3 servers, 2 required: only 1 of 3 servers available"*'opened again: '* ]]
}

@test "a quorum: if too few servers can close the lock, they open it again" {
  quorum 3
  rlock run job -- true
  for i in 2 3; do at_server "$i" redis config set maxmemory 1; done
  eventually closes_too_few
  at_server 2 redis config set maxmemory 0
  signal_server KILL 3
  at_server 1 redis config set maxmemory 1
  eventually closes_too_few
  at_server 1 redis config set maxmemory 0
  run -0 rlock run -w 60s job -- true
  for i in 1 2; do eventually open_at "$i"; done
}

# A server that answers a tenth of a second after the others is left out.
closed_at_all() { rlock close -q job --for 1h && [ "$(rlock status --json job | jq '.locks[0].closed.servers')" = 3 ]; }
shows_where() { [[ $(rlock status job) == "job: free, "*"on 1 of 3 servers"* ]]; }

@test "a quorum: an older closure at one server is replaced, and opened with the others" {
  quorum 3
  RLOCK_URL="unix://$quorum_folder/1/s" rlock close -q job --for 2h
  run -0 rlock run -w 60s job -- true
  eventually closed_at_all
  run -0 rlock close job --for 1h
  [[ $output == *'on 3 of 3 servers'$'\n'* || $output == *'on 2 of 3 servers; an outage'* ]] || fail "$output"
  run -75 rlock run -n job -- true
  run -0 rlock open job
  run -0 rlock run -w 60s job -- true
}

@test "a quorum: a lock that one of three servers has closed is open, and status says where it is closed" {
  quorum 3
  RLOCK_URL="unix://$quorum_folder/1/s" rlock close -q job --for 2h
  eventually shows_where
  run -0 rlock metrics job
  [[ $output == *'rlock_closed{name="job"} 0'* ]] || fail "$output"
}
