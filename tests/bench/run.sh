#!/bin/sh
# Builds the release binary and prints the benchmarks: ratios of medians, the peers beside us in one run.
# Usage: [BASELINE=OTHER_RLOCK] tests/bench/run.sh [ROUNDS]      (default 300)
# On a busy machine run it as root with `chrt -f 10`: nothing else then gets the processors that it needs.
# With BASELINE what runs cost the server is measured for that binary, too, in turn with ours.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$top/build/bench
mkdir -p "$top/build"
compile() {
  cmake -S "$top" -B "$build" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$build" -j "$(nproc)" --target rlock bench_stamp
}
# Not everywhere: see CONTRIBUTING.md, "Build and test".
compile_portable() { cmake --build "$build" --target rlock_portable; }
if ! compile >"$top/build/bench.log" 2>&1; then
  cat "$top/build/bench.log" >&2
  exit 1
fi
compile_portable >>"$top/build/bench.log" 2>&1 || echo "The portable flavour cannot be built here: see $top/build/bench.log"
/usr/bin/python3 "$top/tests/bench/bench.py" "$build" "${1:-300}"
/usr/bin/python3 "$top/tests/bench/server_time.py" "$build" "${1:-300}"
/usr/bin/python3 "$top/tests/bench/fail_over.py" "$build"
/usr/bin/python3 "$top/tests/bench/reading.py" "$build"
