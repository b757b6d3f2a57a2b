#!/bin/bash
# rpm.sh [SUITE…]: tests the .rpm in a bare Debian of each SUITE (bookworm). dnf installs it from a signed repository, rlock does its
# main job, dnf upgrades it to another program and downgrades it while a lock is held, and removes it. Nothing may remain. RPM is the
# package, and LATER the package of a later version. Without RPM, packaging/package.sh builds one. Without LATER, the test builds one of
# today's source and tests/compat/later.patch.
set -euo pipefail

# shellcheck source=guest.bash
. "$(dirname "$(realpath "$0")")/guest.bash"

# The package may require only the libraries of every Linux with glibc, and a shell.
check_requirements() {
  ! requirements "$@" | grep -Ev '^(lib(c|m)\.so\.6|ld-linux|rtld\(GNU_HASH\)|/bin/sh$)'
}

version_of() { rpm -qp --qf '%{VERSION}' "$1"; }

install_packages mmdebstrap rpm gnupg patch
RPM=${RPM:-$(package RPM)}
make_later RPM
old=$(version_of "$RPM") new=$(version_of "$LATER")
dpkg --compare-versions "$old" lt "$new" || { say "$LATER is no later version than $RPM" >&2 && exit 1; }
check_requirements "$RPM" "$LATER" || { say "$RPM or $LATER requires what not every Linux has" >&2 && exit 1; }
quietly "Packing what stands for the libraries" make_base "$RPM" "$LATER"
make_repositories "$RPM" "$LATER"
supplies+=("$folder/base.rpm")
for suite in "${@:-bookworm}"; do
  in_bare "$suite" rpm_guest.sh "$old" "$new"
done
