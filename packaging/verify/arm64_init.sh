#!/bin/busybox sh
# shellcheck shell=dash
# Tests the portable rlock as process 1 of an emulated arm64 machine that has only busybox, Redis and rlock. rlock does its main job, and
# the guard stops the command of a killed rlock. If both succeed, the last line of output is "passed".
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/
mkdir -p /proc
mount -t proc proc /proc
mount -t devtmpfs dev /dev

# A command with a descendant in a session of its own, and without its environment.
cat >/tree <<'END'
#!/bin/sh
env -i setsid sleep 1000 &
echo "$! $$" >/tmp/new
mv /tmp/new /tmp/pids
exec sleep 1000
END
chmod +x /tree

# gone PID…: succeeds if each process is dead or a zombie.
gone() {
  for pid; do
    state=$(sed 's/.*) //' "/proc/$pid/stat") && [ "${state%% *}" != Z ] && return 1
  done
  return 0
}

# The file contains two process ids, which the shell has to split.
# shellcheck disable=SC2046
guard_kills() {
  rlock run -t 10s killed -- /tree >"$scratch/killed" 2>&1 &
  run=$!
  (await test -s /tmp/pids) || fail "the command did not start: $(cat "$scratch/killed")"
  kill -KILL "$run"
  await gone $(cat /tmp/pids)
  expect 0 rlock run -w 60s killed -- true
  step "rlock was killed: its guard stopped the command and all of its descendants"
}

main_job() (
  set -eu
  # shellcheck source=steps.sh
  . /srv/steps.sh
  start_server
  run_main_job
  hold_lock
  expect_held
  queue_up_again
  release_lock
  step "a run held the lock and renewed it, then handed it over to the waiter"
  guard_kills
)

uname -srm
rlock --version
main_job && echo passed
poweroff -f
