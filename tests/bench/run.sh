#!/bin/sh
# Builds the release binary and prints the benchmarks: ratios of medians, the peers beside us in one run.
# Usage: tests/bench/run.sh [ROUNDS]      (default 300)
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$top/build/bench
mkdir -p "$top/build"
compile() {
  cmake -S "$top" -B "$build" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$build" -j "$(nproc)" --target rlock bench_stamp
}
if ! compile >"$top/build/bench.log" 2>&1; then
  cat "$top/build/bench.log" >&2
  exit 1
fi
/usr/bin/python3 "$top/tests/bench/bench.py" "$build" "${1:-300}"
/usr/bin/python3 "$top/tests/bench/fail_over.py" "$build"
/usr/bin/python3 "$top/tests/bench/waiters.py"
