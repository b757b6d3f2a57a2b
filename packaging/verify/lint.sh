#!/bin/sh
# lint.sh [DEB RPM]: fails if lintian or rpmlint finds anything in the packages, even a pedantic remark. Without arguments,
# packaging/package.sh builds both packages.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=../debian.sh
. "$top/packaging/debian.sh"
out=$(mktemp)
trap 'rm -f "$log" "$out"' EXIT

install_packages lintian rpmlint
if [ $# -eq 0 ]; then
  "$top/packaging/package.sh" DEB
  "$top/packaging/package.sh" RPM
  set -- "$top"/build/package/rlock_*.deb "$top"/build/package/rlock-[0-9]*.rpm
fi

# Debian 12's lintian does not know Static-Built-Using yet. No bug of Debian asks for rlock until its inclusion is requested. groff warns
# of a cell that crosses the end of a page, and a screen has no pages. The folder of a skill has the name of the skill.
lintian -I --pedantic --allow-root "$1" 2>&1 |
  grep -vx -e 'W: rlock: unknown-field Static-Built-Using' -e 'W: rlock: initial-upload-closes-no-bugs .*' \
    -e 'W: rlock: groff-message page [0-9]*: table text block will not fit on one page .*' \
    -e 'P: rlock: repeated-path-segment rlock \[usr/share/doc/rlock/examples/agents/rlock/\]' >"$out" || true
cat "$out"
[ ! -s "$out" ]
say "lintian: nothing"
rpmlint --config "$top/packaging/rpmlint.toml" --strict "$2" "$top/packaging/rlock.spec"
