#!/usr/bin/env bats
# A run that may wait for the lock waits for the server, too.
load helpers/helpers

# away: the test's own server is gone.
away() {
  own
  end_server "$own_server"
}

# passed DUR: for so long no server answers, by a run that tries for DUR.
passed() {
  local code=0
  rlock run -q -n --connect-timeout "$1" clock -- true 2>/dev/null || code=$?
  [ "$code" -eq 69 ] || fail "exit code $code"
}

# waits OPTION…: a run that waits for the server, and has said so.
waits() {
  : >err
  start rlock run "$@" shop/job -- sh -c 'echo ran >>ran' 2>err
  waiter=$!
  eventually grep -q '^rlock: waiting for "shop/job", for another ' err
}

# hosts N OPTION…: starts the line of N hosts' crontabs.
hosts() {
  local count=$1 i
  shift
  pids=()
  for ((i = 0; i < count; i++)); do
    start rlock run -q "$@" shop/job -- sh -c 'echo "$$" >>ran' 2>>err
    pids+=($!)
  done
}

all_end_with() {
  local pid
  for pid in "${pids[@]}"; do ends_with "$1" "$pid" || return; done
}

@test "after an outage of 5 s exactly one of twenty hosts does the job of the day, with and without -w" {
  local options
  for options in "" "-w 1m"; do
    away
    rm -f ran
    # shellcheck disable=SC2086 # two words
    hosts 20 --once-per day $options
    passed 5s
    restart
    all_end_with 0
    [ "$(wc -l <ran)" -eq 1 ] || fail "$(cat ran)"
    [ ! -s err ] || fail "$(cat err)"
  done
}

@test "a run that waits for a server says why it does not answer, as soon as that is known, and once" {
  port=$(open_port "$SERVER")
  run -69 --separate-stderr rlock run -w 4500ms --connect-timeout 1500ms -u "rediss://127.0.0.1:$port" shop/job -- touch started
  [ "${#stderr_lines[@]}" -eq 3 ] || fail "$stderr"
  [[ ${stderr_lines[0]} == *"127.0.0.1:$port has not answered so far" ]] || fail "$stderr"
  [[ ${stderr_lines[1]} == *'waiting for "shop/job", for another '*'connected, but no TLS handshake; is this a port without TLS?'* ]] || fail "$stderr"
}

@test "a waiter that has reported an outage says when it is over" {
  own --appendonly yes
  hold shop/job -t 10m
  start rlock run shop/job -- true 2>err
  waiter=$!
  eventually grep -q '^rlock: waiting for "shop/job", 1st in line' err
  end_server "$own_server"
  eventually grep -q '^rlock: waiting for "shop/job", for another ' err
  restart --appendonly yes
  eventually grep -q '^rlock: "shop/job": connected to .* again$' err
  let_go shop/job
  ends_with 0 "$waiter"
}

@test "after a short outage one of twenty hosts with -n runs the job" {
  away
  hosts 20 -n --connect-timeout 1m --once-per day
  passed 1500ms
  restart
  local pid code codes=
  for pid in "${pids[@]}"; do
    code=0
    wait "$pid" || code=$?
    codes+="$code "
  done
  [[ $codes =~ ^((0|75)\ )+$ ]] || fail "$codes"
  [ "$(wc -l <ran)" -eq 1 ] || fail "$(cat ran)"
}

@test "a line says after a second why rlock waits and for how long, and a second line that it has the lock" {
  away
  waits -w 1h
  grep -qE "^rlock: waiting for \"shop/job\", for another (59m|1h) at most: cannot connect to $own_server/s: Connection refused\$" err ||
    fail "$(cat err)"
  restart
  ends_with 0 "$waiter"
  grep -q '^rlock: acquired "shop/job" after ' err || fail "$(cat err)"
  [ "$(wc -l <err)" -eq 2 ] || fail "$(cat err)"
  [ -e ran ]
}

# vanishes TEXT: a server on the socket `front` that accepts one connection, answers each request with TEXT and is gone without closing
# the connection. The server of the file takes its place.
vanishes() {
  ln -sfn "$SERVER/s" healthy
  start /usr/bin/python3 -c 'import os, socket, sys, time
with socket.socket(socket.AF_UNIX) as server:
    server.bind("new")
    server.listen()
    os.replace("new", "front")
    peer = server.accept()[0]
    os.replace("healthy", "front")
    if sys.argv[1]:
        peer.recv(65536)
        peer.sendall(sys.argv[1].encode() + b"\r\n")
    time.sleep(1000)' "$1"
  eventually test -S front
}

@test "with a long --connect-timeout a run gets over a server that accepted the connection and vanished" {
  local reply waiters=()
  for reply in "" "+OK"; do
    mkdir "after$reply"
    cd "after$reply"
    vanishes "$reply"
    start rlock run -q --connect-timeout 1h -u "unix://$PWD/front" "vanished$reply" -- touch ran
    waiters+=($!)
    cd "$OLDPWD"
  done
  eventually test -e after/ran
  eventually test -e after+OK/ran
  ends_with 0 "${waiters[0]}"
  ends_with 0 "${waiters[1]}"
}

@test "acquire waits for the server, and so does a nested run" {
  away
  start rlock acquire shop/steps --ttl 1m >owner 2>err
  waiter=$!
  eventually grep -q '^rlock: waiting for "shop/steps"' err
  restart
  ends_with 0 "$waiter"
  rlock release shop/steps --owner "$(cat owner)"
  : >err
  rlock run -t 10m shop/outer -- sh -c 'kill -KILL "$1"; rlock run shop/outer -- touch entered 2>err & wait' sh "$(cat "$own_server/pid")" &
  waiter=$!
  started+=("$waiter")
  eventually grep -q '^rlock: waiting for "shop/outer"' err
  restart
  ends_with 0 "$waiter"
  [ -e entered ]
}

@test "TERM and INT stop the wait for a server" {
  for signal in TERM INT; do
    away
    waits
    ends_by "$signal" "$waiter"
    [ ! -e ran ]
  done
}

@test "the service manager shows that rlock waits for the server, even with -q" {
  away
  export NOTIFY_SOCKET=$here/notify
  : >reports
  start notify_socket.py "$NOTIFY_SOCKET" reports
  eventually grep -qF "$NOTIFY_SOCKET" /proc/net/unix
  start rlock run -q shop/job -- true 2>err
  waiter=$!
  eventually grep -q 'STATUS=waiting for "shop/job": .*Connection refused.*EXTEND_TIMEOUT_USEC=' reports
  restart
  ends_with 0 "$waiter"
  eventually grep -q 'READY=1' reports
  [ ! -s err ] || fail "$(cat err)"
}

@test "69 at the end of --wait, with what makes rlock try for longer; 75 if the lock was busy" {
  away
  refuses 69 "rlock tried for 2s" "--connect-timeout 1m" "rlock doctor" -- rlock run -n shop/job -- touch started
  refuses 69 "rlock tried for 2s" "--connect-timeout 1m" -- rlock status
  refuses 69 "rlock tried for 2s" "a longer --wait" -- rlock run -q -w 2 shop/job -- touch started
  own --maxmemory 1
  refuses 69 "'maxmemory'; rlock tried for 2s" -- rlock run -n shop/job -- touch started
  restart
  hold job
  run -75 rlock run -w 0.5 job -- touch started
  [[ $output == *"still busy after "*" (--wait)"* ]] || fail "$output"
  let_go job
}

# gets_over BREAK MEND TEXT: a run waits while the server is broken, and says so with TEXT.
gets_over() {
  own
  eval "redis $1" >/dev/null
  waits
  grep -q "$3" err || fail "$(cat err)"
  eval "redis $2" >/dev/null
  ends_with 0 "$waiter"
}

@test "a server that cannot work now is waited for: OOM, too few replicas, a replica" {
  gets_over "config set maxmemory 1" "config set maxmemory 0" OOM
  gets_over "config set min-replicas-to-write 1" "config set min-replicas-to-write 0" NOREPLICAS
  gets_over "replicaof 127.0.0.1 1" "replicaof no one" READONLY
}

@test "a disk that refuses to save, and a busy script, are waited for" {
  own --save '3600 1000' --stop-writes-on-bgsave-error yes --lua-time-limit 10
  mkdir "$own_server/dump.rdb"
  redis set x 1 >/dev/null
  redis bgsave >/dev/null
  eventually eval '[[ $(redis set y 1 2>&1) == *MISCONF* ]]'
  waits
  grep -q MISCONF err || fail "$(cat err)"
  redis config set stop-writes-on-bgsave-error no >/dev/null
  ends_with 0 "$waiter"
  start redis-cli -s "$own_server/s" eval 'while true do end' 0
  eventually eval '[[ $(redis get x 2>&1) == *BUSY* ]]'
  waits
  grep -q BUSY err || fail "$(cat err)"
  redis script kill >/dev/null
  ends_with 0 "$waiter"
}

@test "a server that is full is waited for" {
  own --maxclients 1
  start redis-cli -s "$own_server/s" subscribe channel >full
  local full=$!
  eventually test -s full
  waits
  grep -q 'too many clients' err || fail "$(cat err)"
  ends_by TERM "$full"
  ends_with 0 "$waiter"
}

@test "an error that only a person can fix ends the wait immediately" {
  own --requirepass canary
  refuses 77 NOAUTH -- timeout 30 "$RLOCK" run shop/job -- touch started
  RLOCK_URL="unix://:wrong@$own_server/s" refuses 77 WRONGPASS -- timeout 30 "$RLOCK" run shop/job -- touch started
  RLOCK_URL="unix://:canary@$own_server/s?db=99" refuses 78 "database 99" -- timeout 30 "$RLOCK" run shop/job -- touch started
}

@test "a wait that meets only a replica is a configuration error: 78" {
  own --replicaof 127.0.0.1 1
  refuses 78 READONLY "give the URL of the master" -- rlock run -q -w 2 shop/job -- touch started
  refuses 78 READONLY "give the URL of the master" -- rlock run -n shop/job -- touch started
  refuses 78 READONLY "give the URL of the master" -- rlock close --for 1h shop/job
}

@test "a quorum is waited for like a single server" {
  quorum 3
  rlock run warm -- true
  signal_server KILL 2 3
  waits
  grep -q 'only 1 of 3 servers available' err || fail "$(cat err)"
  serve "$quorum_folder/2" --appendonly yes --appendfsync always
  ends_with 0 "$waiter"
  [ -e ran ]
}

@test "--fail-open=DUR waits DUR for the server, then runs the command without the lock" {
  away
  waits --fail-open=8s
  ends_with 0 "$waiter"
  grep -q 'running without the lock (--fail-open)' err || fail "$(cat err)"
  rm ran
  waits --fail-open=1h -n
  restart
  ends_with 0 "$waiter"
  run ! grep 'without the lock' err
  refuses 64 '--fail-open must be longer than 0' -- rlock run --fail-open=0 shop/job -- touch started
}

@test "--fail-open no longer applies once a server has answered, and the run waits for the server" {
  own --lua-time-limit 10
  start redis-cli -s "$own_server/s" eval 'while true do end' 0
  eventually eval '[[ $(redis get x 2>&1) == *BUSY* ]]'
  waits --fail-open=4s
  end_server "$own_server"
  passed 6s
  [ ! -e ran ]
  restart
  ends_with 0 "$waiter"
  run ! grep 'without the lock' err
  [ -e ran ]
}

@test "a name that does not exist is an error of the configuration: 78, and --fail-open runs nothing" {
  [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || skip "needs root"
  echo 'hosts: files' >nsswitch.conf
  unknown() { unshare -m sh -c 'mount --bind nsswitch.conf /etc/nsswitch.conf && exec "$RLOCK" "$@"' sh "$@"; }
  export -f unknown
  RLOCK_URL=redis://nobody.test refuses 78 nobody.test "correct the host name in the URL" -- unknown run -n shop/job -- touch started
  RLOCK_URL=redis://nobody.test refuses 78 nobody.test -- unknown run -q -w 1 --connect-timeout 1s --fail-open shop/job -- touch started
  RLOCK_URL=redis://nobody.test refuses 78 nobody.test -- unknown status
  # With another cause it may pass.
  RLOCK_URL=redis+cluster://nobody.test,127.0.0.1:1 refuses 69 "rlock tried for" -- unknown run -nq shop/job -- touch started
}
