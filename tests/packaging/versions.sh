#!/bin/sh
# Everything that names the version names that of CMakeLists.txt: release.sh makes artefacts of one version. The lines "names" are the list
# of these places. And packaging/releases is in order.
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
for page in "$top"/man/rlock*; do
  names "man/${page##*/}" '^\.TH .*"rlock @".*'
done
names packaging/ci/github/action.yml '^#  *release: .*\/rlock\/@$'
names packaging/ci/gitlab/templates/rlock.yml '^#  *- component: .*\/rlock.@$'
names packaging/ci/gitlab/templates/rlock.yml '^#  *release: .*\/rlock\/@$'
names CHANGELOG.md '^## \[@\] - .*'
names docs/report/README.md '.*rlock @ .*'
grep -q "^| ${version%.*}, the newest " "$top/SECURITY.md" || { echo "SECURITY.md does not support ${version%.*}"; faults=1; }

# The releases in their order, each once, and none later than today's version.
listed=$(sed '/^#/d' "$top/packaging/releases")
wrong=$(printf '%s' "$listed" | grep -Evx '[0-9]+\.[0-9]+\.[0-9]+ [0-9a-f]{40}' || true)
[ -z "$wrong" ] || { echo "packaging/releases has lines that are not VERSION COMMIT: $wrong"; faults=1; }
versions=$(printf '%s' "$listed" | cut -d ' ' -f 1)
[ "$versions" = "$(printf '%s' "$versions" | sort -uV)" ] || { echo "packaging/releases is not in the order of the versions"; faults=1; }
last=$(printf '%s\n' "$versions" "$version" | sort -V | tail -n 1)
[ "$last" = "$version" ] || { echo "packaging/releases has the version $last, which is later than CMakeLists.txt's $version"; faults=1; }
[ "$faults" -ne 0 ] || echo "version $version everywhere"
exit "$faults"
