#!/bin/sh
# Everything that names the version names that of CMakeLists.txt: release.sh makes artefacts of one version.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=../../packaging/source.sh
. "$top/packaging/source.sh"

version=$(source_version)
faults=0

# names FILE PATTERN: its first line that fits has the version where the pattern has @.
names() {
  found=$(sed -n "s/$(echo "$2" | sed 's/@/\\([0-9.]*\\)/')/\1/p" "$top/$1" | head -n 1)
  [ "$found" = "$version" ] || { echo "$1 has the version ${found:-(none)}, CMakeLists.txt $version"; faults=1; }
}

names packaging/debian/changelog '^rlock (@-.*'
names packaging/rlock.spec '^Version: *@$'
names packaging/rlock.spec '^\* .* - @-.*'
for page in rlock.1 rlock.1.in rlock.toml.5 rlock-protocol.7 rlock-recipes.7; do
  names "man/$page" '^\.TH .*"rlock @".*'
done
[ "$faults" -ne 0 ] || echo "version $version everywhere"
exit "$faults"
