#!/bin/sh
# first_steps.sh CHECKOUT: types "First steps" of the README.md there, and insists on the exit codes that its comments name.
set -u
cd "$1" || exit

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

steps=$(mktemp)
trap 'rm -f "$steps"' EXIT
sed -n '/^## First steps/,/^Then /s/^    //p' README.md >"$steps"
tried=0
while read -r line <&9; do
  echo "\$ $line"
  wanted=$(printf '%s\n' "$line" | sed -n 's/.*#.*exits with \([0-9]*\).*/\1/p')
  code=0
  eval "$line" </dev/null || code=$?
  [ "$code" -eq "${wanted:-0}" ] || fail "exit code $code: $line"
  case $line in
    *'&  '*) until rlock status -q shop/nightly; do kill -0 $! || fail "ended: $line"; sleep 0.1; done ;;
  esac
  tried=$((tried + 1))
done 9<"$steps"
[ "$tried" -ge 11 ] || fail "only $tried steps"
