#!/bin/bash
# rpm.sh [SUITE…]: the .rpm in a bare Debian of each SUITE (bookworm), by dnf from a signed repository: installed, its main job,
# upgraded and downgraded while a lock is held, removed, and what it leaves. RPM is the package; without it packaging/package.sh makes
# one. Needs root. Nothing stays but what packaging/package.sh leaves.
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

# What the package asks of other packages: the libraries of every Linux with glibc, a shell, and nothing else.
other_requirements() {
  rpm -qp --requires "$RPM" | grep -v '^rpmlib(\|^config(rlock)' | sort -u
}

check_requirements() {
  ! other_requirements | grep -Ev '^(lib(c|m)\.so\.6|ld-linux|rtld\(GNU_HASH\)|/bin/sh$)'
}

# packs OPTION… SPEC: in a folder of its own; the package goes to where it is wanted.
pack() {
  rpmbuild -bb --quiet --nodeps --define "_topdir $folder/rpmbuild" "$@"
}

make_base() {
  {
    printf 'Name: debian-base\nVersion: 1\nRelease: 1\nSummary: What dpkg has installed\nLicense: MIT\nBuildArch: noarch\nAutoReqProv: no\n'
    other_requirements | sed 's/^/Provides: /'
    printf '%%description\nStands for the libraries of the guest.\n%%files\n'
  } >"$folder/base.spec"
  pack "$folder/base.spec" && mv "$folder"/rpmbuild/RPMS/noarch/*.rpm "$folder/base.rpm"
}

# The same files again as a later release, with another default in its configuration file.
make_later() {
  awk -v rpm="$RPM" '
    /^Release:/ { $0 = "Release: 2" }
    /^(Source0|BuildRequires):/ { next }
    /^%(prep|build|check)$/ { skip = 1 }
    /^%install$/ { print; print "cd %{buildroot}; rpm2cpio " rpm " | cpio -idm --quiet"; print "echo \"# Later.\" >>etc/rlock/rlock.toml"; skip = 1; next }
    /^%(postun|files|changelog|description)$/ { skip = 0 }
    /^%license/ { print "/usr/share/licenses/rlock*"; next }
    !skip' "$top/packaging/rlock.spec" >"$folder/later.spec"
  pack "$folder/later.spec" && mv "$folder"/rpmbuild/RPMS/*/rlock-*.rpm "$folder"
}

try_suite() {
  quietly "Installing a bare $1" make_guest "$folder/guest" "$1"
  cp -r "$folder/old" "$folder/new" "$folder/base.rpm" "$here/steps.sh" "$here/rpm_guest.sh" "$folder/guest/srv"
  in_guest "$folder/guest" sh /srv/rpm_guest.sh 1 2
  rm -rf --one-file-system "$folder/guest"
}

[ "$(id -u)" -eq 0 ] || { say "$0: needs root" >&2 && exit 77; }
install_packages mmdebstrap rpm rpm2cpio cpio gnupg
if [ -z "${RPM:-}" ]; then
  "$top/packaging/package.sh" RPM
  RPM=$(ls "$top"/build/package/rlock-[0-9]*.rpm)
fi
check_requirements || { say "$RPM requires what not every Linux has" >&2 && exit 1; }
quietly "Packing what stands for the libraries" make_base
quietly "Packing a later release" make_later
make_key "$folder/key"
export GNUPGHOME=$folder/key
"$top/packaging/repository.sh" "$folder/old" file:///srv/old test@example.org "$RPM"
"$top/packaging/repository.sh" "$folder/new" file:///srv/new test@example.org "$RPM" "$folder"/rlock-*.rpm
gpgconf --kill all
for suite in "${@:-bookworm}"; do
  say "== $suite"
  try_suite "$suite"
done
