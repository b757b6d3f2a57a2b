#!/usr/bin/env bats
# Commands that services and proxies for Redis refuse, with their own messages.
load helpers/helpers

# picky RULE…: from now on a proxy with these rules is in front of the server; see helpers/picky_server.py.
picky() {
  picked=$((${picked:-0} + 1))
  start picky_server.py "$here/p$picked" "$SERVER/s" "$here/log$picked" "$@"
  eventually test -S "$here/p$picked"
  asked=$here/log$picked
  : >>"$asked"
  RLOCK_URL="unix://$here/p$picked"
}

direct() { RLOCK_URL="unix://$SERVER/s" "$@"; }

# asked_times [WORD]: how many commands (that begin so) have come.
asked_times() { grep -c "^[0-9.]* ${1:-}" "$asked" || true; }
asked_at_least() { [ "$(asked_times)" -ge "$1" ]; }

unknown() { echo "$1=-ERR unknown command '$1', with args beginning with: 'rlock:{lock}:holders' "; }

@test "commands that rlock can do without may be missing" {
  local word all=()
  for word in CLIENT ROLE CONFIG INFO PING SCAN; do
    picky "$(unknown "$word")"
    quietly rlock run lock -- true
    all+=("$(unknown "$word")")
  done
  picky "${all[@]}"
  quietly rlock run lock -- true
}

# front RULE…: the proxy at the socket front, in place of an earlier one.
front() {
  if [ -n "${proxy:-}" ]; then
    kill "$proxy"
    wait "$proxy" 2>/dev/null || true
  fi
  rm -f front
  start picky_server.py "$here/front" "$SERVER/s" "$here/log" "$@"
  proxy=$!
  eventually test -S front
}

@test "a run waits while a proxy does not reach its server, and says why" {
  local word reply why waits
  for word in EVALSHA AUTH; do
    for why in 'no upstream host' 'upstream failure' 'Connection refused' 'Connection timed out'; do
      reply="-ERR $why"
      front "$word=$reply" AUTH=+OK
      start env RLOCK_URL="unix://user:pw@$here/front" rlock run -w 1h lock -- touch ran 2>err
      waits=$!
      eventually grep -q "$here/front: .*$why" err
      front AUTH=+OK
      ends_with 0 "$waits"
      rm ran
    done
  done
}

# Refused, hung up on, or answered at once: a waiter that tries again and again must not load the server.
@test "a waiter that may not block asks the server at most five times a second, and keeps its position" {
  for reply in "-ERR unknown command 'blpop'" '-UNBLOCKED force unblock from blocking operation' \
    '-MOVED 3999 10.0.0.1:6379' '*-1' close; do
    picky "BLPOP=$reply"
    direct hold lock
    start rlock run lock -- sh -c 'echo 1 >>order' 2>err
    first=$!
    direct eventually waiting 1 lock
    direct start rlock run lock -- sh -c 'echo 2 >>order'
    second=$!
    direct eventually waiting 2 lock
    eventually asked_at_least 21
    awk -v reply="$reply" 'NR == 21 && $1 < 4 { print reply ": 21 commands in " $1 " s"; exit 1 }' "$asked" >&2
    let_go lock
    ends_with 0 "$first"
    ends_with 0 "$second"
    [ "$(tr -d '\n' <order)" = 12 ] || overslept
    [ "$(grep -c 'rlock: warning' err)" -eq 1 ] || fail "$reply: $(cat err) $(cat "$asked")"
    grep -q 'rlock: warning: .*lock.*once a second' err || fail "$(cat err)"
    rm order
    reset_server
  done
}

@test "a server without BLPOP or RPUSH grants a free lock, and its waiters get theirs in turn" {
  for command in BLPOP RPUSH; do
    own --rename-command "$command" ''
    quietly rlock run -n lock -- true
    hold lock
    queue_up lock -q
    let_go lock
    ends_with 0 $!
  done
}

@test "exit 78: a required command that is missing is named, and nothing is written" {
  for command in ZADD HSET LPUSH TIME; do
    own --rename-command "$command" ''
    refuses 78 lock "lacks a command"
    [[ ${stderr,,} == *": "*"${command,,}"* && $stderr != *'rlock:{'* ]] || fail "$stderr"
    [ "$(redis exists "rlock:{lock}:holders" "rlock:{lock}:queue")" -eq 0 ]
  done
}

# refused CODE TEXT REPLY: a run that gets REPLY to its scripts ends at once, with one line that has TEXT.
refused() {
  picky "EVALSHA=$3" "EVAL=$3"
  run "-$1" --separate-stderr rlock run lock -- touch started
  says lock "$2"
  [[ $stderr != *'rlock:{'* ]] || fail "$stderr"
  [ "$(asked_times EVALSHA)" -le 2 ] || fail "$(cat "$asked")"
}

@test "exit 78 and 77: a server without scripts, or that refuses them, is reported with what to do" {
  refused 78 valkey-lua "-ERR Could not find scripting engine 'lua'"
  refused 78 --lua '-ERR This instance has Lua scripting support disabled'
  refused 78 'another server' "$(unknown eval | sed 's/^eval=//')"
  refused 78 script_check_enable '-ERR bad lua script for redis cluster, all the keys that the script uses should be passed using the KEYS array'
  refused 77 evalsha "-NOPERM User u has no permissions to run the 'evalsha' command"
  refused 77 db= '-NOPERM No permissions to access database'
}

# As Valkey 9.1 without its Lua module answers.
@test "run and doctor name the module that a server without Lua lacks" {
  picky 'EVALSHA=-NOSCRIPT No matching script.' "EVAL=-ERR Could not find scripting engine 'lua'"
  refuses 78 lock valkey-lua
  run -1 rlock doctor
  [[ $output == *valkey-lua* ]] || fail "$output"
}

@test "a script that the server forgets each time is sent each time, once" {
  picky 'EVALSHA=-NOSCRIPT No matching script. Please use EVAL.'
  run -0 rlock run lock -- true
  [ "$(asked_times EVAL\ )" -eq 2 ]
  [ "$(asked_times EVALSHA)" -eq 2 ]
}

@test "exit 78: rlock reports a service with one database and acquires nothing" {
  picky "$(unknown SELECT)"
  RLOCK_URL+="?db=1" refuses 78 lock "remove database 1 from the URL"
  [ "$(asked_times EVALSHA)" -eq 0 ]
}

@test "rlock omits CLIENT for a server that closes the connection on it" {
  picky CLIENT=close
  quietly rlock run lock -- true
}

@test "rlock runs and waits through nutcracker" {
  command -v nutcracker >/dev/null || skip "nutcracker is not installed"
  cat >nutcracker.yml <<-END
	rlock:
	  listen: $here/n
	  redis: true
	  hash_tag: "{}"
	  servers:
	    - $SERVER/s:1
	END
  # Its statistics have a port that it cannot do without.
  start nutcracker -c "$here/nutcracker.yml" -o "$here/nutcracker.log" -a 127.0.0.1 -s "$(free_ports 1)" >nutcracker.out 2>&1
  eventually test -S n || fail "$(cat nutcracker.out nutcracker.log)"
  export RLOCK_URL="unix://$here/n"
  quietly rlock run lock -- true
  hold lock
  start rlock run lock -- true 2>err
  local waiter=$!
  direct eventually waiting 1 lock
  eventually grep -q 'once a second' err
  let_go lock
  ends_with 0 "$waiter"
  run -0 rlock status lock
  nothing_left lock
}

# rotate OLD NEW: the server wants NEW from each new connection; those that are there it cuts off.
rotate() {
  redis-cli -s "$SERVER/s" -a "$1" --no-auth-warning config set requirepass "$2" >/dev/null
  redis-cli -s "$SERVER/s" -a "$2" --no-auth-warning client kill type normal >/dev/null
}

# the_secret OLD: rotated in mid-run, it costs neither a lease nor a position in the queue. OPTION… say where rlock has it from.
outlives_rotation() {
  hold lock -t 12 --event-log log "$@"
  start rlock run "$@" lock -- true
  local waiter=$!
  eventually waiting_in lock
  echo new >secret
  rotate old new
  for _ in 1 2; do one_more renewed; done
  let_go lock
  ends_with 0 "$waiter"
}
waiting_in() {
  [ "$(RLOCK_PASSWORD=$(cat secret) rlock queue --json "$1" | jq '.waiters | length')" -eq 1 ]
}

@test "a password that is rotated in its file costs neither the lease nor the position in the queue" {
  own --requirepass old
  echo old >secret
  outlives_rotation --password-file secret
}

@test "a password file named by a relative path serves the process that renews, which works elsewhere" {
  own --requirepass old
  echo old >secret
  job
  rlock acquire lock --renew-while "$job" -t 1h --password-file secret >owner
  redis() { redis-cli -s "$SERVER/s" -a "$(cat secret)" --no-auth-warning "$@"; }
  eventually blocked 1
  echo new >secret
  rotate old new
  eventually blocked 1
  end_job
  RLOCK_PASSWORD=new eventually free lock
}

@test "--password-command: runs once, and again when the server refuses what it printed" {
  own --requirepass old
  echo old >secret
  export REDISCLI_AUTH=another
  outlives_rotation --password-command "echo \"\$\$ \$RLOCK_HELD \$RLOCK_PASSWORD \$REDISCLI_AUTH\" >>$here/runs; cat $here/secret"
  # Once for each rlock, and once more after the rotation.
  [ "$(wc -l <runs)" -eq 4 ] || fail "$(cat runs)"
  run ! grep -q ' .*[^ ]' runs
}

@test "a password command of a configuration file runs once, and not for what needs no server" {
  own --requirepass old
  printf 'password-command = "echo x >>%s/runs; echo old"\n' "$here" >rlock.toml
  run -0 rlock run --config "$here/rlock.toml" lock -- true
  [ "$(wc -l <runs)" -eq 1 ]
  RLOCK_PASSWORD=old run -0 rlock run --config "$here/rlock.toml" lock -- true
  [ "$(wc -l <runs)" -eq 1 ]
}

@test "a password command works even if the caller ignores SIGCHLD, which the command then ignores" {
  local rlock=(env --ignore-signal=CHLD "$RLOCK")
  own --requirepass old
  run -0 "${rlock[@]}" status --password-command 'echo old' lock
  run -0 "${rlock[@]}" run --password-command 'echo old' lock -- cat /proc/self/status
  [[ $output =~ SigIgn:.([0-9a-f]+) ]] || fail "$output"
  [ $((0x${BASH_REMATCH[1]} & 1 << ($(kill -l CHLD) - 1))) -ne 0 ] || fail "$output"
}

@test "exit 78: a password command fails, prints nothing or does not end" {
  run -78 --separate-stderr rlock run --password-command 'exit 3' lock -- touch started
  says 'exit status 3'
  run -78 --separate-stderr rlock run --password-command 'echo; echo secret' lock -- touch started
  says 'printed no password'
  run -78 --separate-stderr rlock run --password-command 'echo $$ >pid; sleep 600' lock -- touch started
  says 'did not finish within 5s'
  eventually gone "$(cat pid)"
}

# verdict CHECK: what the doctor says of one point. What is not ok comes with advice.
verdict() {
  rlock doctor --json "${@:2}" | jq -r --arg check "$1" '.servers[0].checks[] | select(.check == $check) |
    if .state == "ok" or .advice != null then .state else "\(.state) without advice" end'
}

@test "doctor reports scripts that are not atomic, a SELECT without effect, and a server that does not block" {
  picky 'EVALSHA=:5'
  [ "$(verdict scripts)" = fail ]
  picky 'SELECT=+OK'
  [ "$(verdict databases -u "$RLOCK_URL?db=1")" = warn ]
  [ -z "$(direct verdict databases -u "unix://$SERVER/s?db=1")" ]
  picky 'BLPOP=*-1'
  [ "$(verdict waiting)" = warn ]
  [ "$(verdict scripts)" = ok ]
  [ -z "$(redis --raw keys '*doctor*')" ]
}
