#!/bin/sh
# verify.sh [--rebuild] [--signers FILE] FILE [FOLDER]: checks that FILE is as its maintainers released it. FOLDER, by default that of
# FILE, has SHA256SUMS with the checksum of FILE, and SHA256SUMS.sig, the signature by a key of packaging/allowed_signers or of the FILE
# of --signers. Needs ssh-keygen, and neither network nor root.
#   --rebuild   also builds the release from this clone and compares: minutes, on the Debian that docs/RELEASING.md names; needs root
#               or sudo to install what is missing. RLOCK_RELEASE_URL and RLOCK_PROJECT_URL as packaging/release.sh had them
# Exit codes: 0 it is, 1 it is not, or nobody can know, 64 wrong usage.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

usage() {
  echo "usage: $0 [--rebuild] [--signers FILE] FILE [FOLDER]" >&2
  exit 64
}

refuse() {
  echo "$0: $*" >&2
  exit 1
}

rebuild="" signers=$top/packaging/allowed_signers
while [ $# -gt 0 ]; do
  case $1 in
    --rebuild) rebuild=yes ;;
    --signers) [ $# -gt 1 ] || usage; signers=$2; shift ;;
    -*) usage ;;
    *) break ;;
  esac
  shift
done
[ $# -eq 1 ] || [ $# -eq 2 ] || usage
file=$1 name=$(basename -- "$1") folder=${2:-$(dirname -- "$1")}
sums=$folder/SHA256SUMS

check_signature() {
  command -v ssh-keygen >/dev/null || refuse "ssh-keygen is not installed; on Debian and Ubuntu: apt install openssh-client"
  [ -r "$sums" ] || refuse "there is no $sums; fetch it, and SHA256SUMS.sig, from the place of the release"
  [ -r "$sums.sig" ] || refuse "$sums is not signed: there is no $sums.sig; fetch it from the place of the release." \
    "Without it nobody knows who made $name"
  grep -q '^[^#]' "$signers" || refuse "$signers has no key: no release was signed when this copy of rlock was made;" \
    "fetch a newer one, or name a file with the key by --signers. Maintainers add the key in step 0 of docs/RELEASING.md"
  said=$(ssh-keygen -Y verify -f "$signers" -I release -n rlock -s "$sums.sig" <"$sums" 2>&1) ||
    refuse "$sums is not what a key of $signers has signed; use no file of this release ($said)"
  key=${said##* key }
}

check_sum() {
  case $name in
    SHA256SUMS | SHA256SUMS.sig)
      cmp -s -- "$file" "$folder/$name" || refuse "$file is not $folder/$name, whose signature is valid"
      return
      ;;
  esac
  wanted=$(NAME=$name awk 'substr($0, 67) == ENVIRON["NAME"] { print $1 }' "$sums")
  [ -n "$wanted" ] || refuse "$sums, whose signature is valid, does not name $name: it is of no release, or of another version"
  [ "$(sha256sum <"$file" | cut -c 1-64)" = "$wanted" ] ||
    refuse "$file is not the file that was released: it was damaged or changed, or is of another version than $sums; fetch it again"
}

# The commit of the version, as a clone that nobody has changed.
clone() {
  [ -e "$top/.git" ] || refuse "--rebuild needs a clone of the repository, and $top is none"
  commit=$(git -C "$top" rev-parse --quiet --verify "refs/tags/v$version^{commit}" || git -C "$top" rev-parse HEAD)
  git clone --quiet --no-checkout "$top" "$scratch/rlock"
  git -C "$scratch/rlock" checkout --quiet --detach "$commit"
  found=$(sed -n 's/^project(rlock VERSION \([0-9.]*\) .*/\1/p' "$scratch/rlock/CMakeLists.txt")
  [ "$found" = "$version" ] ||
    refuse "--rebuild needs the tag v$version or its commit: what is checked out in $top is version $found"
}

compare_rebuilt() {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  clone
  case $name in
    *arm64*) "$scratch/rlock/packaging/arm64.sh" ;;
    *) "$scratch/rlock/packaging/release.sh" ;;
  esac
  cmp -- "$file" "$scratch/rlock/dist/$name" || refuse "$file is not what commit $commit builds on this machine"
  echo "$name: commit $commit builds the same bytes"
}

[ -r "$file" ] || refuse "cannot read $file"
check_signature
check_sum
version=$(sed -n 's/^.\{66\}rlock-\([0-9][0-9.]*\)\.tar\.gz$/\1/p' "$sums")
echo "$name: as released in rlock $version, signed by the key $key"
[ -z "$rebuild" ] || compare_rebuilt
