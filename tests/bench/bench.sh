#!/bin/sh
# Builds the release binary and measures how fast it is: ratios of medians, with flock and redis-cli in the same run.
# Usage: [BASELINE=OTHER_RLOCK] tests/bench/bench.sh [ROUNDS]      (default 300)
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$top/build/bench
mkdir -p "$top/build"
compile() {
  cmake -S "$top" -B "$build" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$build" -j "$(nproc)" --target rlock stamp
}
# Not everywhere: see CONTRIBUTING.md, "Build and test".
compile_portable() { cmake --build "$build" --target rlock_portable; }
if ! compile >"$top/build/bench.log" 2>&1; then
  cat "$top/build/bench.log" >&2
  exit 1
fi
compile_portable >>"$top/build/bench.log" 2>&1 || echo "The portable flavour cannot be built here: see $top/build/bench.log"
export RLOCK="$build/src/rlock" PORTABLE="$build/portable/rlock" STAMP="$build/tests/bench/stamp"
cd "$top/tests/bench"
./runs.py "${1:-300}"
