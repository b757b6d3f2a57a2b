# shellcheck shell=bash
# A bare Debian in a folder, and programs in it: what the tests of this folder share. $top is the folder of CMakeLists.txt.
: "${top:?}"

# Where apt of this machine gets the packages of Debian itself.
debian_mirror() {
  # shellcheck disable=SC2016  # apt-get expands it
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' |
    sed -n '1s,/*$,,p'
}

# make_guest FOLDER SUITE: from MIRROR, or from where apt of this machine gets Debian's packages. BASE is a tarball of one made
# before.
make_guest() {
  local mirror=${MIRROR:-$(debian_mirror)} proxy=""
  if [ -n "${BASE:-}" ]; then
    mkdir -p "$1" && tar -xf "$BASE" -C "$1"
  else
    mmdebstrap --quiet --mode=root --variant=minbase "$2" "$1" "$mirror"
  fi || return
  chmod 755 "$1"
  cp /etc/resolv.conf "$1/etc/resolv.conf"
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "$proxy" ] || echo "Acquire::http::Proxy \"$proxy\";" >"$1/etc/apt/apt.conf.d/proxy"
  # No package starts its service.
  printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
  chmod 755 "$1/usr/sbin/policy-rc.d"
}

# in_guest FOLDER COMMAND…: as pid 1 of its own processes, among mounts that nobody else sees: all of it ends with COMMAND.
in_guest() {
  local folder=$1
  shift
  # shellcheck disable=SC2016  # the inner shell expands it
  unshare --mount --propagation private --pid --fork --kill-child sh -c '
    folder=$1; shift
    mount --bind "$folder" "$folder" && cd "$folder" && mount -t proc proc proc && mount --rbind /dev dev &&
      pivot_root . . && umount --lazy . &&
      exec chroot . env -i HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" </dev/null' sh "$folder" "$@"
}

# make_key FOLDER: a key of gpg that lives as long as the test.
make_key() {
  mkdir -m 700 "$1"
  GNUPGHOME=$1 gpg --batch --quiet --passphrase '' --quick-generate-key 'rlock test <test@example.org>' rsa3072 sign never
}

# The same package again as a later version, with another default in its configuration file.
# later_deb DEB VERSION OUT
later_deb() {
  local tree
  tree=$(mktemp -d) &&
    dpkg-deb --raw-extract "$1" "$tree" &&
    sed -i "s/^Version: .*/Version: $2/" "$tree/DEBIAN/control" &&
    echo '# The later version.' >>"$tree/etc/rlock/rlock.toml" &&
    dpkg-deb --root-owner-group --build "$tree" "$3" >/dev/null &&
    rm -r "$tree"
}
