# shellcheck shell=sh
# Functions for the tests in a guest: they start a server there, run rlock's main job, and report each step. $lock is the lock's name.

server=/tmp/redis.sock
scratch=$(mktemp -d)
export RLOCK_URL=unix://$server

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect CODE COMMAND…
expect() {
  wanted=$1
  shift
  code=0
  "$@" >"$scratch/out" 2>&1 || code=$?
  [ "$code" -eq "$wanted" ] || { cat "$scratch/out" >&2; fail "exit code $code, not $wanted: $*"; }
}

# has TEXT: the output of the last `expect` has it.
has() {
  grep -qF -- "$1" "$scratch/out" || { cat "$scratch/out" >&2; fail "no \"$1\" in the output"; }
}

step() { echo "ok - $*"; }

# await COMMAND…: until it succeeds, at most a minute.
await() {
  tries=600
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "did not come true: $*"
    sleep 0.1
  done
}

start_server() {
  redis-server --port 0 --unixsocket "$server" --save '' --dir "$scratch" --pidfile "$scratch/redis.pid" --daemonize yes >/dev/null
  await redis-cli -s "$server" ping
}

run_main_job() {
  expect 0 rlock --version
  # shellcheck disable=SC2016  # for the inner shell
  expect 0 rlock run nightly -- sh -c 'echo token $RLOCK_TOKEN'
  has "token "
  expect 7 rlock run nightly -- sh -c 'exit 7'
  expect 0 rlock run nightly -- sh -c 'unset RLOCK_HELD; rlock run -n nightly -- echo never; [ $? -eq 75 ]'
  step "the main job: a locked run, its exit code, a busy lock"
}

# A run that holds the lock until `release_lock`; a second one waits for it.
hold_lock() {
  mkfifo "$scratch/go"
  rlock run -t 5s held -- sh -c "echo \$RLOCK_TOKEN >$scratch/first; cat $scratch/go" >"$scratch/holder" 2>&1 &
  holder=$!
  await test -s "$scratch/first"
  rlock run -t 5s held -- sh -c "echo \$RLOCK_TOKEN >$scratch/second" >"$scratch/waiter" 2>&1 &
  waiter=$!
  await sh -c 'rlock queue --json held | grep -q "\"position\": *1"'
  owner=$(rlock status --json held | grep -o '"owner": *"[^"]*"' | head -n 1)
}

# The same owner holds it, and renews it: longer than the lease was when the package was replaced.
expect_held() {
  kill -0 "$holder" || fail "the holder ended: $(cat "$scratch/holder")"
  kill -0 "$waiter" || fail "the waiter ended: $(cat "$scratch/waiter")"
  sleep 6
  [ "$(rlock status --json held | grep -o '"owner": *"[^"]*"' | head -n 1)" = "$owner" ] || fail "the lock has another owner"
  expect 75 rlock run -n held -- echo never
}

# A run of the program that is installed now waits too.
queue_up_again() {
  rlock run -t 5s held -- sh -c "echo \$RLOCK_TOKEN >$scratch/third" >"$scratch/newcomer" 2>&1 &
  newcomer=$!
  await sh -c 'rlock queue --json held | grep -q "\"position\": *2"'
}

release_lock() {
  echo >"$scratch/go"
  wait "$holder" || fail "the holder failed: $(cat "$scratch/holder")"
  wait "$waiter" || fail "the waiter failed: $(cat "$scratch/waiter")"
  wait "$newcomer" || fail "the waiter of the later version failed: $(cat "$scratch/newcomer")"
  [ "$(cat "$scratch/second")" -gt "$(cat "$scratch/first")" ] || fail "the waiter's token is no larger"
  [ "$(cat "$scratch/third")" -gt "$(cat "$scratch/second")" ] || fail "the later version's token is no larger"
}

# upgrades VERSION COMMAND…: by the command, from /srv/new, which use_repository chooses; `version` prints what is installed.
upgrades() {
  to=$1
  shift
  echo "# This line is the admin's." >>/etc/rlock/rlock.toml
  hold_lock
  use_repository /srv/new
  expect 0 "$@"
  [ "$(version)" = "$to" ] || fail "version $(version)"
  expect 0 grep -F "is the admin's" /etc/rlock/rlock.toml
  expect_held
  queue_up_again
  step "upgraded while a run held the lock and one waited: both went on, and the admin's configuration file is as it was"
}

# downgrades VERSION COMMAND…: after upgrades.
downgrades() {
  to=$1
  shift
  expect 0 "$@"
  [ "$(version)" = "$to" ] || fail "version $(version)"
  expect_held
  release_lock
  step "downgraded while it was held, then handed over to the waiters of both versions, in their order"
}

# expect_left PATTERN: every file that was not among those of $scratch/before fits it.
expect_left() {
  files >"$scratch/after"
  comm -13 "$scratch/before" "$scratch/after" | tee "$scratch/left" | sed 's/^/    left: /'
  expect 1 grep -Ev "$1" "$scratch/left"
}

# files: every file of the guest but the caches and logs of the package managers, and our own.
files() {
  find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /srv -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg \
    -o -path /var/log -o -path /var/lib/dnf -o -path /var/lib/rpm -o -path /usr/lib/sysimage -o -path /root \) -prune -o -print | LC_ALL=C sort
}
