#!/bin/bash
# run.sh [REVISION [COMMAND…]]: what Debian 13 says to a commit. Installs a bare trixie in a temporary folder, clones
# REVISION (HEAD) into it, runs COMMAND (.ci/run) there, and ends with its exit code. Security updates are installed, and the
# versions of the servers are shown first. `ctest -C nightly -R debian13` runs it.
# Needs root, debootstrap, git, 5 GB in TMPDIR, and for .ci/run an hour on two cores; without the first three it is skipped (77). Packages come from
# where apt of this machine gets Debian's, or from MIRROR; security updates from SECURITY (debian-security beside it).
# Processes and mounts live in namespaces that end with this script, however it ends; the folder goes too.
#
#   sudo tests/debian13/run.sh                             what a commit must pass, on Debian 13
#   sudo tests/debian13/run.sh HEAD packaging/try.sh       build and first run
#   sudo SUITE=bookworm tests/debian13/run.sh              the same on Debian 12
set -euo pipefail

suite=${SUITE:-trixie}
mirror=${MIRROR:-}
self=$(realpath "$0")

skip() {
  echo "run.sh: $*" >&2
  exit 77
}

# The half in the namespaces: pid 1 of its own processes, among mounts that nobody else sees. The folder becomes their
# root: out of a mere chroot a test that enters a mount namespace would come back to the host.
inside() {
  mount --bind "$1" "$1"
  cd "$1"
  shift
  mount -t proc proc proc
  mount --rbind /sys sys
  mount --rbind /dev dev
  pivot_root . .
  umount --lazy .
  # shellcheck disable=SC2016  # the inner shell expands it
  exec chroot . env -i -C /srv/rlock HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c '
    apt-get -q update && apt-get -qy dist-upgrade || exit
    for package in redis-tools valkey-tools; do
      echo "$package $(apt-cache policy "$package" | sed -n "s/^ *Candidate: //p")"
    done
    exec "$@"' sh "$@" </dev/null
}

install_base() {
  chmod 755 "$1"  # the root of other users, too
  local proxy
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "${proxy:-}" ] || export http_proxy=$proxy
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$1" "$mirror"
  [ -z "${proxy:-}" ] || echo "Acquire::http::Proxy \"$proxy\";" >"$1/etc/apt/apt.conf.d/proxy"
  printf 'deb %s main\n' "$mirror $suite" "$mirror $suite-updates" "$security $suite-security" >"$1/etc/apt/sources.list"
  cp /etc/resolv.conf "$1/etc/resolv.conf"
  echo '127.0.0.1 localhost' >"$1/etc/hosts"  # as every machine has it; tests mount theirs over it
}

clone() {
  git clone --quiet --no-checkout "$top" "$1/srv/rlock"
  git -C "$1/srv/rlock" checkout --quiet --detach "$2"
}

# Whatever of the guest still runs dies with its pid 1, and unshare ends when all of it is dead; its mounts are gone then.
finish() {
  local init=""
  if [ -n "$guest" ]; then
    read -r init _ 2>/dev/null <"/proc/$guest/task/$guest/children" || true
    [ "${init:-0}" -le 1 ] || kill -KILL "$init" || true
    wait "$guest" || true
  fi
  rm -rf --one-file-system "$folder" "$log"
}

if [ "${1:-}" = --inside ]; then
  shift
  inside "$@"
fi

[ "$(id -u)" -eq 0 ] || skip "needs root"
top=$(dirname "$(dirname "$(dirname "$self")")")
# shellcheck source=../../packaging/verify/guest.bash
. "$top/packaging/verify/guest.bash"
for program in debootstrap git apt-get; do
  command -v "$program" >/dev/null || skip "needs $program"
done
[ -n "$mirror" ] || mirror=$(debian_mirror)
[ -n "$mirror" ] || skip "apt has no source of Debian's packages: run apt-get update, or set MIRROR"
security=${SECURITY:-${mirror%/*}/debian-security}
commit=$(git -C "$top" rev-parse --verify --quiet "${1:-HEAD}^{commit}") || { echo "run.sh: no such revision: $1" >&2; exit 64; }
shift $(($# > 0))
[ $# -gt 0 ] || set -- .ci/run

guest=
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

install_base "$folder"
clone "$folder" "$commit"
# In the background, since a trap waits for the end of what is in the foreground.
unshare --mount --propagation private --pid --fork "$self" --inside "$folder" "$@" &
guest=$!
wait "$guest"
