#!/bin/sh
# sums.sh FOLDER [KEY]: writes FOLDER/SHA256SUMS for all files of a release there and, with KEY, its signature SHA256SUMS.sig. KEY is a
# private key of ssh-keygen, or the public half of a key that ssh-agent or a security key keeps. Removes an older signature.
set -eu

[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: $0 FOLDER [KEY]" >&2 && exit 64; }
key=""
[ $# -eq 1 ] || key=$(realpath -- "$2")
cd -- "$1"
rm -f SHA256SUMS SHA256SUMS.sig
# In the order of bytes, in every locale.
LC_ALL=C
export LC_ALL
sha256sum -- * >SHA256SUMS
if [ -n "$key" ]; then
  ssh-keygen -q -Y sign -f "$key" -n rlock SHA256SUMS
fi
