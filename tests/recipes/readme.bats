#!/usr/bin/env bats
# What README.md asks a new user to type.
load ../cli/helpers/helpers

readme=$BATS_TEST_DIRNAME/../../README.md

# clone: what a new user types first, on a PATH without a server; "compiling" takes no time there. Its local: is the test's own.
clone() {
  dpkg-query --show redis-tools >/dev/null 2>&1 || skip "needs Debian's package redis-tools"
  command -v git >/dev/null || skip "git is not installed"
  mkdir origin bin
  cp -r "$BATS_TEST_DIRNAME/../../packaging" origin
  sed "s,=local:\$,=local:$here/state," "$readme" >origin/README.md
  git -C origin init -q
  git -C origin add .
  git -C origin -c user.name=a -c user.email=a@b commit -q -m first
  ln -sf /usr/sbin/* /usr/bin/* bin
  rm -f bin/redis-server bin/valkey-server bin/cmake
  cat >bin/cmake <<EOF
#!/bin/sh
[ "\$1" = --build ] || exit 0
mkdir -p "\$2/src" && ln -sf "$RLOCK" "\$2/src/rlock"
printf '%s\n' '[  7%] Building' '[ 34%] Building' '[ 39%] Building' '[100%] Built target rlock'
EOF
  chmod +x bin/cmake
  sed -n "s,^    \(git clone .*\),\1,p" "$readme" | sed "s,ADDRESS,file://$here/origin," >first_line
  run -0 env -u RLOCK_URL PATH="$here/bin" sh first_line 3>&-
}

@test "after try.sh, where no server is installed, the first steps do what their comments say" {
  clone
  [[ $output == *"takes a few minutes ... 30% 100% done"* ]] || fail "$output"
  run env -u RLOCK_URL PATH="$here/bin" sh "$BATS_TEST_DIRNAME/../packaging/first_steps.sh" "$here/rlock" 3>&- 4>&-
  redis-cli -s "$here/state/rlock.sock" shutdown nosave || true
  [ "$status" -eq 0 ] || fail "$output"
  [ "$(grep -cx never <<<"$output")" -eq 0 ] || fail "$output"
  [ "$(grep -cx hello <<<"$output")" -eq 1 ] || fail "$output"
  grep -q '"demo" was done by' <<<"$output" || fail "$output"
}

@test "the lines that try.sh prints last find rlock and a server from any folder" {
  clone
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
  [ "$tried" -ge 4 ]
  run grep -E 'packaging/|build/try' "$folder/README.md"
  [ -z "$output" ] || fail "$output"
}
