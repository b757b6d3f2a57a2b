#!/bin/sh
# check.sh [--all]: builds rlock as it is released and runs its tests on a bare Debian 12 or 13, and once more under sanitizers those of
# what parses, decides and runs threads. For speed several files are compiled at once. --all: each by itself, and also what runs every
# night: more seeds, longer, other servers.
# Needs root or sudo only to install what is missing. Closes with what was skipped, and the counts.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"
trap 'rm -f "$log"' EXIT

build=$top/build/check
configuration=commit
unity=ON
if [ "$*" = --all ]; then
  configuration=nightly
  unity=OFF
elif [ $# -gt 0 ]; then
  say "usage: packaging/check.sh [--all]" >&2
  exit 64
fi

compile() {
  # g++ 12 sees overlaps in std::string's operator+ that are not there (gcc bug 105651).
  cmake -S "$top" -B "$build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRLOCK_SANITIZERS=ON -DCMAKE_UNITY_BUILD=$unity \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror -Wno-restrict" &&
    cmake --build "$build/release" --parallel "$(nproc)"
}

# needs PROGRAM TEST…: without PROGRAM, which is not in every Debian, these tests may be skipped.
needs() {
  command -v "$1" >/dev/null && return
  shift
  may_skip="$may_skip $*"
}

install_build_packages
install_packages ninja-build patch doctest-dev liblua5.1-0-dev bats jq python3 procps util-linux shellcheck strace openssl redis-tools vim-tiny less \
  mandoc bsdextrautils zsh fish bash-completion python3-redis nftables iproute2 libyaml-0-2 python3-jsonschema codespell aspell aspell-en python3-yaml git curl ruby libpopt0
# Of these one version alone will do, and not every Debian has it: the tests style_format and style_tidy are skipped without.
install_where_known clang-format-14 clang-tidy-14
install_where_known nix-bin
provide_server "$build/server"
provide_valkey "$build/server"
unpack_program "$build/etcd" etcd etcd-server
unpack_program "$build/etcd" etcdctl etcd-client
unpack_program "$build/nutcracker" nutcracker nutcracker
unpack_program "$build/promtool" promtool prometheus
unpack_program "$build/logrotate" logrotate logrotate
unpack_program "$build/cron" cron cron
unpack_program "$build/busybox" busybox busybox-static

may_skip=""
needs valkey-server valkey_server
needs clang-format-14 style_format
needs clang-tidy-14 style_tidy
needs debootstrap debian13
# Only what may write to cgroup v2 can freeze a host.
[ -w "$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)/cgroup.procs" ] || may_skip="$may_skip chaos_frozen_minute"

quietly "Building as released" compile
say
# Most tests wait for most of their time; those that compute take as many places as there are processors. A machine that takes over 2 ms to
# start a process, being slow or having other work, gets fewer at once. Its load would mislead: some tests end thousands of processes.
at_once=8
start=$(date +%s%N)
for _ in $(seq 200); do env true; done
[ $(($(date +%s%N) - start)) -lt 400000000 ] || at_once=4
code=0
ctest --test-dir "$build/release" --build-config "$configuration" --output-on-failure --output-junit "$build/results.xml" \
  --test-output-size-passed 1000000 --parallel $at_once || code=$?
# Words on purpose: a list of tests.
# shellcheck disable=SC2086
"$top/tests/summary.py" "$build/results.xml" $may_skip || code=1
[ "$code" -eq 0 ]
