#!/usr/bin/env bats
# TAB in real shells on real terminals: the text on the left becomes the line on the right.
load helpers/helpers

completions=$BATS_TEST_DIRNAME/../../completions

# tab SHELL TYPED...: the command line after each TYPED, in which \t is the TAB key.
tab() {
  declare -A scripts=([bash]=rlock.bash [zsh]=_rlock [fish]=rlock.fish)
  local shell=$1 keys=() line
  shift
  for line; do keys+=("$(printf '%b' "$line")"); done
  press_tab.py "$shell" "$completions/${scripts[$shell]}" "${keys[@]}" 3>&- 4>&-
}

# become TYPED LINE TYPED LINE...: in each shell that is here. fish adds no blank where more may follow. A busy machine may take longer than
# the 200 ms after which rlock offers nothing: what differs is typed again.
become() {
  local shell attempt n typed expected lines
  for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || continue
    local pairs=("$@")
    for attempt in 1 2 3 4; do
      typed=() expected=()
      for ((n = 0; n < ${#pairs[@]}; n += 2)); do
        typed+=("${pairs[n]}") expected+=("${pairs[n + 1]}")
      done
      tab "$shell" "${typed[@]}" >lines 2>shown || fail "$shell: $(cat shown)" || return
      mapfile -t lines <lines
      pairs=()
      for n in "${!typed[@]}"; do
        [ "${lines[n]% }" = "${expected[n]}" ] || pairs+=("${typed[n]}" "${expected[n]}")
      done
      [ "${#pairs[@]}" -gt 0 ] || break
    done
    [ "${#pairs[@]}" -eq 0 ] || fail "$shell, $attempt times: ${pairs[*]}, but: $(cat lines)" || return
  done
}

every_shell_or_skip() {
  local shell
  for shell in zsh fish; do
    command -v "$shell" >/dev/null || skip "$shell is not installed: apt install zsh fish"
  done
}

remember() {
  local name
  for name; do rlock run "$name" -- true; done
}

@test "the tests have bash, zsh and fish" {
  every_shell_or_skip
}

@test "commands, options and their values are completed" {
  become \
    'rlock ru\t' 'rlock run' \
    'rlock force\t' 'rlock force-unlock' \
    'rlock run --nonb\t' 'rlock run --nonblock' \
    'rlock -q run -nw 5m --hide\t' 'rlock -q run -nw 5m --hide-command' \
    'rlock run --on-lost ig\t' 'rlock run --on-lost ignore' \
    'rlock run --on-lost=ig\t' 'rlock run --on-lost=ignore' \
    'rlock completion fi\t' 'rlock completion fish' \
    'rlock hel\t' 'rlock help' \
    'rlock help exit\t' 'rlock help exit-codes' \
    'rlock vers\t' 'rlock version' \
    'rlock stop\t' 'rlock stop-local'
}

# lists SHELL TYPED: what the shell offers behind it; nothing if rlock takes longer than 200 ms.
lists() {
  if [ "$1" = fish ]; then
    fish -c "source $completions/rlock.fish; complete -C '$2'"
  else
    { tab "$1" "$2\t\t" >/dev/null; } 2>&1
  fi
}

# listed SHELL TYPED WORD: among others; `shown` has all.
listed() {
  lists "$1" "$2" >shown
  grep -q -e "$3" shown
}

@test "after one dash the common options are offered, after two all of them" {
  for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || continue
    eventually listed "$shell" 'rlock run -' --max-run
    grep -q -e '--url' shown || fail "$shell: $(cat shown)"
    run ! grep -e '--hide-command' -e '--prefix' -e '--min-hold' shown
    eventually listed "$shell" 'rlock -' --url
    run ! grep -e '--cacert' shown
  done
  become \
    'rlock run --while\t' 'rlock run --while-closed' \
    'rlock run -E 9 --min-hold 5s --no-ren\t' 'rlock run -E 9 --min-hold 5s --no-renew' \
    'rlock --ins\t' 'rlock --insecure'
}

@test "an option of another command is not offered" {
  become 'rlock status --nonb\t' 'rlock status --nonb'
}

@test "files are completed, and after -- a command, its files and its own completion" {
  touch a-file
  become \
    'rlock --password-file a-f\t' 'rlock --password-file a-file' \
    'rlock --password-file=a-f\t' 'rlock --password-file=a-file' \
    'rlock run nightly \t' 'rlock run nightly --' \
    'rlock run nightly -- mkfif\t' 'rlock run nightly -- mkfifo' \
    'rlock run nightly -- ls a-f\t' 'rlock run nightly -- ls a-file'
}

@test "bash with the package bash-completion: the command's own completion" {
  export BASH_COMPLETION=/usr/share/bash-completion/bash_completion
  [ -e "$BASH_COMPLETION" ] || skip "bash-completion is not installed: apt install bash-completion"
  inner_run_is_completed() { [ "$(tab bash 'rlock run nightly -- rlock ru\t')" = 'rlock run nightly -- rlock run ' ]; }
  eventually inner_run_is_completed
}

@test "names of locks come from the server on the command line or in the environment" {
  remember nightly cron:report
  become \
    'rlock run nigh\t' 'rlock run nightly' \
    'rlock run cron:\t' 'rlock run cron:report' \
    'rlock run -w 5m nigh\t' 'rlock run -w 5m nightly' \
    'rlock status nightly cron:re\t' 'rlock status nightly cron:report' \
    'rlock --prefix else: run nigh\t' 'rlock --prefix else: run nigh'
  local url=$RLOCK_URL
  unset RLOCK_URL
  become "rlock -u $url run nigh\t" "rlock -u $url run nightly"
}

# offers COMMAND NAME: that name alone. On a busy machine an answer may take longer than the 200 ms after which rlock offers nothing.
offers() { [ "$(rlock __complete "$1")" = "$2" ]; }

@test "force-unlock offers the locks that are held, no others" {
  own
  remember free-now
  rlock acquire frozen --ttl 10m >/dev/null
  eventually offers force-unlock frozen
  become 'rlock force-unlock fr\t' 'rlock force-unlock frozen'
}

@test "names that a shell could stumble over are quoted, and run nothing" {
  remember 'two words' "it's" 'semi;colon'
  redis hset 'rlock:{cost$(touch ran)}:meta' form 1 last 5 created 5 >/dev/null
  become \
    'rlock run two\t' 'rlock run two\ words' \
    'rlock run "two\t' 'rlock run "two words"' \
    'rlock run cos\t' 'rlock run cost\$\(touch\ ran\)' \
    'rlock run it\t' "rlock run it\\'s" \
    'rlock run semi\t' 'rlock run semi\;colon' \
    'rlock -u $(touch ran) run nigh\t' 'rlock -u $(touch ran) run nigh'
  [ ! -e ran ]
}

@test "names that a terminal cannot show, and those read as options, are not offered" {
  reset_server
  redis set 'rlock:{bad'$'\e''[2Jname}:meta' x
  redis set 'rlock:{right'$'\xe2\x80\xae''left}:meta' x
  redis set 'rlock:{-dash}:meta' x
  redis set 'rlock:{fine}:meta' x
  eventually offers run fine
}

@test "without a server, a configuration or an answer, completion is silent and quick" {
  own
  kill -STOP "$(cat "$own_server/pid")"
  for url in "unix://$own_server/s" unix:///nowhere/s redis://192.0.2.1 "local:$here/none" nonsense ''; do
    # A command that reads waits longer for a server that hangs.
    start rlock status --connect-timeout 20s 2>/dev/null
    slow=$!
    RLOCK_URL=$url quietly rlock __complete run
    ! gone "$slow" || fail "$url: too slow"
  done
  kill -CONT "$(cat "$own_server/pid")"
  [ ! -e none ]
  export RLOCK_URL=unix:///nowhere/s
  become 'rlock run nigh\t' 'rlock run nigh'
  for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || continue
    tab "$shell" 'rlock run nigh\t' 2>shown >line
    run ! grep -qi 'rlock:\|cannot' shown
  done
}

@test "zsh takes the script from its start-up file too" {
  command -v zsh >/dev/null || skip "zsh is not installed: apt install zsh"
  rlock completion zsh >sourced
  line=$(press_tab.py zsh sourced "$(printf 'rlock ru\t')" 2>/dev/null 3>&- 4>&-)
  [ "$line" = 'rlock run ' ] || fail "$line"
}

@test "rlock completion prints the script that is installed, and reads no configuration" {
  export RLOCK_CONFIG=/nowhere
  rlock completion bash | cmp - "$completions/rlock.bash"
  rlock completion zsh | cmp - "$completions/_rlock"
  rlock completion fish | cmp - "$completions/rlock.fish"
}

@test "shellcheck and each shell accept the completion scripts" {
  shellcheck "$completions/rlock.bash"
  bash -n "$completions/rlock.bash"
  if command -v zsh >/dev/null; then zsh -n "$completions/_rlock"; fi
  if command -v fish >/dev/null; then fish -n "$completions/rlock.fish"; fi
}
