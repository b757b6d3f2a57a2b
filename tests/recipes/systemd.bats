#!/usr/bin/env bats
# The examples for systemd, under a systemd of the test's own.
load ../cli/helpers/helpers
load example
load machine

units=$BATS_TEST_DIRNAME/../../packaging/examples/systemd

teardown() { end_machine; }

# program NAME TEXT: a program of the machine.
program() {
  mkdir -p machine/bin
  printf '#!/bin/sh\n%s\n' "$2" >"machine/bin/$1"
  chmod +x "machine/bin/$1"
}

settings() {
  mkdir -p machine/units machine/etc
  echo 'url = "redis://127.0.0.1"' >machine/etc/rlock.toml
  (umask 077 && echo secret >machine/etc/password)
}

state() { inside systemctl show -P ActiveState "$1"; }
is() { [ "$(state "$2")" = "$1" ]; }

@test "the units are clean and confined" {
  command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed"
  for unit in "$units"/*.service; do
    run -0 systemd-analyze security --offline=true --threshold=30 "$unit"
  done
  settings
  program nightly-job true
  program the-service true
  for unit in "$units"/*; do install_unit "$unit"; done
  machine
  run -0 --separate-stderr inside sh -c 'systemd-analyze verify --man=no /run/systemd/system/rlock-*'
  [ -z "$stderr" ] || fail "$stderr"
}

@test "one of two hosts does the nightly job, confined and with the password from its credentials; the other skips it" {
  settings
  program nightly-job 'touch "$STATE_DIRECTORY/$RLOCK_TOKEN"; ! touch /usr/local/bin/x && [ "$(id -u)" -ne 0 ]'
  install_unit "$units/rlock-nightly.service"
  install_unit "$units/rlock-nightly.service" rlock-other.service
  sed -i 's/^StateDirectory=.*/StateDirectory=other/' machine/units/rlock-other.service
  machine
  inside systemctl start rlock-nightly.service rlock-other.service
  [ "$(inside sh -c 'ls /var/lib/private/nightly /var/lib/private/other | grep -c "^[0-9]"')" -eq 1 ]
  is inactive rlock-nightly.service
  is inactive rlock-other.service
}

@test "one host runs the service, the other stands by, and takes over when the first one stops or dies" {
  settings
  program the-service 'exec sleep infinity'
  install_unit "$units/rlock-standby.service"
  install_unit "$units/rlock-standby.service" rlock-other.service
  machine
  inside systemctl start rlock-standby.service
  inside systemctl start --no-block rlock-other.service
  is active rlock-standby.service
  waits() { inside systemctl show -P StatusText rlock-other.service | grep -q 'waiting for "shop/standby"'; }
  eventually waits
  is activating rlock-other.service
  inside systemctl stop rlock-standby.service
  eventually is active rlock-other.service
  inside systemctl start --no-block rlock-standby.service
  inside sh -c 'kill -KILL $(systemctl show -P MainPID rlock-other.service)'
  eventually is active rlock-standby.service
}

# page_unit NAME SECTION: a unit with the lines of this recipe.
page_unit() {
  { echo '[Service]' && recipe "$2"; } >page.service
  install_unit page.service "$1"
}

@test "the units of the page run: the nightly job with its password, and a service with its standby" {
  settings
  program nightly-job 'touch /run/nightly'
  program app 'systemd-notify --ready; exec sleep infinity'
  page_unit nightly.service "A SYSTEMD TIMER"
  page_unit app.service "A HOT STANDBY, OR LEADER"
  sed -i '/^ExecStart/i LoadCredential=password:/etc/rlock/password\nEnvironment=RLOCK_PASSWORD_FILE=%d/password' machine/units/app.service
  cp machine/units/app.service machine/units/other.service
  machine
  inside systemctl start nightly.service app.service
  eventually inside test -e /run/nightly
  inside systemctl start --no-block other.service
  is activating other.service
  inside systemctl stop app.service
  eventually is active other.service
}

@test "a slot: a shell in single quotes has its number, without braces" {
  settings
  oneshot quoted "ExecStart=/usr/local/bin/rlock run --password-file /etc/rlock/password --slots 4 shop/quoted -- \
  sh -c 'echo \"<\$RLOCK_SLOT>\" >/run/quoted'"
  oneshot braces "ExecStart=/usr/local/bin/rlock run --password-file /etc/rlock/password --slots 4 shop/braces -- \
  sh -c 'echo \"<\${RLOCK_SLOT}>\" >/run/braces'"
  machine
  inside systemctl start quoted.service braces.service
  [ "$(inside cat /run/quoted /run/braces)" = $'<1>\n<>' ] || fail "$(inside cat /run/quoted /run/braces)"
}

@test "a host that stands by has started: its boot does not wait for the lock" {
  settings
  program the-service 'exec sleep infinity'
  install_unit "$units/rlock-standby.service"
  install_unit "$units/rlock-standby.timer"
  cat >machine/units/holder.service <<'END'
[Unit]
DefaultDependencies=no
Before=rlock-standby.timer
[Service]
Type=notify
NotifyAccess=all
ExecStart=/bin/sh -c 'until redis-cli -a secret --no-auth-warning ping; do sleep 0.1; done; exec rlock run --password-file /etc/rlock/password shop/standby -- sleep infinity'
END
  # As on a real host, the boot takes longer than the start of its timers.
  cat >machine/units/slow.service <<'END'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'until systemctl -q is-active rlock-standby.timer; do sleep 0.1; done; sleep 2'
END
  sed -i '1a DefaultDependencies=no' machine/units/rlock-standby.timer
  machine holder.service slow.service rlock-standby.timer
  # shellcheck disable=SC2317 # by eventually
  started() { [ "$(inside systemctl is-system-running)" = running ]; }
  eventually started || fail "$(inside systemctl is-system-running; inside systemctl list-jobs)"
  is active holder.service
  is active rlock-standby.timer
}

# oneshot NAME LINE…: a unit with these lines, which runs for longer than the guard needs to settle.
oneshot() {
  {
    printf '[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\n'
    printf '%s\n' "${@:2}" "StandardError=append:/run/errors-$1"
  } >"machine/units/$1.service"
}

@test "a unit that forbids @privileged and @resources runs, and --contain runs with the namespaces that its unit allows" {
  settings
  local run='ExecStart=/usr/local/bin/rlock run --password-file /etc/rlock/password' filter='SystemCallFilter=@system-service'
  oneshot filtered "$run filtered -- sleep 1" "$filter" 'SystemCallFilter=~@privileged @resources'
  oneshot contained "$run --contain contained -- sleep 1" "$filter @mount" 'RestrictNamespaces=pid mnt'
  oneshot unmounted "$run --contain unmounted -- sleep 1" "$filter"
  oneshot confined "$run --contain confined -- sleep 1" 'RestrictNamespaces=yes'
  machine
  inside systemctl start filtered.service contained.service || fail "$(inside cat /run/errors-filtered /run/errors-contained)"
  [ -z "$(inside cat /run/errors-filtered /run/errors-contained)" ] || fail "$(inside cat /run/errors-filtered /run/errors-contained)"
  run ! inside systemctl start unmounted.service
  run -0 inside cat /run/errors-unmounted
  [[ $output == *"SIGSYS"*"SystemCallFilter="* ]] || fail "$output"
  run ! inside systemctl start confined.service
  run -0 inside cat /run/errors-confined
  [[ $output == *"RestrictNamespaces=pid mnt"* ]] || fail "$output"
}
