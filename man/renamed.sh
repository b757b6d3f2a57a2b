#!/bin/sh
# renamed.sh NAME <FILE: a committed manual page or completion script for a program that is installed as NAME: NAME in its title, in
# commands that a reader copies, in references to pages of section 1, and in what the shell completes.
set -eu

name=$1
capitals=$(printf '%s' "$name" | tr '[:lower:]' '[:upper:]')
commands=$(cd "$(dirname -- "$0")" && printf '%s\n' rlock-*.1 | sed -E 's/^rlock-(.*)\.1$/\1/; s/-/\\\\?-/g' | paste -s -d '|')
exec sed -E \
  -e "s/^(\.TH )RLOCK([-A-Z]* 1 )/\1$capitals\2/" \
  -e "s/^rlock((\\\\-($commands))? \\\\- )/$name\1/" \
  -e "s/(^|[^A-Za-z0-9_-]|\\\\f[BIR])rlock((\\\\?-($commands))?(\\\\fR)? ?\(1\))/\1$name\2/g" \
  -e "s/(^|[^A-Za-z0-9_.-]|\\\\f[BIR]|\\\\\([ad]q)rlock( ($commands|help|version|COMMAND|__complete)($|[^a-z-]))/\1$name\2/g" \
  -e "s/\\\\fBrlock\\\\fR/\\\\fB$name\\\\fR/g" \
  -e "s/^(complete -F _rlock |complete -c |#compdef |  compdef _rlock )rlock/\1$name/"
