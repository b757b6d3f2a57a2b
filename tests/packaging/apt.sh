#!/bin/bash
# apt.sh [SUITE…]: the .deb in a bare Debian of each SUITE (bookworm), from a signed repository: installed, its main job, upgraded
# and downgraded while a lock is held, purged, and what it leaves. DEB is the package; without it packaging/package.sh makes one.
# Needs root. Nothing stays but what packaging/package.sh leaves.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
# shellcheck source=../../packaging/debian.sh
. "$top/packaging/debian.sh"
# shellcheck source=guest.bash
. "$here/guest.bash"

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder" "$log"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

make_repositories() {
  old=$(dpkg-deb --field "$DEB" Version)
  new=$old+later
  later_deb "$DEB" "$new" "$folder/rlock_${new}_$(dpkg-deb --field "$DEB" Architecture).deb"
  make_key "$folder/key"
  export GNUPGHOME=$folder/key
  "$top/packaging/repository.sh" "$folder/old" file:/srv/old test@example.org "$DEB"
  "$top/packaging/repository.sh" "$folder/new" file:/srv/new test@example.org "$DEB" "$folder"/rlock_*.deb
  gpgconf --kill all
}

try_suite() {
  quietly "Installing a bare $1" make_guest "$folder/guest" "$1"
  cp -r "$folder/old" "$folder/new" "$here/steps.sh" "$here/apt_guest.sh" "$folder/guest/srv"
  in_guest "$folder/guest" sh /srv/apt_guest.sh "$old" "$new"
  rm -rf --one-file-system "$folder/guest"
}

[ "$(id -u)" -eq 0 ] || { say "$0: needs root" >&2 && exit 77; }
install_packages mmdebstrap dpkg-dev gnupg
if [ -z "${DEB:-}" ]; then
  "$top/packaging/package.sh" DEB
  DEB=$(ls "$top"/build/package/rlock_*.deb)
fi
make_repositories
for suite in "${@:-bookworm}"; do
  say "== $suite"
  try_suite "$suite"
done
