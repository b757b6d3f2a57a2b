#!/bin/bash
# first_run.sh [WAY…]: measures the time from a bare Debian to the first run under a lock, for each WAY of installing rlock: apt (from a
# repository), file (the portable program), source. It prints seconds and sets no limit. DIST is the folder of the artefacts that
# packaging/release.sh made (dist), SUITE the Debian (bookworm).
set -euo pipefail

# shellcheck source=guest.bash
. "$(dirname "$(realpath "$0")")/guest.bash"

suite=${SUITE:-bookworm}
[ $# -gt 0 ] || set -- apt file source
dist=${DIST:-$top/dist}
[ -e "$dist/SHA256SUMS" ] || { say "$0: no artefacts in $dist: run packaging/release.sh" >&2 && exit 77; }

# The file's user has a server already; the guest shares the network with this machine.
start_server() {
  local port
  provide_server "$folder/server"
  for _ in {1..50}; do
    port=$((20000 + RANDOM % 12000))
    redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$folder" >/dev/null &
    server=$!
    until redis-cli -p "$port" info server 2>/dev/null | grep -q "^process_id:$server"; do
      kill -0 "$server" 2>/dev/null || continue 2
      sleep 0.1
    done
    url=redis://127.0.0.1:$port
    return
  done
  say "$0: no port is free" >&2
  exit 1
}

end_server() {
  kill "$server"
  wait "$server" || true
}

install_packages mmdebstrap dpkg-dev gnupg redis-tools
quietly "Making a bare $suite" mmdebstrap --quiet --mode=root --variant=minbase "$suite" "$folder/base.tar" "${MIRROR:-$(debian_mirror)}"
BASE=$folder/base.tar
make_repositories "$dist"/rlock_*.deb
mkdir "$folder/dist"
cp "$dist/rlock-linux-$(dpkg --print-architecture)" "$dist/SHA256SUMS" "$folder/dist"
pack_source "$folder/source.tar.gz"
supplies+=("$folder/dist" "$folder/source.tar.gz" "$top/tests/packaging/first_steps.sh")
start_server
trap 'end_server; rm -rf --one-file-system "$folder" "$log"' EXIT
for way; do
  in_bare "$suite" first_run_guest.sh "$way" "$url"
done
