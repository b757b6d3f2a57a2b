#!/bin/bash
# apt.sh [SUITE…]: tests the .deb in a bare Debian of each SUITE (bookworm). apt installs it from a signed repository, rlock does its
# main job, apt upgrades it to another version and downgrades it while a lock is held, and purges it. Nothing may remain.
#
# DEB is the package; without it packaging/package.sh builds one. LATER is the package of a later version; without it, this script
# builds one from today's source and tests/compat/later.patch. URL is a server, which a suite needs if its redis-server is older than 6.2.
#
# On Ubuntu: MIRROR=URL COMPONENTS=main,universe KEYRING=.../ubuntu-archive-keyring.gpg apt.sh noble
set -euo pipefail

# shellcheck source=guest.bash
. "$(dirname "$(realpath "$0")")/guest.bash"
# shellcheck source=../source.sh
. "$top/packaging/source.sh"

# Another program, which stores more, as the next version, with another default in its configuration file.
unpack_later() (
  pack_source "$folder/source.tar.gz" &&
    tar -xzf "$folder/source.tar.gz" -C "$folder" &&
    cd "$later" &&
    patch --batch --forward --fuzz=0 -p1 <tests/compat/later.patch &&
    sed -i "s/^project(rlock VERSION $version /project(rlock VERSION $next /" CMakeLists.txt &&
    sed -i "1s/^rlock ($version-/rlock ($next-/" packaging/debian/changelog &&
    echo '# The later version.' >>packaging/rlock.toml.example
)

make_later() {
  later=$folder/rlock-$version
  quietly "Unpacking the source of a later version" unpack_later
  # Not of a commit.
  RLOCK_COMMIT="" "$later/packaging/package.sh" DEB >&2
  LATER=$(ls "$later"/build/package/rlock_*.deb)
}

install_packages mmdebstrap dpkg-dev gnupg patch
version=$(source_version) next=$(source_version | awk -F . '{ print $1 "." $2 + 1 ".0" }')
DEB=${DEB:-$(package DEB)}
[ -n "${LATER:-}" ] || make_later
old=$(dpkg-deb --field "$DEB" Version) new=$(dpkg-deb --field "$LATER" Version)
dpkg --compare-versions "$old" lt "$new" || { say "$LATER is no later version than $DEB" >&2 && exit 1; }
make_repositories "$DEB" "$LATER"
for suite in "${@:-bookworm}"; do
  in_bare "$suite" apt_guest.sh "$old" "$new" "${URL:-}"
done
