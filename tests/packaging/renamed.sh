#!/bin/bash
# renamed.sh RLOCK: what cmake installs with -DRLOCK_PROGRAM=NAME is called NAME: the program, its manual pages of section 1, and its
# completions, which complete NAME. Nothing is compiled: RLOCK stands for the program.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
# shellcheck source=../../packaging/verify/steps.sh
. "$top/packaging/verify/steps.sh"
trap 'rm -rf --one-file-system "$scratch"' EXIT

build=$scratch/build installed=$scratch/installed
# configure ARG…
configure() {
  cmake -S "$top" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRLOCK_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$installed" "$@"
}
# list: the installed files, without the documents.
list() {
  (cd "$installed" && find . -type f -o -type l | grep -v '^./share/doc/' | LC_ALL=C sort)
}

expect 1 configure -DRLOCK_PROGRAM='no name'
has "RLOCK_PROGRAM is not a name for a program: no name"
for name in rlock lock-runner; do
  rm -rf "$installed"
  expect 0 configure -DRLOCK_PROGRAM=$name
  cp "$1" "$build/src/$name"
  expect 0 cmake --install "$build"
  list >"$scratch/files.$name"
done
sed -E 's,/(_?)rlock(-[a-z-]+\.1|\.1|\.fish|)$,/\1lock-runner\2,' "$scratch/files.rlock" | LC_ALL=C sort >"$scratch/wanted"
expect 0 diff "$scratch/wanted" "$scratch/files.lock-runner"
expect 0 grep -cx './share/man/man1/lock-runner.*\.1' "$scratch/files.lock-runner"
[ "$(cat "$scratch/out")" -ge 19 ] || fail "only $(cat "$scratch/out") pages of section 1"
expect 1 grep -E '/(_?rlock|rlock(-[a-z-]+)?\.(1|fish))$' "$scratch/files.lock-runner"
expect 0 "$installed/bin/lock-runner" --version
step "the program, its pages of section 1 and its completions have the other name, and nothing has the old one"

pages=("$installed"/share/man/man*/*)
for page in "$installed"/share/man/man1/*; do
  title=$(basename "$page" .1)
  expect 0 grep -E "^\.TH ${title^^} 1 " "$page"
  expect 0 grep -E "^${title//-/'(\\)?-'} "'\\- ' "$page"
done
# References to pages that are not there, and commands that start another program.
expect 1 grep -En 'rlock((\\?-[a-z]+)*)(\\fR)? ?\(1\)|^ .*rlock (run|status)|fBrlock (run|status)' "${pages[@]}"
expect 0 grep -F 'lock-runner run' "$installed/share/man/man7/rlock-recipes.7"
step "its manual has the other name in titles, references and commands"

# shellcheck disable=SC2016 # for the inner shell
expect 0 bash -c '. "$1"; complete -p lock-runner' bash "$installed/share/bash-completion/completions/lock-runner"
expect 0 grep -x '#compdef lock-runner' "$installed/share/zsh/site-functions/_lock-runner"
expect 0 grep -F 'complete -c lock-runner ' "$installed/share/fish/vendor_completions.d/lock-runner.fish"
for file in bash-completion/completions/lock-runner zsh/site-functions/_lock-runner fish/vendor_completions.d/lock-runner.fish; do
  expect 0 grep -F 'lock-runner __complete' "$installed/share/$file"
  expect 1 grep -E '(complete -c|^#compdef|compdef _rlock|-F _rlock) rlock|rlock __complete' "$installed/share/$file"
done
step "bash, zsh and fish complete the other name"
