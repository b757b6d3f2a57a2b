#!/bin/sh
# regenerate.sh RLOCK [FOLDER]: writes the completion scripts and rlock.1, which the binary RLOCK makes from its
# options table, into completions/ and man/ of FOLDER; without it, of this repository.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
rlock=$1
out=${2:-$top}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

# A binary that does not fit the template fails here, before anything is overwritten.
"$rlock" --generate bash >"$new/rlock.bash"
"$rlock" --generate zsh >"$new/_rlock"
"$rlock" --generate fish >"$new/rlock.fish"
"$rlock" --generate man <"$top/man/rlock.1.in" >"$new/rlock.1"

mkdir -p "$out/completions" "$out/man"
cp "$new/rlock.bash" "$new/_rlock" "$new/rlock.fish" "$out/completions"
cp "$new/rlock.1" "$out/man"
