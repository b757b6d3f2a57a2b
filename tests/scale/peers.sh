#!/bin/sh
# peers.sh [ROUNDS]: the comparison with others and its plots, from a bare Debian 12 on: installs what is compared, builds
# rlock unless build/release has it, measures and draws. Minutes; needs root or sudo only to install what is missing.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=../../packaging/debian.sh
. "$top/packaging/debian.sh"
trap 'rm -f "$log"' EXIT

install_build_packages
install_packages ninja-build liblua5.1-0-dev doctest-dev redis-tools python3 python3-redis util-linux
command -v npm >/dev/null || install_packages nodejs npm
provide_server "$top/build/peers"
unpack_program "$top/build/peers" etcd etcd-server
unpack_program "$top/build/peers" etcdctl etcd-client
[ -d "$top/build/peers/node_modules/redlock" ] ||
  npm install --silent --prefix "$top/build/peers" --no-audit --no-fund redlock@5.0.0-beta.2 ioredis@5 ||
  say "npm did not install node-redlock: it is not measured"
if [ ! -x "$top/build/release/src/rlock" ] || [ ! -x "$top/build/release/tests/scale/stamp" ]; then
  quietly "Configuring" cmake -S "$top" -B "$top/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release
  quietly "Building rlock" cmake --build "$top/build/release" --target rlock stamp
fi
"$top/tests/scale/peers.py" "${1:-50}"
"$top/docs/report/plot.py"
