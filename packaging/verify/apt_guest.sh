#!/bin/sh
# apt_guest.sh OLD_VERSION NEW_VERSION [URL]: installs, uses, upgrades, downgrades and purges the package with apt, in the guest of apt.sh.
# /srv/old and /srv/new are repositories with these versions. URL is a server to use instead of the suite's own.
set -eu
old=$1 new=$2 url=${3:-}
# shellcheck source=steps.sh
. /srv/steps.sh

use_repository() {
  sed "s,^URIs: .*,URIs: file:$1/apt," "$1/rlock.sources" >/etc/apt/sources.list.d/rlock.sources
  expect 0 apt-get update -q
}

version() { dpkg-query -W -f '${Version}' rlock; }

refuses_other_signatures() {
  cp -r /srv/old /srv/forged
  sed -i 's/^Codename: stable/Codename: other/' /srv/forged/apt/dists/stable/InRelease
  sed 's,^URIs: .*,URIs: file:/srv/forged/apt,' /srv/old/rlock.sources >/etc/apt/sources.list.d/rlock.sources
  apt-get update -q >"$scratch/out" 2>&1 || true
  has "not signed"
  expect 100 apt-get install -qy rlock
  step "apt installs nothing from a repository whose signature does not fit"
}

installs() {
  use_repository /srv/old
  expect 0 apt-get install -qy rlock
  [ "$(version)" = "$old" ] || fail "version $(version)"
  expect 0 sh -c 'rlock --version'
  step "installed from the signed repository: $(version), $(du -k /usr/bin/rlock | cut -f1) KB"
  has_documents
}

# What the triggers of other packages make of it.
has_documents() {
  expect 0 whatis rlock
  has "rlock (1)"
  expect 0 whatis rlock.toml rlock-formats rlock-guarantees rlock-protocol rlock-recipes rlock-stability
  expect 0 bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader rlock; complete -p rlock'
  expect 0 test -s /usr/share/zsh/vendor-completions/_rlock
  expect 0 test -s /usr/share/fish/vendor_completions.d/rlock.fish
  expect 0 sh -c 'cd /usr/share/doc/rlock/examples && ls rlock.toml.example systemd/rlock-standby.service cron/rlock-nightly'
  step "the manual is in man's index, the completions where the shells look for them, the examples beside them"
  expect 0 sh -c 'cd /usr/share/doc/rlock && grep -o "]([^)]*" README.md | cut -c 3- | xargs ls'
  expect 0 zcat /usr/share/doc/rlock/built-in.gz
  for text in "hiredis, a part of rlock" "Redistribution and use in source and binary forms" "Permission is hereby granted"; do has "$text"; done
  # shellcheck disable=SC2016  # for dpkg-query
  expect 0 dpkg-query -W -f '${Static-Built-Using}' rlock
  has "hiredis (= "
  step "the links of README lead to files, and the package names what is built in, with its licences"
}

purge_names_local() {
  has "a server of local: still runs, in /var/lib/rlock"
  has "the locks of root's local: stay in /var/lib/rlock"
  sed -n 's/.*to end it: //p' "$scratch/out" >"$scratch/end"
  expect 0 sh "$scratch/end"
}

removes_and_purges() {
  [ -n "$url" ] || expect 0 rlock run --url local: held -- true
  expect 0 apt-get remove -qy rlock
  expect 0 grep -F "is the admin's" /etc/rlock/rlock.toml
  expect 0 apt-get purge -qy rlock
  [ -n "$url" ] || purge_names_local
  rm /etc/apt/sources.list.d/rlock.sources
  expect_left '^/var/lib/rlock(/|$)'
  rm -rf /var/lib/rlock
  step "purged: nothing is left but what purge named"
}

mkdir -p /etc/apt/keyrings
cp /srv/old/rlock.asc /etc/apt/keyrings
apt-get update -q >/dev/null
expect 0 apt-get install -qy --no-install-recommends redis-server man-db bash-completion procps ca-certificates
files >"$scratch/before"
refuses_other_signatures
installs
if [ -n "$url" ]; then RLOCK_URL=$url; else start_server; fi
run_main_job
upgrades "$new" apt-get install -qy -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold rlock
use_repository /srv/old
downgrades "$old" apt-get install -qy --allow-downgrades -o Dpkg::Options::=--force-confold "rlock=$old"
removes_and_purges
