# shellcheck shell=bash disable=SC2016
# Functions for the tests that install rlock in a bare Debian. These tests need root. They remove $folder at their end, and leave only the
# packages that packaging/package.sh has built.

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
top=$(dirname "$(dirname "$here")")
# shellcheck source=../debian.sh
. "$top/packaging/debian.sh"
# shellcheck source=../source.sh
. "$top/packaging/source.sh"

[ "$(id -u)" -eq 0 ] || { say "$0: needs root" >&2 && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder" "$log"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Where apt of this machine gets the packages of Debian itself.
debian_mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' |
    sed -n '1s,/*$,,p'
}

# make_guest FOLDER SUITE: from MIRROR, or from where apt of this machine gets Debian's packages. For a suite of another distribution,
# KEYRING has the keys of MIRROR, and COMPONENTS says which to use. BASE is a tarball of one made before.
make_guest() {
  local mirror=${MIRROR:-$(debian_mirror)} proxy=""
  if [ -n "${BASE:-}" ]; then
    mkdir -p "$1" && tar -xf "$BASE" -C "$1"
  else
    mmdebstrap --quiet --mode=root --variant=minbase --include=apt --components="${COMPONENTS:-main}" ${KEYRING:+--keyring="$KEYRING"} \
      "$2" "$1" "$mirror"
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
  unshare --mount --propagation private --pid --fork --kill-child sh -c '
    folder=$1; shift
    mount --bind "$folder" "$folder" && cd "$folder" && mount -t proc proc proc && mount --rbind /dev dev &&
      pivot_root . . && umount --lazy . &&
      exec chroot . env -i HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" </dev/null' sh "$folder" "$@"
}

# package KIND [SOURCE]: the path of the package that packaging/package.sh makes.
package() {
  local source=${2:-$top}
  "$source/packaging/package.sh" "$1" >&2 || return
  case $1 in
    DEB) ls "$source"/build/package/rlock_*.deb ;;
    RPM) ls "$source"/build/package/rlock-[0-9]*.rpm ;;
  esac
}

# Another program, which stores more, as the next version, with another default in its configuration file.
unpack_later() (
  version=$(source_version) next=$(source_version | awk -F . '{ print $1 "." $2 + 1 ".0" }')
  mkdir "$folder/later" &&
    pack_source "$folder/later.tar.gz" &&
    tar -xzf "$folder/later.tar.gz" -C "$folder/later" --strip-components=1 &&
    cd "$folder/later" &&
    patch --batch --forward --fuzz=0 -p1 <tests/compat/later.patch &&
    sed -i "s/^project(rlock VERSION $version /project(rlock VERSION $next /" CMakeLists.txt &&
    sed -i "1s/^rlock ($version-/rlock ($next-/" packaging/debian/changelog &&
    sed -i "s/^\(Version: *\)$version$/\1$next/; s/^\(\* .* - \)$version-/\1$next-/" packaging/rlock.spec &&
    echo '# The later version.' >>packaging/rlock.toml.example
)

# make_later KIND: sets LATER to the package of that program, unless the caller has set it.
make_later() {
  [ -z "${LATER:-}" ] || return 0
  quietly "Unpacking the source of a later version" unpack_later
  # Not of a commit.
  LATER=$(RLOCK_COMMIT="" package "$1" "$folder/later")
}

# What a .rpm asks of other packages.
requirements() {
  rpm -qp --requires "$@" | grep -v '^rpmlib(\|^config(rlock)' | sort -u
}

# make_base RPM…: supplies base.rpm, which stands for the libraries of the guest: dpkg has installed them, and dnf does not know that.
make_base() {
  {
    printf 'Name: debian-base\nVersion: 1\nRelease: 1\nSummary: What dpkg has installed\nLicense: MIT\nBuildArch: noarch\nAutoReqProv: no\n'
    requirements "$@" | sed 's/^/Provides: /'
    printf '%%description\nStands for the libraries of the guest.\n%%files\n'
  } >"$folder/base.spec"
  rpmbuild -bb --quiet --define "_topdir $folder/rpmbuild" "$folder/base.spec" && mv "$folder"/rpmbuild/RPMS/noarch/*.rpm "$folder/base.rpm"
}

# What in_bare copies to /srv.
supplies=()

# make_repositories PACKAGE [LATER]: supplies old, which has PACKAGE alone, and new, which has LATER, too; signed with a key that lives
# as long as the test.
make_repositories() {
  export GNUPGHOME=$folder/key
  mkdir -m 700 "$GNUPGHOME"
  gpg --batch --quiet --passphrase '' --quick-generate-key 'rlock test <test@example.org>' rsa3072 sign never
  "$top/packaging/repository.sh" "$folder/old" file:///srv/old test@example.org "$1"
  "$top/packaging/repository.sh" "$folder/new" file:///srv/new test@example.org "$@"
  gpgconf --kill all
  supplies+=("$folder/old" "$folder/new")
}

# in_bare SUITE SCRIPT ARGUMENT…: runs SCRIPT of this folder in a bare Debian of SUITE.
in_bare() {
  local suite=$1 script=$2
  shift 2
  say "== $suite"
  quietly "Installing a bare $suite" make_guest "$folder/guest" "$suite"
  cp -r "${supplies[@]}" "$here/steps.sh" "$here/$script" "$folder/guest/srv"
  in_guest "$folder/guest" sh "/srv/$script" "$@"
  rm -rf --one-file-system "$folder/guest"
}
