#!/bin/sh
# package.sh [DEB|RPM]: builds rlock and packs it, by default as DEB. The package is in build/package, together with the
# list of what is linked into it. Needs root or sudo only to install what is missing.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"
# shellcheck source=source.sh
. "$top/packaging/source.sh"
trap 'rm -f "$log"' EXIT

kind=${1:-DEB}
out=$top/build/package
case $kind in
  DEB) packers='debhelper build-essential' ;;
  RPM) packers='rpm dpkg-dev' ;;
  *) say "usage: $0 [DEB|RPM]" >&2 && exit 64 ;;
esac

# Makes the same bytes on every machine.
umask 022
export LC_ALL=C.UTF-8 TZ=UTC
version=$(source_version)
SOURCE_DATE_EPOCH=$(source_date)
export SOURCE_DATE_EPOCH
build=$out/$kind

unpack_source() {
  rm -rf "$build" "$out"/*."$(echo "$kind" | tr '[:upper:]' '[:lower:]')"* &&
    mkdir -p "$build" &&
    pack_source "$build/rlock-$version.tar.gz" &&
    tar -xzf "$build/rlock-$version.tar.gz" -C "$build"
}

# Without the unit tests: packaging/check.sh runs all tests.
build_deb() {
  cd "$build/rlock-$version" &&
    fill_in_debian debian &&
    DEB_BUILD_OPTIONS=nocheck DEB_BUILD_PROFILES=nocheck dpkg-buildpackage --build=binary --no-sign --jobs="$(nproc)" &&
    mv ../*.deb "$out"
}

# --noclean: the list of what is linked in is made of the build. --nodeps: the spec names the packages of Fedora; here apt has
# installed Debian's. Of the flags, too, Debian's rpm knows few.
build_rpm() {
  flags=$(DEB_BUILD_MAINT_OPTIONS=reproducible=-fixfilepath,-fixdebugpath dpkg-buildflags --get CXXFLAGS) || return
  flags="$flags $(dpkg-buildflags --get CPPFLAGS)"
  rpmbuild -bb --nodeps --noclean ${RLOCK_PROJECT_URL:+--define "project_url $RLOCK_PROJECT_URL"} --define "_topdir $build" --define "_sourcedir $build" --define "_smp_mflags -j$(nproc)" \
    --define "optflags $flags" --define '_buildhost rlock' --define 'use_source_date_epoch_as_buildtime 1' \
    --define 'clamp_mtime_to_source_date_epoch 1' \
    "$build/rlock-$version/packaging/rlock.spec" &&
    mv "$build"/RPMS/*/*.rpm "$out"
}

install_build_packages
# Words on purpose: a list of packages.
# shellcheck disable=SC2086
install_packages ninja-build python3 git $packers
quietly "Unpacking the source in $build" unpack_source
if [ "$kind" = DEB ]; then
  quietly "Building and packing" build_deb
  package=$(ls "$out"/rlock_*.deb) objects=$(ls -d "$build"/rlock-*/obj-*)
else
  quietly "Building and packing" build_rpm
  package=$(ls "$out"/rlock-[0-9]*.rpm) objects=$build/BUILD/rlock-$version/build
fi
quietly "Listing what is linked in" python3 -B "$top/packaging/sbom.py" "$objects" "$(basename "$package")" "$package.spdx.json"
ls "$package"
