#!/bin/sh
# In a bare guest, for two_hosts.sh: types lines of "Two hosts and their server" of docs/INSTALL.md, which is in /srv.
#   install server|host   those of the server or of a host that need a mirror of Debian
#   serve                 the other ones of the server, which then runs a job until a host waits for its lock
#   use                   the other ones of a host
set -eu
# shellcheck source=steps.sh
. /srv/steps.sh
unset RLOCK_URL
cd /srv

# lines server|host
lines() {
  sed -n '/^## Two hosts/,/^Only/p' INSTALL.md | awk -v block="$1" '
    /^Type this/ { in_block = block == "server" }
    /^Copy/ { in_block = block == "host" }
    in_block && /^    / { print substr($0, 5) }'
}

now() { cut -d ' ' -f 1 /proc/uptime; }

# type_lines server|host PATTERN: those that begin with it.
type_lines() {
  lines "$1" | grep -E "$2" >"$scratch/lines"
  while read -r line <&9; do
    from=$(now)
    expect 0 sh -c "$line"
    seconds=$(awk -v from="$from" -v to="$(now)" 'BEGIN { printf "%.1f", to - from }')
    printf '    %s: %5s s  %s\n' "$(cat /etc/hostname)" "$seconds" "$line"
  done 9<"$scratch/lines"
}

case $1 in
  install)
    echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/yes
    expect 0 apt-get update -q
    type_lines "$2" '^(apt|\(umask|printf|install|echo) '
    ;;
  serve)
    type_lines server '^service '
    await rlock status
    type_lines host '^rlock '
    # shellcheck disable=SC2016  # the command of the run expands it
    expect 0 rlock run shop/nightly -- sh -c 'until rlock queue --json shop/nightly | grep -q "\"position\": *1"; do sleep 0.1; done'
    await sh -c 'rlock history shop/nightly | grep -q web2'
    ;;
  use)
    await rlock status -q shop/nightly
    type_lines host '^rlock '
    has hello
    ;;
esac
