#!/bin/bash
# verify.sh: packaging/verify.sh accepts every file of a signed release, without a network, and none after one flipped byte. The release has
# the names of what packaging/release.sh makes, the real source, and a key of this test; what --rebuild builds are other bytes. Without
# ssh-keygen it exits with 77.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
# shellcheck source=../../packaging/source.sh
. "$top/packaging/source.sh"
# shellcheck source=../../packaging/verify/steps.sh
. "$top/packaging/verify/steps.sh"
command -v ssh-keygen >/dev/null || { echo "skipped: ssh-keygen is not installed"; exit 77; }
trap 'rm -rf --one-file-system "$scratch"' EXIT

version=$(source_version)
architecture=$(dpkg --print-architecture)
dist=$scratch/dist
signers=$scratch/allowed_signers

# new_key FILE: a key, and FILE.signers, which allows it alone.
new_key() {
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$1"
  echo "release namespaces=\"rlock\" $(cat "$1.pub")" >"$1.signers"
}

make_release() {
  mkdir "$dist"
  pack_source "$dist/rlock-$version.tar.gz"
  for name in "rlock-linux-$architecture" rlock-linux-arm64 "rlock-$version-$architecture.oci.tar" "rlock_${version}_$architecture.deb" \
    "rlock-$version-1.x86_64.rpm"; do
    head -c 4096 /dev/urandom >"$dist/$name"
    echo '{"spdxVersion": "SPDX-2.3"}' >"$dist/$name.spdx.json"
  done
  fill_in "$dist"
}

verify() {
  "$top/packaging/verify.sh" --signers "$signers" "$@"
}

# flip FILE: its middle byte. Twice, and it is as it was.
flip() {
  local at byte
  at=$(($(stat -c %s "$1") / 2))
  byte=$(od -An -tu1 -j "$at" -N 1 "$1")
  printf '%b' "\\x$(printf %x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}

new_key "$scratch/key"
cp "$scratch/key.signers" "$signers"
make_release
"$top/packaging/sums.sh" "$dist"
expect 1 verify "$dist/rlock-linux-$architecture"
has "is not signed: there is no $dist/SHA256SUMS.sig; fetch it"
step "a release that nobody has signed is refused, and the message names the file that is missing"

"$top/packaging/sums.sh" "$dist" "$scratch/key"
# Where the kernel allows it, each of them without a network.
offline=()
! unshare --net true 2>/dev/null || offline=(unshare --net)
files=("$dist"/*)
[ "${#files[@]}" -ge 19 ]
for file in "${files[@]}"; do
  expect 0 "${offline[@]}" "$top/packaging/verify.sh" --signers "$signers" "$file"
  has "$(basename "$file"): as released in rlock $version, signed by the key SHA256:"
done
step "each of ${#files[@]} files of a signed release is accepted"

for file in "${files[@]}"; do
  flip "$file"
  expect 1 verify "$file"
  flip "$file"
  expect 0 verify "$file"
done
step "none of them is after one flipped byte"

mkdir "$scratch/elsewhere"
cp "$dist/rlock-linux-$architecture" "$dist/SHA256SUMS" "$scratch/elsewhere"
expect 0 verify "$scratch/elsewhere/rlock-linux-$architecture" "$dist"
expect 0 verify "$scratch/elsewhere/SHA256SUMS" "$dist"
echo >>"$scratch/elsewhere/SHA256SUMS"
expect 1 verify "$scratch/elsewhere/SHA256SUMS" "$dist"
expect 1 verify "$scratch/elsewhere/no-such-file" "$dist"
echo other >"$scratch/elsewhere/rlock-linux-riscv64"
expect 1 verify "$scratch/elsewhere/rlock-linux-riscv64" "$dist"
has "does not name rlock-linux-riscv64"
step "the file and its checksums may be in different folders; a file that the release does not name is refused"

# An attacker who can replace a file of the release can replace its checksum, too.
cp -r "$dist" "$scratch/swapped"
flip "$scratch/swapped/rlock-linux-$architecture"
(cd "$scratch/swapped" && rm SHA256SUMS && sha256sum -- * >"$scratch/sums" && mv "$scratch/sums" SHA256SUMS)
expect 1 verify "$scratch/swapped/rlock-linux-$architecture"
has "is not what a key of $signers has signed; use no file of this release"
new_key "$scratch/other"
"$top/packaging/sums.sh" "$scratch/swapped" "$scratch/other"
expect 1 verify "$scratch/swapped/rlock-linux-$architecture"
has "is not what a key of $signers has signed"
signers=$scratch/other.signers expect 0 verify "$scratch/swapped/rlock-linux-$architecture"
signers=$scratch/other.signers expect 1 verify "$dist/rlock-linux-$architecture"
step "checksums that somebody else has made or signed are refused"

rm "$scratch/swapped/SHA256SUMS.sig"
ssh-keygen -q -Y sign -f "$scratch/key" -n git "$scratch/swapped/SHA256SUMS" 2>/dev/null
expect 1 verify "$scratch/swapped/rlock-linux-$architecture"
step "a signature that the key has made for another purpose is refused"

"$top/packaging/sums.sh" "$scratch/swapped" "$scratch/key"
expect 1 verify "$dist/rlock-linux-$architecture" "$scratch/swapped"
has "or is of another version than"
step "a file of one release is refused by the checksums of another one"

expect 1 "$top/packaging/verify.sh" --signers /dev/null "$dist/SHA256SUMS"
has "/dev/null has no key"
has "step 0 of docs/RELEASING.md"
expect 0 grep -Eq '^0\. .*key' "$top/docs/RELEASING.md"
for words in "" "--signers" "--no-such-option x" "a b c"; do
  # Words on purpose.
  # shellcheck disable=SC2086
  expect 64 "$top/packaging/verify.sh" $words
done
step "without a key, or with wrong words, the message says what is missing"

# A repository whose release takes no time.
repository=$scratch/repository
mkdir -p "$repository/packaging"
cp "$top/packaging/verify.sh" "$repository/packaging"
echo "project(rlock VERSION $version LANGUAGES CXX)" >"$repository/CMakeLists.txt"
printf '#!/bin/sh\nmkdir dist && cp %s/* dist\n' "$dist" >"$repository/packaging/release.sh"
sed -i '2s,^,cd "$(dirname "$0")/.." \&\& ,' "$repository/packaging/release.sh"
chmod +x "$repository/packaging/release.sh"
as_somebody() { git -C "$repository" -c user.name=somebody -c user.email=somebody@example.org -c commit.gpgsign=false "$@"; }
commit_all() { as_somebody add --all && as_somebody commit --quiet --message "$1"; }
as_somebody init --quiet
commit_all "version $version"
rebuild() { "$repository/packaging/verify.sh" --rebuild --signers "$signers" "$@"; }
expect 0 rebuild "$dist/rlock-linux-$architecture"
has "builds the same bytes"
as_somebody tag "v$version"
sed -i 's/VERSION [0-9.]*/VERSION 99.0/' "$repository/CMakeLists.txt"
commit_all "a later version"
expect 0 rebuild "$dist/rlock-linux-$architecture"
as_somebody tag --delete "v$version" >/dev/null
expect 1 rebuild "$dist/rlock-linux-$architecture"
has "needs the tag v$version or its commit"
as_somebody reset --quiet --hard HEAD^
echo 'for file in dist/*; do echo >>"$file"; done' >>"$repository/packaging/release.sh"
commit_all "other bytes"
expect 1 rebuild "$dist/rlock-linux-$architecture"
has "is not what commit"
rm -rf "$repository/.git"
expect 1 rebuild "$dist/rlock-linux-$architecture"
has "needs a clone"
step "--rebuild builds the commit of the version and compares the bytes"
