#!/usr/bin/env bats
load helpers/helpers

@test "the command finds its lock, owner id and token in its environment, as status shows them" {
  hold_with 'echo "$RLOCK_NAME $RLOCK_OWNER $RLOCK_TOKEN" >up; read -r _ <&9' known
  [[ $said =~ ^known\ [0-9a-f]{32}\ [1-9][0-9]*$ ]] || fail "$said"
  [ "$said" = "known $(about known owner) $(about known token)" ]
  echo 1<>go
  ends_with 0 "$holder"
}

@test "the command's words are never parsed by rlock" {
  local words=(-n --help -- -w 0 --url redis://x -E 600 '' '[a,b]' '{x}' '$HOME' '*' $'a\nb' --json)
  rlock run verbatim -- printf '<%s>\n' "${words[@]}" >got
  printf '<%s>\n' "${words[@]}" >wanted
  cmp got wanted
}

@test "no shell stands between rlock and the command" {
  run -0 rlock run direct -- sh -c 'cat /proc/$PPID/comm'
  # The guard takes its name a moment after it has started the command.
  [[ $output == lease-guard || $output == rlock ]]
}

@test "-c runs the text with \$SHELL, or with /bin/sh if it is not set" {
  run -0 rlock run text -c 'echo one; echo $((1 + 1))'
  [ "$output" = $'one\n2' ]
  printf '#!/bin/sh\necho "$0 got $1 $2"\n' >my-shell
  chmod +x my-shell
  SHELL=$here/my-shell run -0 rlock run text -c 'a b'
  [ "$output" = "$here/my-shell got -c a b" ]
  run -0 env -u SHELL "$RLOCK" run text -c 'readlink /proc/$$/exe'
  [ "$output" = "$(readlink -f /bin/sh)" ]
}

@test "stdin, stdout, stderr, folder and umask are the command's own" {
  umask 027
  echo through | rlock run plain -- sh -c 'cat; pwd; umask; echo aside >&2' >out 2>err
  [ "$(cat out)" = "$(printf 'through\n%s\n%s' "$PWD" "$(umask)")" ]
  [ "$(cat err)" = aside ]
}

@test "the command has the caller's descriptors and none of rlock's" {
  local list='for fd in /proc/$$/fd/*; do echo "${fd##*/} $(readlink "$fd")"; done'
  sh -c "$list" 7<"$RLOCK" 3>&- </dev/null | grep -v pipe: >wanted
  rlock run fds -- sh -c "$list" 7<"$RLOCK" 3>&- </dev/null | grep -v pipe: >got
  diff wanted got
  grep -q "^7 " got
}

@test "closed standard descriptors stay closed for the command and become no socket" {
  rlock run closed -- sh -c 'for fd in 0 1 2; do [ ! -e /proc/$$/fd/$fd ] || exit 1; done; : >ran' <&- >&- 2>&-
  [ -e ran ]
}

@test "a warning that no process reads, or that ulimit -f cuts off, does not prevent the run" {
  mkfifo unread
  exec 8<>unread 9>unread 8<&-
  export RLOCK_WIAT=1
  env --default-signal=PIPE "$RLOCK" run warned -- touch piped 2>&9 || fail "exit code $?"
  bash -c 'ulimit -f 0; exec env --default-signal=XFSZ "$RLOCK" run warned -- true 2>>messages' || fail "exit code $?"
  [ -e piped ]
  [ ! -s messages ]
}

@test "connection options stand before or after the command word, and win over the environment" {
  local url=$RLOCK_URL
  RLOCK_URL="unix://$here/nobody"
  run -0 rlock --url "$url" run placed -- true
  run -0 rlock run -u "$url" placed -- true
  run -0 rlock run "--url=$url" placed -- true
  run -0 rlock run placed --connect-timeout 5s -u "$url" -- true
}

@test "names may have 200 bytes, spaces, colons and other scripts" {
  for name in "$(printf 'x%.0s' {1..200})" 'two words' 'a:b/c]' 'Привет-世界'; do
    run -0 rlock run "$name" -- true
  done
}

@test "the password that rlock logs in with does not reach the command, nor under --fail-open" {
  own --requirepass canary
  for variable in RLOCK_PASSWORD REDISCLI_AUTH; do
    run -0 env "$variable=canary" rlock run secret -- sh -c 'env; tr "\0" "\n" </proc/self/environ'
    [[ $output == *RLOCK_OWNER* && $output != *canary* ]] || fail "$output"
    run -0 env "$variable=canary" rlock run -u "unix://$here/nobody" --connect-timeout 0.1 --fail-open secret -- env
    [[ $output != *canary* ]] || fail "$output"
  done
  # What a nested run logs in with: a file, or the URL.
  (umask 077 && echo canary >password)
  run -0 rlock run --password-file password secret -- rlock run --password-file "$here/password" secret -- echo inner
  [ "$output" = inner ]
  RLOCK_URL="unix://:canary@$SERVER/s" run -0 rlock run secret -- rlock run secret -- echo inner
  [ "$output" = inner ]
}

@test "RLOCK_WAITED_MS is the time that the run waited, 0 for a nested run, and unset without the lock" {
  local shown='echo "${RLOCK_WAITED_MS-none}"'
  hold long
  joins long rlock run long -c "$shown" >waited
  let_go long
  ends_with 0 "$waiter"
  [ "$(<waited)" -gt 0 ]
  export RLOCK_WAITED_MS=7
  [ "$(rlock run outer -- rlock run outer -c "$shown")" = 0 ]
  [[ $(rlock run free -c "$shown") =~ ^[0-9]+$ ]]
  [ "$(RLOCK_URL=unix:///none rlock run --fail-open --connect-timeout 0.2 free -c "$shown" 2>/dev/null)" = none ]
}
