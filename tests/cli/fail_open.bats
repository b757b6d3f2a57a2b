#!/usr/bin/env bats
load helpers/helpers

# Nobody listens at $nobody.
setup() {
  begin
  nobody=unix://$here/nobody
}

# warned: the lines of stderr are the warning before the command and the one after it.
warned() {
  [ "${#stderr_lines[@]}" -eq 2 ] || fail "$stderr" || return
  [[ ${stderr_lines[0]} == "rlock: warning: "*'"job"'*"$here/nobody"*"without the lock (--fail-open)" ]] || fail "$stderr" || return
  [[ ${stderr_lines[1]} == "rlock: warning: the command ran without "*'"job"'* ]] || fail "$stderr"
}

@test "69 without --fail-open; with it the command runs with a warning, and rlock exits as the command does" {
  run -69 rlock run -n -u "$nobody" job -- touch started
  run -7 --separate-stderr rlock run -u "$nobody" --fail-open job -- sh -c 'echo out; exit 7'
  [ "$output" = out ]
  warned
  # A warning is no notice: -q does not silence it.
  run -143 --separate-stderr rlock run -q -u "$nobody" --fail-open job -- sh -c 'kill -TERM $$'
  warned
}

@test "a silent server: the command starts after --connect-timeout, with -n and -w alike" {
  own
  kill -STOP "$(cat "$own_server/pid")"
  for wait in -n -w1h; do
    run -0 --separate-stderr timeout 60 rlock run --connect-timeout 300ms "$wait" --fail-open job -- \
      sh -c 'echo "${RLOCK_OWNER-none} ${RLOCK_UNLOCKED:+unlocked}"'
    [ "$output" = "none unlocked" ]
    [[ $stderr == *"without the lock"* ]]
  done
}

@test "the command has only the locks of its outer runs in its environment" {
  run -0 --separate-stderr env RLOCK_NAME=x RLOCK_OWNER=y RLOCK_TOKEN=z rlock run -u "$nobody" --fail-open job -- env
  [[ ! $output =~ RLOCK_(NAME|OWNER|TOKEN|HELD)= ]] || fail "$output"
  grep -qE '^RLOCK_UNLOCKED=[0-9a-f]{32}$' <<<"$output"
  run -0 --separate-stderr rlock run outer -- rlock run -u "$nobody" --fail-open job -- env
  grep -q '^RLOCK_HELD=.*,outer,' <<<"$output"
  run -0 --separate-stderr rlock run -u "$nobody" --fail-open job -- rlock run inner -- env
  [[ $output != *RLOCK_UNLOCKED=* ]] || fail "$output"
}

@test "--max-run stops a command without the lock and its descendants, and a missing command is 127" {
  run -124 --separate-stderr rlock run -u "$nobody" --fail-open --max-run 300ms -k 100ms job -- \
    sh -c 'setsid sleep 1000 & echo $! >pid; exec sleep 1000'
  [[ $stderr == *"--max-run"*"without the lock"* ]] || [[ $stderr == *"without the lock"*"--max-run"* ]] || fail "$stderr"
  eventually gone "$(cat pid)"
  run -127 --separate-stderr rlock run -u "$nobody" --fail-open job -- "$here/none"
  [[ ${stderr_lines[1]} == *"was not locked (--fail-open)"* ]] || fail "$stderr"
}

@test "a command that fails without the lock is reported with the processes that it left" {
  mkfifo gate
  start rlock run -u "$nobody" --fail-open --connect-timeout 0.1 job -- sh -c 'cat <gate & echo $! >left; exit 3' 2>err
  ends_with 3 "$!"
  started+=("$(cat left)")
  grep -q "\"job\": the command failed with 3 and left a process running without the lock: .*$(cat left)" err || fail "$(cat err)"
}

@test "a hangup without the lock names the processes that ignored it, and releases nothing" {
  mkfifo up gate
  start rlock run -u "$nobody" --fail-open --connect-timeout 0.1 job -- \
    sh -c 'trap "" HUP; cat <gate & trap - HUP; echo $! >up; wait' 2>err
  local unlocked=$! left
  left=$(next_line up)
  started+=("$left")
  ends_by HUP "$unlocked"
  grep -q "^rlock: \"job\": these processes ignored the hang-up .* without the lock: .*$left" err || fail "$(cat err)"
}

@test "a command without the lock loses none if it outlasts the ttl while rlock is stopped" {
  start rlock run -u "$nobody" --fail-open -t 1 --event-log log job -- sh -c 'echo $$ >pid; exec sleep 1000' 2>err
  local run=$!
  eventually test -s pid
  kill -STOP "$run"
  start sleep 1.5
  ends_with 0 $!
  # rlock passes this on, and looks at the lease before it looks at the command again.
  kill -USR1 "$run"
  kill -CONT "$run"
  ends_with 138 "$run"
  mapfile -t stderr_lines <err
  stderr=$(cat err)
  warned
  [[ $stderr != *lease* ]] || fail "$stderr"
  run ! grep -E '"lost"|"renew' log
}

@test "a refusal by a server is final: 75, 65, 77, 64, or 78" {
  hold busy
  run -75 rlock run -n --fail-open busy -- touch started
  run -75 rlock run -w 300ms --fail-open busy -- touch started
  let_go busy
  redis set 'rlock:{odd}:holders' text >/dev/null
  run -65 rlock run --fail-open odd -- touch started
  run -78 rlock run -u "$RLOCK_URL?db=999" --fail-open job -- touch started
  run -77 rlock run -u "unix://nobody:wrong@$SERVER/s" --fail-open job -- touch started
  run -64 rlock run --fail-open --ttl x job -- touch started
  RLOCK_URL='' run -78 rlock run --fail-open job -- touch started
}

# replies WORD: the test's own server answers with WORD by now.
replies() { [[ $(redis get key 2>&1) == *"$1"* ]]; }

# answered TEXT OPTION…: --fail-open starts nothing where servers answer with an error, and says which, with TEXT.
answered() {
  local text=$1
  shift
  refuses 69 '"job"' "$text" -- rlock run --connect-timeout 1s --fail-open "$@" job -- touch started
}

@test "a server that is BUSY with a script has answered, with and without a wait" {
  own --lua-time-limit 10
  start redis-cli -s "$own_server/s" eval 'while true do end' 0
  eventually replies BUSY
  answered BUSY -n
  answered BUSY -w 2
  answered BUSY --format plain -n
}

@test "a server that is LOADING its data has answered" {
  own --rdbcompression no
  redis eval 'for i = 1, 300 do redis.call("SET", i, string.rep(tostring(i), 2000)) end' 0 >/dev/null
  redis save >/dev/null
  # A moment for each key, looking up after each.
  restart --key-load-delay 50000 --loading-process-events-interval-bytes 1024
  eventually replies LOADING
  answered LOADING -n
}

@test "a replica that says READONLY or MASTERDOWN has answered" {
  # Nobody listens at port 1.
  own --replicaof 127.0.0.1 1
  refuses 78 "job" READONLY -- rlock run -n --connect-timeout 1s --fail-open job -- touch started
  redis config set replica-serve-stale-data no >/dev/null
  answered MASTERDOWN -n
}

@test "a server without room for another client has answered" {
  own --maxclients 1
  start redis-cli -s "$own_server/s" subscribe channel >full
  eventually test -s full
  answered maxclients -n
}

@test "servers of a quorum that do not count yet have answered, even if the others are silent" {
  quorum 3 --appendonly no
  answered "not counted until" -n
  signal_server STOP 3
  answered "" -n
  answered "" -n --format plain
}

@test "one answer from a quorum counts although the other servers are silent; if all are silent, nobody answered" {
  quorum 3
  rlock run warm -- true
  signal_server STOP 2 3
  answered "" -n
  answered "" -n --ttl 2s
  answered "" -n --format plain
  signal_server STOP 1
  run -0 --separate-stderr rlock run -n --connect-timeout 300ms --fail-open job -- touch ran
  [ -e ran ]
}

@test "a server that gave a waiter its position counts as answering: if it fails later, that is 69" {
  own
  hold held
  queue_up held -w 6 --fail-open -- touch started
  end_server "$own_server"
  ends_with 69 "$waiter"
}
