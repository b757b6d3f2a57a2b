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

install_packages mmdebstrap dpkg-dev gnupg patch
DEB=${DEB:-$(package DEB)}
make_later DEB
old=$(dpkg-deb --field "$DEB" Version) new=$(dpkg-deb --field "$LATER" Version)
dpkg --compare-versions "$old" lt "$new" || { say "$LATER is no later version than $DEB" >&2 && exit 1; }
make_repositories "$DEB" "$LATER"
for suite in "${@:-bookworm}"; do
  in_bare "$suite" apt_guest.sh "$old" "$new" "${URL:-}"
done
