#!/usr/bin/env bats
# The manual and the completion scripts are what the options table says, and are installed.
load helpers/helpers

top=$BATS_TEST_DIRNAME/../..
pages=("$top"/man/rlock{,-*}.1 "$top/man/rlock.toml.5" "$top"/man/rlock-{formats,guarantees,protocol,recipes,stability}.7)

# commands: the command words that --help lists.
commands() { rlock --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'; }

# options COMMAND: the long options that its --help lists.
options() { rlock "$1" --help | sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p'; }

@test "the committed manual and completions match the options table (else: ninja regenerate)" {
  "$top/man/regenerate.sh" "$RLOCK" "$here"
  [ "$(cd "$top/man" && echo rlock{,-*}.1)" = "$(cd man && echo rlock{,-*}.1)" ]
  for page in man/*; do
    diff -u "$top/$page" "$page"
  done
  diff -u "$top/docs/options.tsv" docs/options.tsv
  diff -ru "$top/completions" completions
}

@test "rlock(1) lists every command, each with a page that man and apropos find" {
  listed=$(sed 's/\\-/-/g' "$top/man/rlock.1")
  [ -n "$(commands)" ]
  for command in $(commands); do
    [[ $listed == *".BR rlock-$command (1)"* ]] || fail "rlock(1) does not list $command"
    [[ $(sed -n 's/\\-/-/g; 3p' "$top/man/rlock-$command.1") == "rlock-$command - "* ]] || fail "$command: $(head -n 4 "$top/man/rlock-$command.1")"
  done
}

@test "every long option has an item of its own, on the page of the command or in rlock(1)" {
  for command in $(commands); do
    page=$(cat "$top/man/rlock-$command.1" "$top/man/rlock.1" | sed 's/\\-/-/g; s/\\fB//g; s/\\fR//g')
    for option in $(options "$command"); do
      grep -qE -e "^(-., )?$option( |\[|$)" <<<"$page" || fail "rlock-$command(1) and rlock(1) have no item $option"
    done
  done
}

@test "a test uses every long option successfully" {
  for command in $(commands); do
    for option in $(options "$command"); do
      grep -rqE --include='*.bats' --include='*_test.py' --exclude=bad_input.bats -e "$option([] =\"',)]|\$)" "$top/tests" ||
        fail "no test uses $option"
    done
  done
}

# shown_without_man: each page of the manual by its name, and no overstrike.
shown_without_man() {
  local page name
  for page in "$top"/man/*.[157]; do
    name=$(basename "$page")
    name=${name%.*}
    run -0 env PATH="$here/none" other/bin/rlock help --man "$name"
    [[ $(head -n 1 <<<"$output") == "${name^^}("[157]") "*" ${name^^}("[157]")" ]] || fail "$name: $output"
    [[ $output != *$'\b'* ]] || fail "overstrikes"
  done
  run -0 env PATH="$here/none" other/bin/rlock help --man
  [ "$(grep -c '^RLOCK[^ ]*([157]) ' <<<"$output")" -eq 1 ] || fail "more than one page: $output"
}

@test "rlock help --man runs man with the page that is installed with the program, or prints the text that it contains" {
  mkdir -p tools other/bin other/share/man/man1 other/share/man/man7
  printf '#!/bin/sh\necho "man $*"\n' >tools/man
  chmod +x tools/man
  cp "$RLOCK" other/bin/rlock
  shown_without_man
  cp "$top/man/rlock.1" "$top/man/rlock-status.1" other/share/man/man1
  cp "$top/man/rlock-recipes.7" other/share/man/man7
  run -0 env PATH="$here/tools" other/bin/rlock help --man
  [ "$output" = "man $here/other/bin/../share/man/man1/rlock.1" ] || fail "$output"
  shown_without_man
  run -0 env PATH="$here/tools" other/bin/rlock help status --man
  [ "$output" = "man $here/other/bin/../share/man/man1/rlock-status.1" ] || fail "$output"
  run -0 env PATH="$here/tools" other/bin/rlock help --man recipes
  [ "$output" = "man $here/other/bin/../share/man/man7/rlock-recipes.7" ] || fail "$output"
}

@test "on a terminal, the text of a page is shown by \$PAGER or less; if neither is there, rlock prints it" {
  mkdir -p other/bin tools
  cp "$RLOCK" other/bin/rlock
  # shown VARIABLE…: what the terminal shows.
  # shellcheck disable=SC2317 # by run
  shown() { /usr/bin/python3 "$helpers/in_terminal.py" /usr/bin/env "$@" other/bin/rlock help --man recipes </dev/null; }
  run -0 shown "PATH=$here/tools" "PAGER=read -r line; echo paged: \$line"
  [[ $output == "paged: RLOCK-RECIPES(7)"* && $(wc -l <<<"$output") -eq 1 ]] || fail "$output"
  run -0 shown "PATH=$here/tools" PAGER=
  [[ $output == "RLOCK-RECIPES(7)"* && $(wc -l <<<"$output") -gt 100 ]] || fail "$output"
  printf '#!/bin/sh\nread -r line\necho less: $line\n' >tools/less
  chmod +x tools/less
  run -0 shown "PATH=$here/tools"
  [[ $output == "less: RLOCK-RECIPES(7)"* ]] || fail "$output"
}

@test "rlock help says what an exit code means, and what rlock promises" {
  run -0 rlock help 69
  [[ $output == "69: no server answered"*"What to do: "*"rlock doctor"* ]] || fail "$output"
  run -0 rlock help exit-codes
  [[ $output == *"  69   no server answered"* ]] || fail "$output"
  run -0 rlock help guarantees
  [[ $output == *"within 1 %"*"rlock-guarantees(7)"* ]] || fail "$output"
}

# first_option PAGE OPTION: the line of the page, as a terminal of 80 columns shows it, at which the item of the option is.
first_option() { mandoc -T ascii -O width=80 "$top/man/$1" | col -bx | grep -n -m 1 "^  *$2" | cut -d: -f1; }

@test "rlock(1) and rlock-run(1) come soon to their first option" {
  command -v mandoc >/dev/null || skip "mandoc is not installed: apt install mandoc"
  [ "$(first_option rlock.1 '-u, --url')" -lt 220 ]
  [ "$(first_option rlock-run.1 '-n, --nonblock')" -lt 50 ]
}

@test "each section that a page refers to is in that page, in rlock(1), rlock-run(1), rlock-guarantees(7) or rlock-formats(7)" {
  for page in "${pages[@]}"; do
    while read -r section; do
      grep -qE "^\.SH \"?$section\"?$" "$page" "$top"/man/rlock{,-run}.1 "$top"/man/rlock-{guarantees,formats}.7 ||
        fail "$page refers to $section"
    done < <(sed 's/\\-/-/g' "$page" | grep -oE '\b[Ss]ee [A-Z]{2}[A-Z ]+[A-Z]\b' | cut -c5- | sort -u)
  done
}

@test "the manual pages are clean under mandoc" {
  command -v mandoc >/dev/null || skip "mandoc is not installed: apt install mandoc"
  for page in "${pages[@]}"; do
    run -0 mandoc -T lint -W warning "$page"
    [ -z "$output" ] || fail "$output"
  done
}

@test "man shows the manual pages without a warning" {
  command -v man >/dev/null || skip "man is not installed: apt install man-db"
  for page in "${pages[@]}"; do
    run -0 --separate-stderr env LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page"
    [ -z "$stderr" ] || fail "$page: $stderr"
  done
}

@test "the examples of a command begin in the column of its other texts" {
  command -v mandoc >/dev/null || skip "mandoc is not installed: apt install mandoc"
  for page in "$top"/man/rlock-*.1; do
    run ! grep -E '^ {1,4}[^ ]' <(mandoc -T ascii -O width=80 "$page" | col -bx | sed -n '/^EXAMPLES/,/^OPTIONS/p')
  done
}

@test "the manual pages stay within 80 columns" {
  command -v mandoc >/dev/null || skip "mandoc is not installed: apt install mandoc"
  for page in "${pages[@]}"; do
    run ! grep -E '^.{81}' <(mandoc -T ascii -O width=80 "$page" | col -bx)
  done
}

@test "cmake --install installs manual pages, completions and documents where they are looked for" {
  build=$(dirname "$(dirname "$RLOCK")")
  [ -e "$build/cmake_install.cmake" ] || skip "RLOCK is not in a build folder"
  cmake --install "$build" --prefix "$here/prefix" >log 3>&-
  share=prefix/share
  for file in prefix/bin/rlock $share/man/man1/rlock{,-run,-status,-stop-local}.1 $share/man/man5/rlock.toml.5 \
    $share/man/man7/rlock-{formats,guarantees,protocol,recipes,stability}.7 $share/bash-completion/completions/rlock \
    $share/zsh/site-functions/_rlock $share/fish/vendor_completions.d/rlock.fish \
    $share/doc/rlock/LICENSE $share/doc/rlock/README.md $share/doc/rlock/CHANGELOG.md; do
    [ -s "$file" ] || fail "$file is not there: $(cat log)"
  done
}

# Each example that says that one host alone does the job: the options of its rlock run.
only_one() {
  sed 's/\\-/-/g' "$top/README.md" "$top/man/rlock.1" "$top/packaging/examples/cron/rlock-nightly" \
    "$top/packaging/examples/systemd/rlock-nightly.service" |
    sed -nE 's/--password-file [^ ]* //; s/^ *(0 3 \* \* \*  ?(root )?|ExecStart=\/usr\/bin\/)rlock run (.*) (shop\/)?nightly -- .*/\3/p'
  rlock run --help | sed -nE 's/.*rlock run (.*) shop\/report -- .*one host does it.*/\1/p'
}

@test "one of many hosts does the job, however quick it is, with each example that says so" {
  local options tried=0
  at_noon
  while read -r options; do
    tried=$((tried + 1))
    # The other hosts come when the job is over already.
    for _ in 1 2 3; do
      # shellcheck disable=SC2086 # the example's words
      rlock run $options "example $tried" -- sh -c 'echo done >>ran' || [ $? -eq 75 ]
    done
    [ "$(wc -l <ran)" -eq 1 ] || fail "ran more than once: rlock run $options"
    rm ran
  done < <(only_one)
  [ "$tried" -ge 5 ] || fail "only $tried examples were found"
}

@test "the pipeline example of rlock(1) fails if a step fails, and releases the lock" {
  sed 's/\\-/-/g; s/\\(aq/'"'"'/g' "$top/man/rlock.1" | sed -n '/^If you cannot put the steps/,/^\.fi/p' | grep '^    ' >pipeline
  grep -q build pipeline
  printf '#!/bin/sh\necho "$0" >>steps\n' >build
  chmod +x build
  cp build roll-out
  run -0 sh ./pipeline
  [ "$(tr '\n' ' ' <steps)" = "./build ./roll-out " ] || fail "$output"
  for step in build roll-out; do
    rm -f steps
    printf '#!/bin/sh\nexit 7\n' >$step
    run -7 sh ./pipeline
    run -1 rlock status -q deploy
  done
}

@test "the HTML manual has every page, and every link in it leads somewhere" {
  command -v mandoc >/dev/null || skip "mandoc is not installed: apt install mandoc"
  "$top/packaging/html_manual.py" html
  for page in index.html rlock{,-run,-acquire,-doctor}.1.html rlock.toml.5.html rlock-{formats,guarantees,protocol,recipes,stability}.7.html; do
    while read -r link; do
      file=${link%%#*}
      [ -s "html/${file:-$page}" ] || fail "$page: $link"
      anchor=${link#"$file"}
      [ -z "$anchor" ] || grep -qF "id=\"${anchor#\#}\"" "html/${file:-$page}" || fail "$page: $link"
    done < <(grep -oE 'href="[^"]*"' "html/$page" | cut -d'"' -f2)
  done
  grep -q '<a href="rlock-recipes.7.html">rlock-recipes(7)</a>' html/rlock.1.html
  grep -q '<a href="rlock-run.1.html">rlock-run(1)</a>' html/rlock.1.html
  # mandoc breaks the lines of an example twice.
  run ! grep -A1 '<pre>' html/rlock.1.html html/rlock-recipes.7.html --no-filename -e '<br/>'
}
