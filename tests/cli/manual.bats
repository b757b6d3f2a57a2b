#!/usr/bin/env bats
# The manual and the completion scripts are what the options table says, and are installed.
load helpers/helpers

top=$BATS_TEST_DIRNAME/../..
pages=("$top/man/rlock.1" "$top/man/rlock.toml.5" "$top/man/rlock-protocol.7" "$top/man/rlock-recipes.7")

# commands: the command words that --help lists.
commands() { rlock --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'; }

# options COMMAND: the long options that its --help lists.
options() { rlock "$1" --help | sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\2/p'; }

@test "what is committed is what the options table says (else: ninja regenerate)" {
  "$top/man/regenerate.sh" "$RLOCK" "$here"
  diff -u "$top/man/rlock.1" man/rlock.1
  diff -ru "$top/completions" completions
}

@test "every command is in rlock(1)" {
  local command page
  page=$(sed 's/\\-/-/g' "$top/man/rlock.1")
  [ -n "$(commands)" ]
  for command in $(commands); do
    [[ $page == *".SS $command"* ]] || fail "rlock(1) does not describe $command"
  done
}

@test "every long option has an item of its own in rlock(1)" {
  local command option page
  page=$(sed 's/\\-/-/g; s/\\fB//g; s/\\fR//g' "$top/man/rlock.1")
  for command in $(commands); do
    for option in $(options "$command"); do
      grep -qE -e "^(-., )?$option( |\[|$)" <<<"$page" || fail "rlock(1) has no item $option"
    done
  done
}

# Each long option, and the file under tests/ that tries it.
tried_in() {
  cat <<END
--strict cli/doctor.bats
--nonblock cli/run_waiting.bats
--wait cli/run_waiting.bats
--conflict-exit-code cli/run_exit_codes.bats
--ttl cli/run_lease.bats
--no-renew cli/run_lease.bats
--max-run cli/run_exit_codes.bats
--kill-after cli/run_exit_codes.bats
--on-lost cli/run_lease.bats
--min-hold cli/min_hold.bats
--slots cli/modes.bats
--shared cli/modes.bats
--max-queue cli/modes.bats
--once cli/once.bats
--once-per cli/once.bats
--once-within cli/once.bats
--max-failures cli/once.bats
--done-exit-code cli/once.bats
--supersede cli/supersede.bats
--superseded-exit-code cli/supersede.bats
--while-closed cli/close.bats
--for cli/close.bats
--until cli/close.bats
--no-reentrant cli/reentry.bats
--wait-descendants cli/wait_descendants.bats
--contain supervision/contain_test.py
--format cli/formats_peers.bats
--fail-open cli/fail_open.bats
--hide-command cli/operators.bats
--event-log cli/run_environment.bats
--report cli/run_exit_codes.bats
--history cli/metrics.bats
--output cli/metrics.bats
--within cli/metrics.bats
--max-held cli/metrics.bats
--max-wait cli/metrics.bats
--max-waiters cli/metrics.bats
--critical cli/metrics.bats
--renew-while cli/renew_while.bats
--owner cli/operators.bats
--token cli/operators.bats
--all cli/operators.bats
--now cli/operators.bats
--remove cli/run_waiting.bats
--runs cli/history.bats
--yes cli/operators.bats
--reason cli/operators.bats
--url cli/run_exit_codes.bats
--user cli/server_errors.bats
--password-file cli/server_errors.bats
--password-command cli/services.bats
--cacert cli/tls.bats
--cacertdir cli/tls.bats
--cert cli/tls.bats
--key cli/tls.bats
--sni cli/tls.bats
--insecure cli/tls.bats
--prefix cli/operators.bats
--connect-timeout cli/server_errors.bats
--replicas topology/replicas.bats
--config unit/cli_config.cpp
--json cli/operators.bats
--quiet cli/run_waiting.bats
--verbose cli/bad_input.bats
--help cli/manual.bats
--version unit/cli_parse.cpp
END
}

@test "every long option has a row in the table of tests, and its file uses the option" {
  local command option file
  declare -A letters
  for command in $(commands); do
    for option in $(options "$command"); do
      tried_in | grep -q -e "^$option " || fail "no row for $option"
      letters[$option]=$(rlock "$command" --help | sed -n "s/^  -\(.\), $option\b.*/\1/p")
    done
  done
  while read -r option file; do
    [[ -v letters[$option] ]] || fail "there is no option $option"
    grep -qE -e "$option\b|[\" ]-[a-zA-Z]*${letters[$option]:-none}" "$top/tests/$file" ||
      fail "$file does not use $option"
  done < <(tried_in)
}

@test "the manual pages are clean under mandoc" {
  command -v mandoc >/dev/null || skip "mandoc is not installed: apt install mandoc"
  local page
  for page in "${pages[@]}"; do
    run -0 mandoc -T lint -W warning "$page"
    [ -z "$output" ] || fail "$output"
  done
}

@test "the manual pages stay within 80 columns" {
  command -v mandoc >/dev/null || skip "mandoc is not installed: apt install mandoc"
  local page
  for page in "${pages[@]}"; do
    run ! grep -E '^.{81}' <(mandoc -T ascii -O width=80 "$page" | col -bx)
  done
}

@test "cmake --install installs manual pages, completions and documents where they are looked for" {
  local build share file
  build=$(dirname "$(dirname "$RLOCK")")
  [ -e "$build/cmake_install.cmake" ] || skip "RLOCK is not in a build folder"
  cmake --install "$build" --prefix "$here/prefix" >log 3>&-
  share=prefix/share
  for file in prefix/bin/rlock $share/man/man1/rlock.1 $share/man/man5/rlock.toml.5 \
    $share/man/man7/rlock-protocol.7 $share/man/man7/rlock-recipes.7 $share/bash-completion/completions/rlock \
    $share/zsh/site-functions/_rlock $share/fish/vendor_completions.d/rlock.fish \
    $share/doc/rlock/LICENSE $share/doc/rlock/README.md $share/doc/rlock/CHANGELOG.md; do
    [ -s "$file" ] || fail "$file is not there: $(cat log)"
  done
}

# Each example that says that one host alone does the job: the options of its rlock run.
only_one() {
  sed 's/\\-/-/g' "$top/README.md" "$top/man/rlock.1" "$top/packaging/examples/cron/rlock-nightly" \
    "$top/packaging/examples/systemd/rlock-nightly.service" |
    sed -nE 's/--password-file [^ ]* //; s/^ *(0 3 \* \* \*  ?(root )?|ExecStart=\/usr\/bin\/)rlock run (.*) nightly -- .*/\3/p'
  rlock run --help | sed -nE 's/.*rlock run (.*) report -- .*one host does it.*/\1/p'
}

@test "of many hosts one does the job, however quick that is, by each example that says so" {
  local options tried=0
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

@test "the pipeline example of rlock(1) fails where a step fails, and releases the lock" {
  local step
  sed 's/\\-/-/g; s/\\(aq/'"'"'/g' "$top/man/rlock.1" | sed -n '/^Across the steps/,/^\.fi/p' | grep '^    ' >pipeline
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

@test "the manual as HTML: every page is there, and every link between and inside the pages leads somewhere" {
  command -v mandoc >/dev/null || skip "mandoc is not installed: apt install mandoc"
  "$top/packaging/html_manual.py" html
  local page link file anchor
  for page in index.html rlock.1.html rlock.toml.5.html rlock-recipes.7.html rlock-protocol.7.html; do
    while read -r link; do
      file=${link%%#*}
      [ -s "html/${file:-$page}" ] || fail "$page: $link"
      anchor=${link#"$file"}
      [ -z "$anchor" ] || grep -qF "id=\"${anchor#\#}\"" "html/${file:-$page}" || fail "$page: $link"
    done < <(grep -oE 'href="[^"]*"' "html/$page" | cut -d'"' -f2)
  done
  grep -q '<a href="rlock-recipes.7.html">rlock-recipes(7)</a>' html/rlock.1.html
  # mandoc breaks the lines of an example twice.
  run ! grep -A1 '<pre>' html/rlock.1.html html/rlock-recipes.7.html --no-filename -e '<br/>'
}
