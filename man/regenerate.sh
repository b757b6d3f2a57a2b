#!/bin/sh
# regenerate.sh RLOCK [FOLDER]: writes what follows from the options table of the binary RLOCK, the completion
# scripts and rlock.1, into completions/ and man/ of FOLDER; without it, of this repository.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
rlock=$1
out=${2:-$top}

mkdir -p "$out/completions" "$out/man"
"$rlock" --generate bash >"$out/completions/rlock.bash"
"$rlock" --generate zsh >"$out/completions/_rlock"
"$rlock" --generate fish >"$out/completions/rlock.fish"
"$rlock" --generate man <"$top/man/rlock.1.in" >"$out/man/rlock.1"
