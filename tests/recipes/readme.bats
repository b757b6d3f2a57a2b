#!/usr/bin/env bats
# What README.md asks a new user to type.
load ../cli/helpers/helpers

readme=$BATS_TEST_DIRNAME/../../README.md

# try_it: what a new user types first in a checkout, on a PATH without a server. Compiling takes no time there. local: is the test's own.
try_it() {
  dpkg-query --show redis-tools >/dev/null 2>&1 || skip "needs Debian's package redis-tools"
  mkdir checkout bin
  cp -r "$BATS_TEST_DIRNAME/../../packaging" checkout
  sed "s,=local:\$,=local:$here/state," "$readme" >checkout/README.md
  ln -sf /usr/sbin/* /usr/bin/* bin
  rm -f bin/redis-server bin/valkey-server bin/cmake
  cat >bin/cmake <<EOF
#!/bin/sh
[ "\$1" = --build ] || exit 0
mkdir -p "\$2/src" && ln -sf "$RLOCK" "\$2/src/rlock"
printf '%s\n' '[  7%] Building' '[ 34%] Building' '[ 39%] Building' '[100%] Built target rlock'
EOF
  chmod +x bin/cmake
  grep -m 1 '^    packaging/try.sh' "$readme" >checkout/first_line
  run -0 env -u RLOCK_URL PATH="$here/bin" sh -c 'cd checkout && sh first_line' 3>&-
}

@test "after try.sh, where no server is installed, the first steps do what their comments say" {
  try_it
  [[ $output == *"takes a few minutes ... 30% 100% done"* ]] || fail "$output"
  run env -u RLOCK_URL PATH="$here/bin" sh "$BATS_TEST_DIRNAME/../packaging/first_steps.sh" "$here/checkout" 3>&- 4>&-
  redis-cli -s "$here/state/rlock.sock" shutdown nosave || true
  [ "$status" -eq 0 ] || fail "$output"
  [ "$(grep -cx never <<<"$output")" -eq 0 ] || fail "$output"
  [ "$(grep -cx hello <<<"$output")" -eq 1 ] || fail "$output"
  grep -q '"shop/demo" was done by' <<<"$output" || fail "$output"
}

@test "the lines that try.sh prints last find rlock and a server from any folder" {
  try_it
  sed -n '/=== It works/,$s/^    //p' <<<"$output" | sed "s,=local:\$,=local:$here/state," >lines
  [ "$(wc -l <lines)" -eq 2 ] || fail "$output"
  echo 'cd / && rlock run -n nightly -- echo hello' >>lines
  run env -u RLOCK_URL PATH="$here/bin" sh -eu lines 3>&- 4>&-
  redis-cli -s "$here/state/rlock.sock" shutdown nosave || true
  [ "$status $output" = "0 hello" ] || fail "$output"
}

# words PATTERN: what fits in the README, each once.
words() { grep -oE "$1" "$readme" | sort -u; }

@test "each command and each option of run that the README names is there" {
  help=$(rlock run --help)
  while read -r name; do
    grep -qE -- "(^|[ ,])$name([ =,[]|$)" <<<"$help" || fail "rlock run has no $name" || return
  done < <(words 'rlock run [^#]*' | sed 's/ -- .*//' | grep -oE ' --?[a-z][a-z-]*' | sort -u)
  while read -r _ name; do
    rlock "$name" --help >/dev/null || fail "there is no rlock $name" || return
  done < <(words '^    rlock [a-z-]+')
}

@test "every link of the README that is installed leads to what is installed" {
  local target tried=0 folder=$here/root/share/doc/rlock
  cmake --install "$(dirname "$RLOCK")/.." --prefix "$here/root" >/dev/null
  while read -r target; do
    [ -e "$folder/$target" ] || fail "$target" || return
    tried=$((tried + 1))
  done < <(grep -oE '\]\([^)]*' "$folder/README.md" | sed 's/^](//')
  [ "$tried" -ge 6 ]
  run grep -E 'packaging/|build/try|docs/|<!--' "$folder/README.md"
  [ -z "$output" ] || fail "$output"
}
