#!/bin/sh
# regenerate.sh RLOCK [FOLDER]: writes the completion scripts, rlock.1 and rlock-stability.7, which the binary RLOCK makes from its
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
for page in rlock.1 rlock-stability.7; do
  "$rlock" --generate man <"$top/man/$page.in" >"$new/$page"
done

mkdir -p "$out/completions" "$out/man"
cp "$new/rlock.bash" "$new/_rlock" "$new/rlock.fish" "$out/completions"
cp "$new/rlock.1" "$new/rlock-stability.7" "$out/man"
