# shellcheck shell=bash
# A machine with a systemd of its own, in namespaces: its units and its /etc/rlock are the test's, everything in it ends with it.

# machine [UNIT…]: boots one, with these units; the folder machine/ has its units, its programs (bin), its /etc/rlock, and what its
# server listens on.
machine() {
  local systemd=/usr/lib/systemd/systemd cgroup
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  [ -x "$systemd" ] || skip "systemd is not installed"
  unshare -muipnC true 2>/dev/null || skip "this machine refuses new namespaces"
  for cgroup in /sys/fs/cgroup/unified /sys/fs/cgroup; do [ ! -e "$cgroup/cgroup.procs" ] || break; done
  mkdir "$cgroup/rlock-test.$$" || skip "no control group can be made here"
  machine_cgroup=$cgroup/rlock-test.$$
  mkdir -p machine/units machine/bin machine/etc
  cp "$RLOCK" "$(command -v redis-server)" machine/bin
  local unit
  for unit in sysinit basic shutdown timers network-online; do echo '[Unit]' >"machine/units/$unit.target"; done
  printf '[Unit]\nWants=redis.service %s\n' "$*" >machine/units/basic.target
  cat >machine/units/redis.service <<'END'
[Unit]
DefaultDependencies=no
[Service]
ExecStart=/usr/local/bin/redis-server --save '' --requirepass secret --dir /run
END
  start bash -c 'echo $$ >"$1/cgroup.procs" && exec unshare -muipnCf --mount-proc bash "$2" "$3"' bash \
    "$machine_cgroup" "$BATS_TEST_DIRNAME/machine_init.sh" "$systemd" >machine/log 2>&1
  local outer=$!
  # shellcheck disable=SC2317 # by eventually
  first_process() { machine_pid=$(pgrep -P "$outer") && [ "$(cat "/proc/$machine_pid/comm")" = systemd ]; }
  eventually first_process
  eventually inside sh -c 'redis-cli -a secret --no-auth-warning ping >/dev/null 2>&1'
}

# inside COMMAND…: in the machine.
inside() { nsenter -t "$machine_pid" -a env -u RLOCK_CONFIG -u RLOCK_URL "$@"; }

# install_unit FILE [NAME]: one of the examples' units, with rlock where the test has it, and its errors in /run/errors.
install_unit() {
  local file=machine/units/${2:-$(basename "$1")}
  sed 's|/usr/bin/rlock|/usr/local/bin/rlock|' "$1" >"$file"
  if [[ $file == *.service ]]; then echo 'StandardError=append:/run/errors' >>"$file"; fi
}

end_machine() {
  [ -n "${machine_pid:-}" ] || return 0
  inside cat /run/errors 2>/dev/null || true
  kill -KILL "$machine_pid"
  eventually gone "$machine_pid"
  eventually find "$machine_cgroup" -depth -type d -exec rmdir {} +
}
