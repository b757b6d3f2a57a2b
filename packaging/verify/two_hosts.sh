#!/bin/bash
# two_hosts.sh [SUITE]: types "Two hosts and their server" of docs/INSTALL.md in two bare guests of Debian SUITE (bookworm), db1 and web2, which have a
# network of their own. db1 is also a host that runs jobs, and each waits for the lock of the other. Prints the seconds of each step,
# and limits none. DIST is the folder of the artefacts that packaging/release.sh made (dist).
set -euo pipefail

# shellcheck source=guest.bash
. "$(dirname "$(realpath "$0")")/guest.bash"

suite=${1:-bookworm}
dist=${DIST:-$top/dist}
[ -e "$dist/SHA256SUMS" ] || { say "$0: no artefacts in $dist: run packaging/release.sh" >&2 && exit 77; }
id=rlock$$

# on HOST ADDRESS WORD…: in its guest; without ADDRESS in the network of this machine, where the packages come from.
on() {
  local host=$1 network=()
  [ -z "$2" ] || network=(ip netns exec "$id$host")
  shift 2
  # shellcheck disable=SC2016  # the inner shell expands it
  "${network[@]}" unshare --uts bash -c 'hostname "$1" && shift && in_guest "$@"' bash "$host" "$folder/$host" sh /srv/two_hosts_guest.sh "$@"
}

make_network() {
  ip netns add "${id}db1" && ip netns add "${id}web2" &&
    ip -n "${id}db1" link add name lan type veth peer name lan netns "${id}web2" &&
    ip -n "${id}db1" address add 10.9.9.1/24 dev lan && ip -n "${id}web2" address add 10.9.9.2/24 dev lan &&
    for host in db1 web2; do ip -n "$id$host" link set lo up; done &&
    ip -n "${id}db1" link set lan up && ip -n "${id}web2" link set lan up
}

make_host() {
  mkdir "$folder/$1" && BASE=$folder/base.tar make_guest "$folder/$1" "$suite" &&
    echo "$1" >"$folder/$1/etc/hostname" &&
    printf '127.0.0.1 localhost\n10.9.9.1 db1\n10.9.9.2 web2\n' >"$folder/$1/etc/hosts" &&
    cp "$here/steps.sh" "$here/two_hosts_guest.sh" "$top/docs/INSTALL.md" "$folder/$1/srv" &&
    cp "$dist"/rlock_*.deb "$folder/$1/srv"
}

finish() {
  [ -z "${holder:-}" ] || kill "$holder" 2>/dev/null || true
  for host in db1 web2; do ip netns delete "$id$host" 2>/dev/null || true; done
  rm -rf --one-file-system "$folder" "$log"
}

install_packages mmdebstrap iproute2
export -f in_guest
trap finish EXIT
quietly "Making a bare $suite" mmdebstrap --quiet --mode=root --variant=minbase --include=apt "$suite" "$folder/base.tar" "${MIRROR:-$(debian_mirror)}"
quietly "Making db1" make_host db1
quietly "Making web2" make_host web2
quietly "Joining them" make_network
on db1 "" install server
cp "$folder/db1/root/lock-password" "$folder/db1/srv"
cp "$folder/db1/root/lock-password" "$folder/web2/srv"
on db1 "" install host
on web2 "" install host
# The server, and a job that ends when the other host waits for it.
on db1 net serve &
holder=$!
on web2 net use
wait "$holder"
holder=""
say "ok - the lock went from one host to the other"
