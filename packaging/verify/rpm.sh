#!/bin/bash
# rpm.sh [SUITE…]: tests the .rpm in a bare Debian of each SUITE (bookworm). dnf installs it from a signed repository, rlock does its
# main job, dnf upgrades and downgrades it while a lock is held, and removes it. Nothing may remain. RPM is the package; without it
# packaging/package.sh builds one.
set -euo pipefail

# shellcheck source=guest.bash
. "$(dirname "$(realpath "$0")")/guest.bash"

# The package may require only the libraries of every Linux with glibc, and a shell.
other_requirements() {
  rpm -qp --requires "$RPM" | grep -v '^rpmlib(\|^config(rlock)' | sort -u
}

check_requirements() {
  ! other_requirements | grep -Ev '^(lib(c|m)\.so\.6|ld-linux|rtld\(GNU_HASH\)|/bin/sh$)'
}

# pack OPTION… SPEC: in a folder of its own; the package goes to where it is wanted.
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

install_packages mmdebstrap rpm rpm2cpio cpio gnupg
RPM=${RPM:-$(package RPM)}
check_requirements || { say "$RPM requires what not every Linux has" >&2 && exit 1; }
quietly "Packing what stands for the libraries" make_base
quietly "Packing a later release" make_later
make_repositories "$RPM" "$folder"/rlock-*.rpm
supplies+=("$folder/base.rpm")
for suite in "${@:-bookworm}"; do
  in_bare "$suite" rpm_guest.sh 1 2
done
