#!/bin/sh
# rpm_guest.sh OLD_VERSION NEW_VERSION: installs, uses, upgrades, downgrades and removes the package with dnf, in the guest of rpm.sh.
# /srv/old and /srv/new are repositories with these versions. The rpm database of the guest is empty, and /srv/base.rpm provides the
# libraries that dpkg has installed.
set -eu
old=$1 new=$2
# shellcheck source=steps.sh
. /srv/steps.sh

use_repository() {
  sed "s,file:///srv/[a-z]*/,file://$1/," "$1/rlock.repo" >/etc/yum.repos.d/rlock.repo
  expect 0 dnf -qy clean all
}

dnf() { command dnf --setopt=install_weak_deps=False "$@"; }

version() { rpm -q --qf '%{VERSION}' rlock; }

refuses_other_signatures() {
  cp -r /srv/old /srv/forged
  sed -i 's/<revision>/<revision>1/' /srv/forged/rpm/repodata/repomd.xml
  sed "s,file:///srv/[a-z]*/,file:///srv/forged/," /srv/old/rlock.repo >/etc/yum.repos.d/rlock.repo
  expect 1 dnf -y install rlock
  has "Bad GPG signature"
  expect 1 rpm -q rlock
  step "dnf installs nothing from a repository whose signature does not fit"
}

installs() {
  use_repository /srv/old
  expect 0 dnf -y install rlock
  [ "$(version)" = "$old" ] || fail "version $(version)"
  expect 0 rlock --version
  expect 0 test -s /usr/share/man/man1/rlock.1.gz
  expect 0 test -s /usr/share/zsh/site-functions/_rlock
  expect 0 test -s /usr/share/bash-completion/completions/rlock
  expect 0 test -s /usr/share/fish/vendor_completions.d/rlock.fish
  expect 0 grep -F "hiredis, a part of rlock" /usr/share/licenses/rlock*/built-in
  expect 0 rpm --verify rlock
  step "installed from the signed repository: $(version), $(du -k /usr/bin/rlock | cut -f1) KB"
}

removes() {
  expect 0 rlock run --url local: held -- true
  expect 0 dnf -y remove rlock
  has "the locks of root's local: stay in /var/lib/rlock"
  expect 0 grep -F "is the admin's" /etc/rlock/rlock.toml.rpmsave
  redis-cli -s /var/lib/rlock/rlock.sock shutdown nosave >/dev/null || true
  rm /etc/yum.repos.d/rlock.repo
  expect_left '^/var/lib/rlock(/|$)|^/etc/rlock(/rlock.toml.rpm(save|new))?$'
  step "removed: nothing is left but the admin's configuration and what dnf remove named"
}

apt-get update -q >/dev/null
expect 0 apt-get install -qy --no-install-recommends redis-server procps dnf rpm gpg
mkdir -p /etc/yum.repos.d
expect 0 dnf -y install /srv/base.rpm
# Which other packages own where rpm is at home.
mkdir -p /usr/share/fish/vendor_completions.d /usr/share/zsh/site-functions /usr/share/licenses
files >"$scratch/before"
refuses_other_signatures
installs
start_server
run_main_job
upgrades "$new" dnf -y upgrade rlock
expect 0 test -e /etc/rlock/rlock.toml.rpmnew
downgrades "$old" dnf -y downgrade rlock
removes
