#!/bin/bash
# arm64.sh: the portable program for arm64, made by the cross compiler of Debian 12 on amd64; its image and what is in it (SPDX). Its
# main job is tried on an emulated machine. All of it goes to dist/, whose SHA256SUMS then lists it, without a signature. Needs root: the
# compiler needs packages of another architecture, which are installed in a bare Debian 12 in a folder that is removed at the end.
set -euo pipefail

# shellcheck source=verify/guest.bash
. "$(dirname "$(realpath "$0")")/verify/guest.bash"

umask 022
export LC_ALL=C.UTF-8 TZ=UTC
version=$(source_version)
SOURCE_DATE_EPOCH=$(source_date)
export SOURCE_DATE_EPOCH
dist=$top/dist
program=rlock-linux-arm64
guest=$folder/guest machine=$folder/machine

# With the updates and the security updates, as this machine's apt knows them: OpenSSL and libc become a part of the program.
# shellcheck disable=SC2016  # apt-get expands it
make_builder() {
  make_guest "$guest" bookworm &&
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
    sort -u >"$guest/etc/apt/sources.list" &&
    pack_source "$guest/srv/source.tar.gz" &&
    cp "$here/arm64_guest.sh" "$guest/srv"
}

# Unpacked, not installed: its programs do not run here.
make_machine() {
  mmdebstrap --mode=root --variant=extract --architectures=arm64 --include=redis-tools,busybox-static,linux-image-cloud-arm64 bookworm \
    "$machine" "${MIRROR:-$(debian_mirror)}" &&
    mkdir -p "$machine/srv" &&
    mv "$machine"/boot/vmlinuz-* "$guest/srv/kernel" &&
    ln -s redis-check-rdb "$machine/usr/bin/redis-server" &&
    install "$guest/srv/dist/$program" "$machine/usr/bin/rlock" &&
    install "$here/arm64_init.sh" "$machine/init" &&
    cp "$here/steps.sh" "$machine/srv" &&
    (cd "$machine" && rm -rf boot lib/modules usr/share var) &&
    (cd "$machine" && find . | cpio --create --format=newc --quiet) | gzip -1 >"$guest/srv/initrd"
}

emulate() {
  in_guest "$guest" sh /srv/arm64_guest.sh emulate | tee "$folder/console" | grep --line-buffered '^ok - \|^FAILED'
  grep -q '^passed' "$folder/console" || { cat "$folder/console" >&2 && exit 1; }
}

install_packages mmdebstrap git python3 cpio
quietly "Installing a bare bookworm" make_builder
quietly "Installing the cross compiler" in_guest "$guest" sh /srv/arm64_guest.sh install
quietly "Building $program" in_guest "$guest" env SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" RLOCK_COMMIT="${RLOCK_COMMIT:-}" \
  RLOCK_PROJECT_URL="${RLOCK_PROJECT_URL:-}" sh /srv/arm64_guest.sh build
quietly "Making a machine of arm64" make_machine
emulate
mkdir -p "$dist"
cp "$guest/srv/dist/"* "$dist"
quietly "Making its image" python3 -B "$top/packaging/image.py" "$dist/$program" "$version" arm64 "$dist/rlock-$version-arm64.oci.tar"
"$top/packaging/sums.sh" "$dist"
