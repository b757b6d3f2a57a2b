#!/bin/sh
# regenerate.sh RLOCK [FOLDER]: writes the completion scripts, rlock.1, a page for each command and options.tsv, which the binary RLOCK
# makes from its tables of commands and options, into completions/, man/ and docs/ of FOLDER; without it, of this repository. The page of
# a command has the text of commands/COMMAND.in, if there is one, after its options.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
rlock=$1
out=${2:-$top}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

# A binary that does not fit a template fails here, before anything is overwritten.
mkdir "$new/completions" "$new/man" "$new/docs"
"$rlock" --generate bash >"$new/completions/rlock.bash"
"$rlock" --generate zsh >"$new/completions/_rlock"
"$rlock" --generate fish >"$new/completions/rlock.fish"
"$rlock" --generate man <"$top/man/rlock.1.in" >"$new/man/rlock.1"
printf 'Option\tSince\tNeeded by\n@option users@\n' | "$rlock" --generate man >"$new/docs/options.tsv"
for command in $("$rlock" --generate commands); do
  more=$top/man/commands/$command.in
  [ -e "$more" ] || more=/dev/null
  sed -e "/^@more@\$/{" -e "r $more" -e "d" -e "}" -e "s/COMMAND/$command/; s/TITLE/$(echo "$command" | tr a-z A-Z)/" \
    "$top/man/rlock-COMMAND.1.in" >"$new/template"
  "$rlock" --generate man <"$new/template" >"$new/man/rlock-$command.1"
done

mkdir -p "$out/completions" "$out/man" "$out/docs"
rm -f "$out"/man/rlock-*.1
cp "$new"/completions/* "$out/completions"
cp "$new"/man/* "$out/man"
cp "$new"/docs/* "$out/docs"
