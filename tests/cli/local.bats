#!/usr/bin/env bats
load helpers/helpers

# `local:`: a private server of this machine, started by the first run that needs it.

# first_run: a first run has started the server in the folder locks; its pid is $pid.
first_run() {
  quietly rlock run --url "local:$here/locks" first -- true
  pid=$(local_pid "$here/locks")
  started+=("$pid")  # also where its socket is removed
}

# listening FOLDER
listening() { [ "$(redis-cli -s "$1/rlock.sock" ping)" = PONG ]; }

@test "the first run starts a server, later runs use it" {
  first_run
  run -7 rlock run --url "local:$here/locks" lock -- sh -c 'exit 7'
  [ "$(local_pid "$here/locks")" = "$pid" ]
  [ "$(stat -c %a "$here/locks")" = 700 ]
  [ "$(redis-cli -s locks/rlock.sock info server | tr -d '\r' | grep ^tcp_port:)" = tcp_port:0 ]
}

@test "the server has signals, descriptors, a session and an environment of its own" {
  RLOCK_PASSWORD=other start env --ignore-signal=USR1 --block-signal=TERM "$RLOCK" run --url "local:$here/locks" lock -- touch ready 8</dev/null
  ends_with 0 $!
  pid=$(local_pid "$here/locks")
  started+=("$pid")
  status=$(<"/proc/$pid/status")
  [[ $status =~ SigBlk:.0000000000000000 ]] || fail "$status"
  [ $((0x$(sed -n 's/^SigIgn:\t//p' <<<"$status") & 1 << ($(kill -l USR1) - 1))) -eq 0 ] || fail "$status"
  [ "$(readlink "/proc/$pid/fd/8")" != /dev/null ]
  # It does not lead its session, so that it never gets a controlling terminal.
  [ "$(ps -o sid= -p "$pid" | tr -d ' ')" != "$pid" ]
  if grep -qa ^PATH= "/proc/$pid/environ"; then fail "the caller's environment"; fi
}

@test "many first runs at the same time start one server, even after a kill, and exclude each other" {
  echo 0 >count
  for wave in 1 2; do
    for ((i = 0; i < 20; ++i)); do
      start rlock run --url "local:$here/locks" counter -- \
        sh -c 'read -r n <count; echo $((n + 1)) >count'
    done
    all_done
    [ "$(cat count)" -eq $((20 * wave)) ]
    [ "$(grep -c 'Server initialized' locks/rlock.log)" -eq "$wave" ]
    kill_local "$here/locks"
  done
}

@test "the next command restarts a killed server, where the lock is still held and tokens grow" {
  export RLOCK_URL=local:$here/locks
  first_run
  hold lock
  token=$(rlock status --json lock | jq '.locks[0].holders[0].token')
  owner=$(rlock status --json lock | jq -r '.locks[0].holders[0].owner')
  kill_local "$here/locks"
  run -0 rlock status -q lock --owner "$owner"
  run -75 rlock run -n lock -- touch started
  let_go lock
  run -0 rlock run -n lock -- sh -c 'echo "$RLOCK_TOKEN"'
  [ "$output" -gt "$token" ]
}

@test "a holder and a waiter restart a killed server, and both survive" {
  export RLOCK_URL=local:$here/locks
  first_run
  hold lock -t 8 --event-log log
  kill_local "$here/locks"
  eventually listening "$here/locks"
  queue_up lock -- touch followed
  kill_local "$here/locks"
  eventually listening "$here/locks"
  # It was renewed at the new server.
  one_more renewed
  run -75 rlock run -n lock -- touch started
  [ ! -e followed ]
  hand_over lock
  [ -e followed ]
}

@test "if the files of a running server are removed, no second server starts, and rlock names its pid" {
  export RLOCK_URL=local:$here/locks
  first_run
  hold lock -t 9 --event-log log
  # Over a connection of its own, which stays.
  eventually logged renewed
  for files in locks/rlock.sock 'locks/*' locks; do
    # shellcheck disable=SC2086 # a pattern
    rm -r $files
    # At once, not after the 10 s that a server may take to start.
    refuses 69 local: "$here/locks" "kill $pid" -- timeout 8 rlock run -n lock -- touch started
  done
  kill "$pid"
  eventually gone "$pid"
  # The holder puts its lock back at a new one.
  eventually held lock
  run -75 rlock run -n lock -- touch started
  let_go lock
}

@test "stop-local stops the server but refuses while a lock is in use, and no data is lost" {
  export RLOCK_URL=local:$here/locks
  run -0 rlock stop-local
  [ "$output" = "no server of local: was running" ]
  [ ! -e locks ]
  first_run
  hold lock
  refuses 75 "the server was not stopped" '"lock" is held by' "$(id -un)@" "sh -c" -- rlock stop-local
  queue_up lock -q
  rlock acquire other --ttl 10m >/dev/null
  refuses 75 "and 1 more: rlock status" -- rlock stop-local
  let_go lock
  rlock force-unlock other --yes
  eventually free lock
  token=$(rlock status --json lock | jq .locks[0].last_success.at)
  run -0 rlock stop-local
  [ "$output" = "stopped the server of local:" ]
  gone "$pid"
  quietly rlock stop-local -q
  [ "$(rlock status --json lock | jq .locks[0].last_success.at)" = "$token" ]
}

@test "stop-local refuses a folder that others may enter, and a server that it cannot reach" {
  mkdir -m 777 open
  chmod 777 open
  refuses 78 "chmod 700" -- rlock stop-local -u "local:$here/open"
  first_run
  rm locks/rlock.sock
  refuses 69 "kill $pid" -- rlock stop-local -u "local:$here/locks"
}

@test "a socket that nobody listens on is no server" {
  mkdir -m 700 locks
  python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("locks/rlock.sock")'
  [ -S locks/rlock.sock ]
  first_run
}

@test "rlock waits for a hanging local server at most until --connect-timeout" {
  first_run
  kill -STOP "$pid"
  refuses 69 lock "$here/locks" "timed out" -- rlock run -n --url "local:$here/locks" --connect-timeout 300ms lock -- touch started
  kill -CONT "$pid"
  run -0 rlock run --url "local:$here/locks" lock -- true
}

@test "rlock uses a server that another program started on the socket" {
  mkdir -m 700 locks
  redis-server --port 0 --unixsocket "$here/locks/rlock.sock" --save '' --daemonize yes >/dev/null 3>&- 4>&-
  eventually listening "$here/locks"
  local theirs
  theirs=$(local_pid "$here/locks")
  first_run
  [ "$pid" = "$theirs" ]
}

@test "^C and the loss of the terminal stop the run, not the server" {
  for way in USR1 KILL; do # in_terminal.py types ^C when it gets USR1
    export RLOCK_URL=local:$here/$way
    rm -f up
    mkfifo up
    start in_terminal.py \
      bash -c 'rlock run lock -- sh -c "echo >up; exec sleep 1000"; exit'
    terminal=$!
    next_line up
    pid=$(local_pid "$here/$way")
    kill "-$way" "$terminal"
    eventually free lock
    [ "$(local_pid "$here/$way")" = "$pid" ]
  done
}

@test "the folder of local: may contain blanks" {
  run -0 rlock run --url "local:$here/my locks/of today" lock -- true
}

@test "a folder that others may enter, a file and a path too long for a socket are refused" {
  mkdir -m 755 open
  RLOCK_URL=local:$here/open refuses 78 local: "$here/open" "chmod 700"
  chmod 770 open
  RLOCK_URL=local:$here/open refuses 78 local: "chmod 700"
  touch file
  RLOCK_URL=local:$here/file refuses 78 local: "not a folder"
  RLOCK_URL=local:$here/file/below refuses 78 local: "$here/file"
  RLOCK_URL=local:$here/$(printf 'x%.0s' {1..100}) refuses 78 local: "too long"
  [ -z "$(find . -name 'rlock.*')" ]
}

@test "a folder of another user is refused, to root too" {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  mkdir -m 700 theirs
  chown 65534:65534 theirs
  RLOCK_URL=local:$here/theirs refuses 78 local: "another user"
}

@test "redis-server and valkey-server are both looked for on PATH" {
  mkdir bin
  refuses 78 local: redis-server valkey-server -- env PATH="$here/bin" "$RLOCK" run --url "local:$here/locks" lock -- /bin/true
  ln -s "$(command -v redis-server)" bin/valkey-server
  run -0 env PATH="$here/bin" "$RLOCK" run --url "local:$here/locks" lock -- /bin/true
  [[ $(tr '\0' ' ' <"/proc/$(local_pid "$here/locks")/cmdline") == *valkey-server* ]]
}

@test "the message about a server that cannot start names its log" {
  program bin/redis-server 'echo "out of luck"; exit 1'
  refuses 71 local: "$here/locks/rlock.log" -- env PATH="$here/bin:$PATH" rlock run --url "local:$here/locks" lock -- touch started
  [ "$(cat locks/rlock.log)" = "out of luck" ]
}

# soft PID LIMIT, hard PID LIMIT: as /proc shows them.
soft() { sed -n "s/^$2  *\([^ ]*\) .*/\1/p" "/proc/$1/limits"; }
hard() { sed -n "s/^$2  *[^ ]* *\([^ ]*\) .*/\1/p" "/proc/$1/limits"; }

@test "the limits of the first caller do not apply to the server" {
  run -0 --separate-stderr bash -c 'ulimit -Sn 64; ulimit -St 77; ulimit -Sf 10; ulimit -Sv 4000000; ulimit -Sd 4000000
    exec nice -n 10 rlock run --url "local:$1" first -- true' bash "$here/locks"
  silent
  pid=$(local_pid "$here/locks")
  started+=("$pid")
  for limit in "Max open files" "Max cpu time" "Max file size" "Max address space" "Max data size"; do
    [ "$(soft "$pid" "$limit")" = "$(hard self "$limit")" ] || fail "$limit: $(soft "$pid" "$limit")"
  done
  [ "$(id -u)" -ne 0 ] || [ "$(ps -o ni= -p "$pid" | tr -d ' ')" -eq 0 ]
}

@test "a server that a caller with few descriptors starts has the lock of its folder" {
  run bash -c 'ulimit -Sn 12; exec rlock status --url "local:$1"' bash "$here/locks"
  pid=$(local_pid "$here/locks")
  started+=("$pid")
  [ "$(readlink "/proc/$pid/fd/3")" = "$here/locks/rlock.lock" ] || fail "$output: $(ls -l "/proc/$pid/fd")"
}

@test "a hard limit that would end the server is reported, and no server is started" {
  [ "$(hard self "Max cpu time")" = unlimited ] || skip "there is a limit on CPU time here"
  local lowly=() option
  # Root may lift even a hard limit, where it has that capability.
  [ "$(id -u)" -ne 0 ] || lowly=(setpriv --bounding-set=-sys_resource)
  for option in t f; do
    run -71 --separate-stderr "${lowly[@]}" bash -c 'ulimit "-$1" 77; exec rlock run --url "local:$2" lock -- touch started' \
      bash "$option" "$here/locks"
    says local: "ulimit -H$option"
    [ ! -S locks/rlock.sock ]
  done
  first_run
}

@test "a full disk is reported as such, and nothing is lost when there is room again" {
  mkdir small
  run -0 private_mounts '
    mount -t tmpfs -o size=2m,mode=700 tmpfs small
    export RLOCK_URL=local:$PWD/small
    before=$(rlock run -n lock -- sh -c "echo \$RLOCK_TOKEN")
    redis-cli -s small/rlock.sock shutdown nosave
    dd if=/dev/zero of=small/filler bs=64k 2>/dev/null || true
    code=0
    rlock run -n lock -- touch started 2>said || code=$?
    [ "$code" -eq 69 ]
    grep -q "^rlock: .*small: No space left on device" said
    rm small/filler
    after=$(rlock run -n lock -- sh -c "echo \$RLOCK_TOKEN")
    redis-cli -s small/rlock.sock shutdown nosave
    [ "$after" -gt "$before" ]
  '
}

@test "root's server is in /var/lib/rlock, a user's in the home of the passwd entry, whatever HOME says" {
  run -0 private_mounts '
    mount -t tmpfs -o mode=755 tmpfs /var/lib
    mount -t tmpfs -o mode=755 tmpfs /home
    cp /etc/passwd /home/passwd
    echo "locker:x:4242:4242::/home/locker:/bin/sh" >>/home/passwd
    mount --bind /home/passwd /etc/passwd
    mkdir -m 700 /home/locker
    chown 4242:4242 /home/locker
    cp "$RLOCK" /home/rlock
    cd /
    export RLOCK_URL=local: HOME=/nonexistent
    as_user="setpriv --reuid=4242 --regid=4242 --clear-groups"

    for i in 1 2 3 4 5; do
      $as_user /home/rlock run lock -- sleep 0.05 &
      /home/rlock run lock -- sleep 0.05 &
    done
    wait
    [ "$(stat -c "%u %a" /var/lib/rlock)" = "0 700" ]
    [ "$(stat -c "%u %a" /home/locker/.local/state/rlock)" = "4242 700" ]
    chmod 711 /home/locker /home/locker/.local /home/locker/.local/state
    code=0
    $as_user /home/rlock run --url local:/var/lib/rlock lock -- true 2>/home/said || code=$?
    [ "$code" -eq 78 ]
    grep -q "another user" /home/said
    for folder in /var/lib/rlock /home/locker/.local/state/rlock; do
      [ "$(grep -c "Server initialized" "$folder/rlock.log")" -eq 1 ]
      redis-cli -s "$folder/rlock.sock" shutdown nosave
    done
  '
}
