#!/usr/bin/env bats
load helpers/helpers

# refused WORD…: rlock with these words is a usage error, reported in one line, and nothing ran.
refused() {
  run --separate-stderr rlock "$@"
  [ "$status" -eq 64 ] || fail "code $status: rlock $*" || return
  says || return
  [ ! -e started ]
}

teardown_file() {
  # The server got no request.
  [ "$(redis dbsize)" = 0 ] || fail "$(redis --raw keys '*')"
  end_server "$SERVER"
  rm -rf "$SERVER"
}

@test "names: empty, too long, control characters, braces, not UTF-8" {
  local name
  for name in '' "$(printf 'x%.0s' {1..201})" $'a\nb' $'a\tb' $'\x7f' $'\xc2\x85' 'a{b' 'a}b' '{}' $'\xff' $'a\xc3' $'\xed\xa0\x80'; do
    refused run "$name" -- touch started
    refused status "$name"
    refused queue "$name"
    refused force-unlock --yes "$name"
  done
}

@test "names: what makes a pattern is refused with the reason, by each command that takes one lock" {
  local name words owner=00000000000000000000000000000000
  for name in 'a*' 'a?' '[a]'; do
    refused run "$name" -- touch started
    says "they make a pattern"
    for words in acquire queue history forget 'force-unlock --yes' "renew --owner $owner" "release --owner $owner"; do
      # shellcheck disable=SC2086 # words
      refused $words "$name"
      says "they make a pattern"
    done
  done
  run -3 rlock check 'a*'
  [[ $output == *"they make a pattern"* ]] || fail "$output"
  refused status -q 'a*'
  for words in status watch metrics; do refused "$words" '[a]*'; done
}

@test "durations: signs, words, units out of order, no number, far too long" {
  local bad option
  for option in --ttl --wait --max-run --kill-after --connect-timeout; do
    for bad in x '' 5x 1m1h 1.2.3 . 1e3 inf nan 0x10 ' 5' '5 s' 99999d 5s5; do
      refused run "$option=$bad" name -- touch started
    done
    refused run "$option=-1" name -- touch started
  done
}

@test "a ttl below one second is refused" {
  refused run -t 0 name -- touch started
  refused run -t 999ms name -- touch started
}

@test "every form of a duration is taken" {
  local good
  for good in 1500ms 10s 5m 1h30m 2d 30 2.5 1.5h; do
    run -0 --separate-stderr rlock run -t "$good" -n -u "unix://$SERVER/s?db=1" forms -- true
    silent
  done
}

@test "options: unknown, not built yet, without their value" {
  local option
  for option in --frobnicate -Z --cacert --sni -w -t --reason -E --slots \
    --min-hold --max-queue; do
    refused run name "$option" -- touch started
  done
  refused run --on-lost=perhaps name -- touch started
  refused run --nonblock=yes name -- touch started
  refused status --frobnicate
  refused queue name --remove not-an-owner
  refused force-unlock name --yes --token x
  refused force-unlock name --yes --token -1
  refused force-unlock name --yes --owner ''
}

@test "commands: none, unknown, not built yet" {
  refused frobnicate
  run -64 rlock
}

@test "run: no name, no command, two names, -c with a command, an empty command" {
  refused run
  refused run -- touch started
  refused run name
  refused run name --
  refused run name -- ''
  refused run name other -- touch started
  refused run name touch started
  refused run name -c 'touch started' -- touch started
  refused queue one two
  refused force-unlock --yes
}

@test "acquire, renew, release, history: no name, two names, no owner, no lease, no number" {
  local owner=0123456789abcdef0123456789abcdef
  refused acquire --ttl 1m
  refused acquire one two --ttl 1m
  refused acquire name
  refused acquire name --ttl 999ms
  refused acquire name --renew-while x
  refused renew --owner "$owner"
  refused renew name
  refused renew name --owner x
  refused renew name --owner "$owner" --token x
  refused renew name --owner "$owner" --ttl 0
  refused release --owner "$owner"
  refused release name
  refused release name --owner x
  refused history one two
  refused history name -n x
}

@test "URLs: schemes, hosts, ports, databases, query keys" {
  local url
  for url in '' x host:6379 http://h redis:// redis:///1 redis://h:0 redis://h:65536 redis://h:x redis://h/x \
    redis://h/-1 redis://h/1/2 'redis://[::1' 'redis://h?frob=1' redis://a%zz@h redis://:%@h unix:// unix://relative \
    'unix:///s?db=x' 'unix:///s?frob=1'; do
    [ -n "$url" ] || continue
    refused run -u "$url" name -- touch started
  done
}

@test "redis://x@host is refused with both spellings" {
  refused run -u redis://word@h name -- touch started
  [[ $stderr == *redis://*:*@* ]] || fail "$stderr"
}

@test "two URLs are refused: no majority can survive one of them" {
  refused run -u "unix://$SERVER/s" -u "unix://$SERVER/t" name -- touch started
  RLOCK_URL="unix://$SERVER/s unix://$SERVER/t" refused run name -- touch started
  RLOCK_URL="unix://$SERVER/s,unix://$SERVER/t" refused run name -- touch started
}

@test "no message shows a password" {
  local url
  for url in redis://u:canary@h:x redis://:canary@h/x 'unix://:canary@/s?frob=1' redis://u:canary@h:1/0/0; do
    run --separate-stderr rlock -v run -u "$url" name -- touch started
    [ "$status" -eq 64 ]
    [[ $output$stderr != *canary* ]] || fail "$stderr"
  done
}

@test "rlock version, -V and --version are one" {
  run -0 rlock --version
  [[ $output == "rlock "* ]]
  local all=$output word
  for word in -V version; do
    run -0 rlock "$word"
    [ "$output" = "$all" ]
  done
}

@test "busy, 69 and 77 name the next command" {
  hold "two words"
  run -75 --separate-stderr rlock run -n "two words" -- true
  says "; see rlock status 'two words'"
  run -75 --separate-stderr rlock acquire --ttl 1m -w 0.1 "two words"
  says "; see rlock status 'two words'"
  let_go "two words"
  local nobody="unix://$here/nobody"
  run -69 --separate-stderr rlock run -u "$nobody" --connect-timeout 0.1 x -- true
  says "rlock doctor"
  run -69 --separate-stderr rlock status -u "$nobody" --connect-timeout 0.1
  says "rlock doctor"
  run -77 --separate-stderr rlock run -q -u "unix://nobody:wrong@$SERVER/s" x -- true
  says "rlock doctor"
}
