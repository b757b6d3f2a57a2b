# shellcheck shell=bash
# Loaded after helpers.bash by the tests of the examples: each test begins with an empty server, and with a folder bin in its PATH.

# shellcheck disable=SC2034 # read by the tests
examples=$BATS_TEST_DIRNAME/../../packaging/examples

setup() {
  begin
  reset_server
  mkdir bin
  PATH=$here/bin:$PATH
}

# program FILE TEXT: a shell script.
program() {
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}

needs_yaml() { /usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed"; }

# from_yaml FILE KEY…: what is there in an example.
from_yaml() { /usr/bin/python3 "$BATS_TEST_DIRNAME/from_yaml.py" "$examples/$1" "${@:2}"; }

# recipe SECTION [N]: the Nth block of commands (1) of a section of rlock-recipes(7), as a reader sees it.
recipe() {
  awk -v section="\"$1\"" -v block="${2:-1}" '
    /^\.SH / { here = $0 == ".SH " section }
    here && /^\.nf$/ { n++; inside = n == block; next }
    /^\.fi$/ { inside = 0 }
    here && inside' "$BATS_TEST_DIRNAME/../../man/rlock-recipes.7" |
    sed "s/^    //; s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\e/\\\\/g" | grep . || fail "no block ${2:-1} in $1"
}
