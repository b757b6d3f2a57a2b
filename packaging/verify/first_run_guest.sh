#!/bin/sh
# first_run_guest.sh apt|file|source URL: installs rlock in this way and runs a command under a lock, in the guest of first_run.sh. The
# way "file" uses the server at URL.
set -eu
way=$1 url=$2
# shellcheck source=steps.sh
. /srv/steps.sh

now() { cut -d ' ' -f 1 /proc/uptime; }
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f s", to - from }'; }

# timed WHAT COMMAND…
timed() {
  what=$1 from=$(now)
  shift
  expect 0 "$@"
  echo "    $what: $(since "$from")"
}

first_run() {
  # shellcheck disable=SC2016  # for the inner shell
  timed "the first run" rlock run nightly -- sh -c 'echo hello, token $RLOCK_TOKEN'
  has "hello, token "
}

add_repository() {
  mkdir -p /etc/apt/keyrings
  cp /srv/old/rlock.asc /etc/apt/keyrings
  sed "s,^URIs: .*,URIs: file:/srv/old/apt," /srv/old/rlock.sources >/etc/apt/sources.list.d/rlock.sources
  apt-get update -q
}

by_apt() {
  timed "the repository, apt-get update" add_repository
  timed "apt-get install rlock redis-server" apt-get install -qy rlock redis-server
  export RLOCK_URL=local:
  first_run
  redis-cli -s /var/lib/rlock/rlock.sock shutdown nosave >/dev/null || true
}

install_file() {
  cd /srv/dist && sha256sum --check --ignore-missing SHA256SUMS && install rlock-linux-* /usr/local/bin/rlock
}

by_file() {
  timed "the portable file" install_file
  export RLOCK_URL="$url"
  first_run
}

from_source() {
  tar -xzf /srv/source.tar.gz -C /root
  timed "packaging/try.sh" /root/rlock-*/packaging/try.sh
  has "It works."
  timed "First steps of README.md, without a server on PATH" sh /srv/first_steps.sh /root/rlock-*
}

start=$(now)
case $way in
  apt) by_apt ;;
  file) by_file ;;
  source) from_source ;;
esac
step "first run by way of $way: $(since "$start")"
