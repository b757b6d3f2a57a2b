#!/bin/bash
# mixed.sh SUITE: this suite of tests/cli, with a random one of the programs FIRST and SECOND for each call of rlock. EITHER is the program
# that picks one. To pick the same ones again: EITHER_SEED=N. Cases with the tag one_program are left out: they name a script by its digest, or
# a text that the last release does not print.
set -euo pipefail

[ -x "$SECOND" ] || { echo "there is no $SECOND" >&2 && exit 77; }
export EITHER_SEED=${EITHER_SEED:-$RANDOM} FIRST SECOND
EITHER_CALLS=$(mktemp)
export EITHER_CALLS
trap 'rm -f "$EITHER_CALLS"' EXIT
echo "EITHER_SEED=$EITHER_SEED: $("$FIRST" --version | head -n 1), $("$SECOND" --version | head -n 1)"
RLOCK=$EITHER bats --print-output-on-failure --filter-tags '!one_program' "$(dirname "$0")/../cli/$1.bats"
first=$(tr -d 2 <"$EITHER_CALLS" | wc -c) second=$(tr -d 1 <"$EITHER_CALLS" | wc -c)
echo "$first calls of the first program, $second of the second"
[ "$first" -gt 0 ] && [ "$second" -gt 0 ]
