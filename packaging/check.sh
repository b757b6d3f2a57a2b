#!/bin/sh
# Runs every test of rlock on a bare Debian 12 or 13: as released, the unit and contract tests once more under the address
# and undefined-behaviour sanitizers, and those of what has threads under the thread sanitizer.
# Needs root or sudo only to install what is missing. Closes with the summary of ctest.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"
trap 'rm -f "$log"' EXIT

build=$top/build/check
# g++ 12 sees overlaps in std::string's operator+ that are not there (gcc bug 105651).
strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror -Wno-restrict"
# Without the two checks that take as long to compile as all others: AddressSanitizer stops at a null pointer, too, and
# this processor reads what is not aligned.
addresses="-fsanitize=address,undefined -fno-sanitize=null,alignment -fno-sanitize-recover=undefined"
threaded="unit_util unit_redis unit_run"
# Under a sanitizer gcc only guesses whether a variable is initialised.
sanitized="-O1 -g1 -fno-omit-frame-pointer -Wall -Wextra -Werror -Wno-restrict -Wno-maybe-uninitialized"

# compile FOLDER BUILD_TYPE FLAGS STATIC TARGET…
compile() {
  folder=$build/$1 type=$2 flags=$3 static=$4
  shift 4
  cmake -S "$top" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE="$type" -DCMAKE_CXX_FLAGS="$flags" \
    -DRLOCK_STATIC="$static" &&
    cmake --build "$folder" --parallel "$(nproc)" --target "$@"
}

# test_programs KIND…: the targets of these tests in a configured folder.
test_programs() {
  for kind; do
    ninja -C "$build/release" -t targets all | sed -n "s/^\(${kind}[a-z_]*\): phony$/\1/p" | sort -u
  done
}

# One summary for all builds: ASan brings unit and contract tests and the hostile input.
join_tests() {
  {
    printf 'subdirs("%s")\n' release asan/tests/unit asan/tests/contract asan/tests/fuzz
    for program in $threaded; do
      printf 'add_test("tsan_%s" "%s")\n' "$program" "$build/tsan/tests/unit/$program"
    done
  } >"$build/CTestTestfile.cmake"
}

install_build_packages
install_packages ninja-build patch doctest-dev liblua5.1-0-dev bats jq python3 procps util-linux shellcheck strace openssl redis-tools vim-tiny less \
  mandoc bsdextrautils zsh fish bash-completion python3-redis nftables iproute2 libyaml-0-2 python3-jsonschema codespell aspell aspell-en python3-yaml git libpopt0
# Of these one version alone will do, and not every Debian has it: the tests style_format and style_tidy are skipped without.
install_where_known clang-format-14 clang-tidy-14
provide_server "$build/server"
provide_valkey "$build/server"
unpack_program "$build/etcd" etcd etcd-server
unpack_program "$build/etcd" etcdctl etcd-client
unpack_program "$build/nutcracker" nutcracker nutcracker
unpack_program "$build/promtool" promtool prometheus
unpack_program "$build/logrotate" logrotate logrotate
unpack_program "$build/cron" cron cron
unpack_program "$build/busybox" busybox busybox-static

quietly "Building as released" compile release Release "$strict" ON all
programs=$(test_programs unit contract)
fuzzers=$(test_programs fuzz)
# Words on purpose: a list of targets.
# shellcheck disable=SC2086
quietly "Building under ASan and UBSan" compile asan None \
  "$sanitized $addresses" OFF $programs $fuzzers
# shellcheck disable=SC2086
quietly "Building under TSan" compile tsan None "$sanitized -fsanitize=thread" OFF $threaded
join_tests
say
# Most tests wait for most of their time.
ctest --test-dir "$build" --output-on-failure --parallel "$(($(nproc) + 1))"
