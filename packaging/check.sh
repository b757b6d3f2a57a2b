#!/bin/sh
# check.sh: builds rlock as it is released and runs the tests that find most mistakes, on a bare Debian 12 or 13: seven minutes.
#   --commit    all others that a commit must pass, and those of what parses and decides under a sanitizer: twenty minutes more
#   --nightly   what is left: more seeds, longer, other servers, threads under a sanitizer, clang-tidy of all files, each file compiled by itself
#   --install   installs what all tests need, and runs none
# For speed the first two compile all files of a folder as one. Needs root or sudo only to install what is missing. Closes with what was skipped
# or repeated, how to repeat what failed, and the counts.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"
trap 'rm -f "$log"' EXIT

build=$top/build/check
case $* in
  '') part=core ;;
  --commit | --nightly | --install) part=${1#--} ;;
  *) say "usage: packaging/check.sh [--commit | --nightly | --install]" >&2 && exit 64 ;;
esac
release=$build/release unity=ON
[ "$part" != nightly ] || release=$build/plain unity=OFF
results=$build/$part.xml
rm -f "$results"

compile() {
  # g++ 12 sees overlaps in std::string's operator+ that are not there (gcc bug 105651).
  cmake -S "$top" -B "$release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRLOCK_SANITIZERS=ON -DCMAKE_UNITY_BUILD=$unity \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror -Wno-restrict" &&
    cmake --build "$release" --parallel "$(nproc)" --target core
}

# needs PROGRAM TEST…: without PROGRAM, which is not in every Debian, these tests may be skipped.
needs() {
  command -v "$1" >/dev/null && return
  shift
  may_skip="$may_skip $*"
}

install_core() {
  install_build_packages
  install_packages ninja-build patch doctest-dev liblua5.1-0-dev lua5.1 bats jq python3 procps util-linux shellcheck strace redis-tools \
    python3-jsonschema python3-yaml codespell aspell aspell-en git
  # Only this version will do, and not every Debian has it. style_format is skipped without it, and style_tidy without clang-tidy-14.
  install_where_known clang-format-14
  provide_server "$build/server"
}

install_rest() {
  install_packages openssh-client openssl vim-tiny less mandoc man-db bsdextrautils zsh fish bash-completion python3-redis nftables iproute2 libyaml-0-2 curl ruby \
    libpopt0 valgrind
  install_where_known clang-tidy-14 nix-bin
  provide_valkey "$build/server"
  unpack_program "$build/etcd" etcd etcd-server
  unpack_program "$build/etcd" etcdctl etcd-client
  unpack_program "$build/nutcracker" nutcracker nutcracker
  unpack_program "$build/promtool" promtool prometheus
  unpack_program "$build/logrotate" logrotate logrotate
  unpack_program "$build/cron" cron cron
  unpack_program "$build/busybox" busybox busybox-static
}

install_core
[ "$part" = core ] || install_rest
# Only a machine that keeps its objects has use for it.
launcher=""
if [ -n "${CI:-}" ]; then
  install_where_known ccache
  launcher=$(command -v ccache || true)
fi
[ "$part" != install ] || exit 0

may_skip=""
needs valkey-server valkey_server
needs clang-format-14 style_format
needs clang-tidy-14 style_tidy style_tidy_all
needs debootstrap debian13
# Only what may write to cgroup v2 can freeze a host.
[ -w "$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)/cgroup.procs" ] || may_skip="$may_skip chaos_frozen_minute"

mkdir -p "$build"
begun=$("$top/tests/budget.py")
quietly "Building as released" compile
say
# Most tests wait for most of their time; those that compute take as many places as there are processors. A machine that takes over 2 ms to
# start a process, because it is slow or busy, gets fewer at the same time. Its load would mislead: some tests end thousands of processes.
at_once=8
case $part in
  core) at_once=16 && set -- --label-regex '^core$' ;;
  commit) set -- --label-exclude '^core$' ;;
  nightly) set -- --build-config nightly --label-regex '^nightly$' ;;
esac
start=$(date +%s%N)
for _ in $(seq 200); do env true; done
[ $(($(date +%s%N) - start)) -lt 400000000 ] || at_once=$((at_once / 2))
code=0
ctest --test-dir "$release" "$@" --output-on-failure --output-junit "$results" --test-output-size-passed 1000000 --parallel $at_once || code=$?
times >"$build/times"
"$top/tests/ledger.py" add "${RLOCK_LEDGER:-$build/ledger.tsv}" "$results"
[ "$part" != core ] || "$top/tests/budget.py" "$begun" "$build/times" || code=1
# Words on purpose: a list of tests.
# shellcheck disable=SC2086
"$top/tests/summary.py" "$results" "$release" $may_skip || code=1
[ "$code" -eq 0 ]
