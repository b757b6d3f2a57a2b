#!/bin/sh
# package.sh [DEB|RPM]: builds rlock and packs it, DEB where nothing is said; the package is in build/package. Needs root or
# sudo only to install what is missing.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"
trap 'rm -f "$log"' EXIT

kind=${1:-DEB}
build=$top/build/package
case $kind in
  DEB) packer=dpkg-dev ;;
  RPM) packer=rpm ;;
  *) say "usage: $0 [DEB|RPM]" >&2 && exit 64 ;;
esac

# Debian's zsh looks for the completions of packages elsewhere than others do.
zsh=share/zsh/site-functions
[ "$kind" != DEB ] || zsh=share/zsh/vendor-completions

compile() {
  cmake -S "$top" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DRLOCK_TESTS=OFF -DRLOCK_ZSH_FOLDER="$zsh" &&
    cmake --build "$build" --parallel "$(nproc)"
}

install_build_packages
install_packages "$packer" file
quietly "Building in $build" compile
cd "$build"
quietly "Packing" cpack -G "$kind"
ls "$build"/rlock[-_]*."$(echo "$kind" | tr '[:upper:]' '[:lower:]')"
