#!/usr/bin/env bats
# What README.md asks a new user to type.
load ../cli/helpers/helpers

readme=$BATS_TEST_DIRNAME/../../README.md

# steps: the commands of "First steps" that need no server but local:, with their comments.
steps() { sed -n '/^## First steps/,/^Then /s/^    //p' "$readme"; }

# wanted LINE: the exit code that its comment names.
wanted() {
  [[ $1 =~ \#.*exits\ with\ ([0-9]+) ]] || BASH_REMATCH=(0 0)
  echo "${BASH_REMATCH[1]}"
}

@test "the first steps do what their comments say" {
  local line code tried=0
  while read -r line; do
    code=0
    eval "${line/#export RLOCK_URL=local:/export RLOCK_URL=local:$here/state}" </dev/null >>out 2>>err 3>&- 4>&- || code=$?
    [ "$code" -eq "$(wanted "$line")" ] || fail "code $code: $line: $(cat err)" || break
    if [[ $line == *'&  '* ]]; then
      started+=($!)
      eventually held nightly
    fi
    tried=$((tried + 1))
  done < <(steps)
  redis-cli -s "$here/state/rlock.sock" shutdown nosave || true
  [ "$tried" -ge 10 ] || fail "only $tried steps: $(cat out)"
  run ! grep -x never out
  [ "$(grep -cx hello out)" -eq 1 ] || fail "$(cat out)"
  grep -q '"demo" was done by' err || fail "$(cat err)"
}

# words PATTERN: what fits in the README, each once.
words() { grep -oE "$1" "$readme" | sort -u; }

@test "each command and each option of run that the README names is there" {
  local name help
  help=$(rlock run --help)
  while read -r name; do
    grep -qE -- "(^|[ ,])$name([ =,[]|$)" <<<"$help" || fail "rlock run has no $name" || return
  done < <(words 'rlock run [^#]*' | sed 's/ -- .*//' | grep -oE ' --?[a-z][a-z-]*' | sort -u)
  while read -r _ name; do
    rlock "$name" --help >/dev/null || fail "there is no rlock $name" || return
  done < <(words '^    rlock [a-z-]+')
}
