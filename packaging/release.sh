#!/bin/bash
# release.sh [KEY]: every artefact of the version that CMakeLists.txt names, of the commit that is checked out, in dist/: the source, the
# .deb, the .rpm, the portable program, its image, what is in each (SPDX), what Homebrew, Arch Linux, Alpine, Fedora and Nix build
# packages from, the action for GitHub and the component for GitLab, and SHA256SUMS; with KEY, as packaging/sums.sh takes it, also the signature. RLOCK_RELEASE_URL says where the files will be;
# without it, those of other distributions expect them in their own folder. RLOCK_PROJECT_URL is the project's address: the programs print
# it, and the files for packagers name it as the home page. Run on the same Debian, it makes the same bytes. Needs root
# or sudo only to install what is missing. To install from a repository: packaging/repository.sh.
set -euo pipefail

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"
# shellcheck source=source.sh
. "$top/packaging/source.sh"
trap 'rm -f "$log"' EXIT

umask 022
export LC_ALL=C.UTF-8 TZ=UTC
version=$(source_version)
SOURCE_DATE_EPOCH=$(source_date)
export SOURCE_DATE_EPOCH
architecture=$(dpkg --print-architecture)
dist=$top/dist
build=$top/build/portable
program=rlock-linux-$architecture

refuse() {
  say "$0: $*" >&2
  exit 1
}

build_portable() {
  CXXFLAGS="-ffile-prefix-map=$top=." cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRLOCK_TESTS=OFF \
    -DRLOCK_PORTABLE=ON -DCMAKE_UNITY_BUILD=ON &&
    ninja -C "$build" rlock &&
    strip -o "$dist/$program" "$build/src/rlock" &&
    python3 -B "$top/packaging/sbom.py" "$build" "$program" "$dist/$program.spdx.json"
}

check_artefacts() {
  python3 -B "$top/tests/packaging/hardening.py" --static "$dist/$program" "$build/compile_commands.json" &&
    [ "$("$dist/$program" --version | head -n 1)" = "rlock $version (commit $RLOCK_COMMIT)" ] &&
    [ "$("$dist/$program" --version | sed -n 's/^packages, .*: //p')" = "${RLOCK_PROJECT_URL:-}" ]
}

check_signed() {
  for file in "$dist"/*; do
    "$top/packaging/verify.sh" "$file" || return
  done
}

[ $# -le 1 ] || { say "usage: $0 [KEY]" >&2 && exit 64; }
[ $# -eq 0 ] || [ -r "$1" ] || refuse "cannot read the key $1"
[ -e "$top/.git" ] || refuse "needs a clone: a release is of a commit"
[ -z "$(git -C "$top" status --porcelain)" ] || refuse "there are changes that are not committed: git status"
"$top/tests/packaging/versions.sh" >/dev/null || refuse "not one version: tests/packaging/versions.sh"

install_build_packages
install_packages ninja-build python3 binutils git
rm -rf "$dist" "$top/build/package" "$build"
mkdir -p "$dist"
say "rlock $version, commit $RLOCK_COMMIT"
quietly "Packing the source" pack_source "$dist/rlock-$version.tar.gz"
quietly "Building $program" build_portable
quietly "Making its image" python3 -B "$top/packaging/image.py" "$dist/$program" "$version" "$architecture" "$dist/rlock-$version-$architecture.oci.tar"
"$top/packaging/package.sh" DEB
"$top/packaging/package.sh" RPM
cp "$top"/build/package/*.deb* "$top"/build/package/*.rpm* "$dist"
quietly "Filling in the files for other distributions and for CI" fill_in "$dist"
quietly "Checking what was made" check_artefacts
"$top/packaging/sums.sh" "$dist" "$@"
[ $# -eq 0 ] || quietly "Checking the signature of each file" check_signed
say
cat "$dist/SHA256SUMS"
