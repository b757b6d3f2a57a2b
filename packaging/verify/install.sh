#!/bin/bash
# install.sh [SUITE…]: types what README.md says about the files of a release in a bare Debian of each SUITE (bookworm), in a folder with such files, which
# a key of this test has signed. Each line is undone as its comment says, after a run under a lock. A damaged file, the signature of
# another key, and a missing file are refused. DIST is the folder of the artefacts that packaging/release.sh made (dist).
set -euo pipefail

# shellcheck source=guest.bash
. "$(dirname "$(realpath "$0")")/guest.bash"

dist=${DIST:-$top/dist}
[ -e "$dist/SHA256SUMS" ] || { say "$0: no artefacts in $dist: run packaging/release.sh" >&2 && exit 77; }

# The files of a release, and the clone, whose only key is that of this test.
make_release() {
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$folder/key" &&
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$folder/other" &&
    cp -r "$dist" "$folder/release" &&
    "$top/packaging/sums.sh" "$folder/release" "$folder/other" &&
    mv "$folder/release/SHA256SUMS.sig" "$folder/other.sig" &&
    "$top/packaging/sums.sh" "$folder/release" "$folder/key" &&
    pack_source "$folder/source.tar.gz" &&
    mkdir "$folder/release/rlock" &&
    tar -xzf "$folder/source.tar.gz" -C "$folder/release/rlock" --strip-components=1 &&
    echo "release namespaces=\"rlock\" $(cat "$folder/key.pub")" >"$folder/release/rlock/packaging/allowed_signers"
}

install_packages mmdebstrap openssh-client rpm
quietly "Signing a release" make_release
quietly "Packing what stands for the libraries" make_base "$dist"/rlock-[0-9]*.rpm
supplies+=("$folder/release" "$folder/other.sig" "$folder/base.rpm")
for suite in "${@:-bookworm}"; do
  in_bare "$suite" install_guest.sh
done
