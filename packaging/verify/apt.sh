#!/bin/bash
# apt.sh [SUITE…]: the .deb in a bare Debian of each SUITE (bookworm), from a signed repository: installed, its main job, upgraded
# and downgraded while a lock is held, purged, and what it leaves. DEB is the package; without it packaging/package.sh makes one. A
# suite whose redis-server is older than 6.2 needs the URL of another one.
#
# On Ubuntu: MIRROR=URL COMPONENTS=main,universe KEYRING=.../ubuntu-archive-keyring.gpg apt.sh noble
set -euo pipefail

# shellcheck source=guest.bash
. "$(dirname "$(realpath "$0")")/guest.bash"

# The same package again as a later version, with another default in its configuration file.
make_later() {
  dpkg-deb --raw-extract "$DEB" "$folder/later" &&
    sed -i "s/^Version: .*/Version: $new/" "$folder/later/DEBIAN/control" &&
    echo '# The later version.' >>"$folder/later/etc/rlock/rlock.toml" &&
    dpkg-deb --root-owner-group --build "$folder/later" "$folder/rlock_${new}_$(dpkg-deb --field "$DEB" Architecture).deb"
}

install_packages mmdebstrap dpkg-dev gnupg
DEB=${DEB:-$(package DEB)}
old=$(dpkg-deb --field "$DEB" Version)
new=$old+later
quietly "Packing a later version" make_later
make_repositories "$DEB" "$folder"/rlock_*.deb
for suite in "${@:-bookworm}"; do
  in_bare "$suite" apt_guest.sh "$old" "$new" "${URL:-}"
done
