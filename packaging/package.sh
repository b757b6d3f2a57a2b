#!/bin/sh
# package.sh [DEB|RPM]: builds rlock and packs it, DEB where nothing is said; the package is in build/package. Needs what try.sh
# installs and, for a .deb, dpkg-dev, for an .rpm, rpmbuild.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
kind=${1:-DEB}
build=$top/build/package

# Debian's zsh looks for the completions of packages elsewhere than others do.
zsh=share/zsh/site-functions
[ "$kind" != DEB ] || zsh=share/zsh/vendor-completions

cmake -S "$top" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DRLOCK_TESTS=OFF -DRLOCK_ZSH_FOLDER="$zsh"
cmake --build "$build" --parallel "$(nproc)"
cd "$build"
cpack -G "$kind"
