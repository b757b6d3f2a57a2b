#!/bin/busybox sh
# shellcheck shell=dash
# Process 1 of an emulated machine of arm64 with busybox, Redis and the portable rlock: the main job and the guard's kill. The last line
# is "passed" where all went well.
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

# gone PID…: each is dead, or dead but for its parent.
gone() {
  for pid; do
    state=$(sed 's/.*) //' "/proc/$pid/stat") && [ "${state%% *}" != Z ] && return 1
  done
  return 0
}

# Word by word: two process ids.
# shellcheck disable=SC2046
guard_kills() {
  rlock run -t 2s killed -- /tree >"$scratch/killed" 2>&1 &
  run=$!
  await test -s /tmp/pids
  kill -KILL "$run"
  await gone $(cat /tmp/pids)
  expect 0 rlock run -w 60s killed -- true
  step "rlock was killed: its guard ended the command and all of its descendants"
}

main_job() (
  set -eu
  # shellcheck source=steps.sh
  . /srv/steps.sh
  start_server
  run_main_job
  hold_lock
  expect_held
  release_lock
  step "a run held the lock and renewed it, then handed it over to the waiter"
  guard_kills
)

uname -srm
rlock --version
main_job && echo passed
poweroff -f
