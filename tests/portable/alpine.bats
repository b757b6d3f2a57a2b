#!/usr/bin/env bats
# The portable rlock in a root folder like Alpine's: busybox, /proc, and no glibc.
load ../cli/helpers/helpers

setup_file() { :; }
teardown_file() { :; }

setup() {
  begin
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  unshare -mpuf true 2>/dev/null || skip "this machine refuses new namespaces"
  local busybox
  busybox=$(command -v busybox) || skip "busybox is not installed"
  ! ldd "$busybox" >/dev/null 2>&1 || skip "$busybox needs glibc: install busybox-static"
  mkdir -p root/bin root/usr/local/bin root/proc root/dev root/tmp
  cp "$busybox" root/bin
  cp "$RLOCK" root/usr/local/bin
  mknod -m 666 root/dev/null c 1 3
  chroot root /bin/busybox --install -s /bin
  cat >root/words <<'END'
# gone PID…: until each is dead, or dead but for its parent.
gone() {
  for pid; do
    tries=1200
    while state=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) && [ "${state%% *}" != Z ]; do
      tries=$((tries - 1))
      [ $tries -gt 0 ] || { echo "$pid lives" >&2; return 1; }
      sleep 0.05
    done
  done
}

# tree: a command with a descendant in a session of its own, and without its environment; their pids are in /tmp/pids.
tree() {
  env -i setsid sleep 1000 &
  echo "$! $$" >/tmp/new
  mv /tmp/new /tmp/pids
  exec sleep 1000
}

pids() {
  until [ -s /tmp/pids ]; do sleep 0.05; done
  cat /tmp/pids
}
END
  serve "$BATS_TEST_TMPDIR/root/redis"
}

teardown() {
  end_started
  [ ! -e "$BATS_TEST_TMPDIR/root/redis/pid" ] || end_server "$BATS_TEST_TMPDIR/root/redis"
}

# inside TEXT: a script there, as process 1 of its own; all that it started ends with it.
inside() {
  unshare --mount --propagation private --pid --fork --kill-child sh -ec 'mount -t proc proc root/proc
    exec chroot root /bin/env -i PATH=/usr/local/bin:/bin RLOCK_URL=unix:///redis/s RLOCK_CONFIG=/dev/null /bin/sh -euc ". /words; $1"' \
    sh "$1" 3>&- 4>&-
}

@test "a run waits, runs its command and releases the lock in a root of busybox" {
  run -0 inside 'rlock run nightly -- sh -c "echo token \$RLOCK_TOKEN"; rlock run nightly -c "echo shell text"'
  [[ "${lines[0]}" =~ ^token\ [0-9]+$ && "${lines[1]}" = "shell text" ]] || fail "$output"
  run -7 inside 'rlock run nightly -- sh -c "exit 7"'
  run -75 inside 'rlock run nightly -- env -u RLOCK_HELD rlock run -n nightly -- true'
  run -124 inside 'rlock run --max-run 0.2 nightly -- sleep 1000'
  run -0 inside 'owner=$(rlock acquire nightly --ttl 1m); rlock status -q nightly; rlock release nightly --owner "$owner"'
  run -0 inside 'rlock doctor'
}

@test "when rlock is killed there, its guard ends the command and all of its descendants" {
  run -0 inside 'rlock run -t 5s nightly -- sh -c ". /words; tree" &
    run=$!
    pids=$(pids)
    kill -KILL $run
    gone $pids
    rlock run -w 60s nightly -- echo next'
  [ "${lines[-1]}" = next ] || fail "$output"
}

@test "a TERM there ends the command, and the lock is free" {
  run -0 inside 'rlock run nightly -- sh -c ". /words; tree" &
    run=$!
    pids=$(pids)
    kill -TERM $run
    code=0
    wait $run || code=$?
    [ $code -eq 143 ]
    gone $pids
    rlock run -n nightly -- echo next'
  [ "${lines[-1]}" = next ] || fail "$output"
}
