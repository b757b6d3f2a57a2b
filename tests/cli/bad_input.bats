#!/usr/bin/env bats
# What is refused before anything is done: 64, one line that says why, and no request to the server.
load helpers/helpers

# refused WORD…: rlock with these words is a usage error, reported in one line, and nothing ran.
refused() {
  run --separate-stderr rlock "$@"
  [ "$status" -eq 64 ] || fail "code $status: rlock $*" || return
  says
}

# each_refused [WORD…] < ROWS: with each row's words, as a shell reads them, after these. Its message has the text behind ` | `.
each_refused() {
  local row words
  while read -r row; do
    eval "words=(${row%% | *})"
    refused "$@" "${words[@]}" || return
    [[ $row != *" | "* ]] || says "${row#* | }" || return
  done
}

owner=0123456789abcdef0123456789abcdef
three='-u unix:///a -u unix:///b -u unix:///c'

@test "rlock and rlock run, without another word, print their short help: 64" {
  run -64 --separate-stderr rlock
  [[ -z $output && $stderr == *"Usage: rlock [connection options] COMMAND"* ]] || fail "$output$stderr"
  run -64 --separate-stderr rlock run
  [[ -z $output && $stderr == *"Usage: rlock run [options] NAME -- COMMAND"*"--wait"* ]] || fail "$output$stderr"
  refused run -n
  says "no lock name given: rlock run NAME -- COMMAND"
}

@test "names that are empty, too long, not UTF-8, or have control characters or braces are refused" {
  for name in '' "$(printf 'x%.0s' {1..201})" $'a\nb' $'a\tb' $'\x7f' $'\xc2\x85' 'a{b' 'a}b' '{}' $'\xff' $'a\xc3' $'\xed\xa0\x80'; do
    refused run "$name" -- touch started
    refused status "$name"
    refused queue "$name"
    refused force-unlock --yes "$name"
  done
}

@test "names: what makes a pattern is refused with the reason, by each command that takes one lock" {
  for name in 'a*' 'a?' '[a]'; do
    each_refused <<END
run '$name' -- touch started | they make a pattern
acquire '$name' | they make a pattern
queue '$name' | they make a pattern
history '$name' | they make a pattern
forget '$name' | they make a pattern
force-unlock --yes '$name' | they make a pattern
renew --owner $owner '$name' | they make a pattern
release --owner $owner '$name' | they make a pattern
END
  done
  run -3 rlock check 'a*'
  [[ $output == *"they make a pattern"* ]] || fail "$output"
  each_refused <<END
status -q 'team-1/*' | "team-1/*"
status '[a]*'
watch '[a]*'
metrics '[a]*'
END
}

@test "durations with signs, words or units out of order, without a number or far too long are refused" {
  for option in --ttl --wait --max-run --kill-after --connect-timeout; do
    for bad in x '' 5x 1m1h 1.2.3 . 1e3 inf nan 0x10 ' 5' '5 s' 99999d 5s5 -1; do
      refused run "$option=$bad" name -- touch started
    done
  done
}

@test "every form of a duration is accepted" {
  own
  for good in 15000ms 10s 5m 1h30m 2d 30 20.5 1.5h; do quietly rlock run -t "$good" -n forms -- true; done
}

@test "run refuses missing, superfluous and senseless arguments" {
  each_refused run <<END
-- touch started
name
name --
name -- ''
name other -- touch started
name touch started
--supersede 9 -- touch started | --supersede=9
--urgent 1h -- touch started | --urgent=1h
--fail-open 5s -- touch started | --fail-open=5s
--contain user -- touch started | --contain=user
name -c 'touch started' -- touch started
END
}

@test "run refuses unknown options, and missing or impossible values" {
  for option in --frobnicate -Z --cacert --sni -w -t --reason -E --slots --min-hold --max-queue; do
    refused run name "$option" -- touch started
  done
  each_refused run name <<END
-t 0 -- touch started
-t 999ms -- touch started
--on-lost=perhaps -- touch started
--nonblock=yes -- touch started
-E 600 -- touch started
-E 256 -- touch started
-E -1 -- touch started
-E x -- touch started
-E '' -- touch started
-E 1.5 -- touch started
--slots 0 -- touch started | --slots
--slots 1025 -- touch started | --slots
--slots -1 -- touch started | --slots
--max-queue -1 -- touch started | --max-queue
--max-queue x -- touch started | --max-queue
--min-hold -1 -- touch started | --min-hold
--min-hold soon -- touch started | --min-hold
--history 1001 -- touch started
--once-per fortnight -- touch started | "fortnight"
--once-per 7h -- touch started | not a number of whole minutes below 24h that divides a day
--once-per 24h -- touch started | not a number of whole minutes below 24h that divides a day
--once-per 90s -- touch started | whole minutes
--once-within 0 -- touch started | longer than 0
--once-within 367d -- touch started | 366d
--once day -- touch started | did you mean --once-per day?
--once v1 --max-failures 0 -- touch started | not a number from 1
--once v1 --exit-code done=256 -- touch started | --exit-code done: not a number from 0 to 255: "256"
--exit-code busy -- touch started | not a number
--exit-code busy= -- touch started | not a number
--exit-code 9 -- touch started | --exit-code takes busy=N, done=N, superseded=N, failures=N, unavailable=N, denied=N or config=N, separated by commas, not "9"
--exit-code unavailable=x -- touch started | --exit-code unavailable: not a number from 0 to 255: "x"
--exit-code late=9 -- touch started | not "late=9"
--exit-code busy=1,,busy=2 -- touch started | not ""
--event-log - -- touch started | /dev/stderr
--exit-code '' -- touch started | not ""
--done-exit-code 9 -- touch started | unknown option
--once '' -- touch started | is its variable set
--once= -- touch started | is its variable set
--once $(printf '%0201d' 0) -- touch started | 200 bytes
--once \$'a\nb' -- touch started | control characters
--supersede= -- touch started | --supersede
--supersede=x -- touch started | --supersede
--contain=root -- touch started | the only value of --contain is user, not "root"
--supersede=-1 -- touch started | --supersede
--format odd -- touch started | native
--urgent=0 -- touch started | --urgent must be longer than 0 and at most 1d
--urgent=25h -- touch started | --urgent must be longer than 0 and at most 1d
--urgent=soon -- touch started | --urgent: not a duration: "soon"
END
}

@test "run refuses options that conflict with each other, the servers or the format" {
  each_refused run name <<END
--slots 2 --shared -- touch started | --slots
--max-failures 2 -- touch started | --max-failures needs --once
--exit-code done=3 -- touch started | --exit-code done=3 needs --once, --once-per or --once-within
--exit-code superseded=3 -- touch started | needs --supersede
--once v1 --exit-code failures=3 -- touch started | needs --max-failures
-E 3 --exit-code busy=3 -- touch started | -E and --exit-code busy= cannot be used together
--once v1 --once-per day -- touch started | cannot be used together
--once v1 --once-within 1h -- touch started | cannot be used together
--once-per day --once-within 1h -- touch started | cannot be used together
--once v1 --slots 2 -- touch started | --once
--once-per day --shared -- touch started | --once
--once-within 1h --format plain -- touch started | --once
--once v1 --format redisson -- touch started | --once
--supersede --format plain -- touch started | --supersede
--supersede --format redisson -- touch started | --supersede
--ticket file -n -- touch started | --ticket and --nonblock cannot be used together
--ticket file -w 0 -- touch started | --ticket and --nonblock cannot be used together
--ticket file --supersede=1 -- touch started | --ticket and --supersede cannot be used together
--ticket file --urgent -- touch started | --ticket and --urgent cannot be used together
--ticket= -- touch started | --ticket
--ticket file --format plain -- touch started | --ticket cannot be used with --format plain: such locks have no queue
--urgent --supersede -- touch started | --urgent with --supersede needs a number: --supersede=N
--urgent --format plain -- touch started | --urgent cannot be used with --format plain: such locks have no queue
--while-closed --format redisson -- touch started | such locks cannot be closed
--password-command true --password-file secret -- touch started | cannot be used together
$three --slots 2 -- touch started | several servers
$three --shared -- touch started | several servers
$three -t 61s -- touch started | several servers
$three --supersede -- touch started | one server
$three --while-closed -- touch started | --while-closed works with one server only
$three --replicas 1 -- touch started | --replicas
$three --format redisson -- touch started | single server
$three --format plain -t 61 -- touch started | at most 60s
-u local: --replicas 1 -- touch started | --replicas
-u redis://127.0.0.1:1 --format plain --replicas 1 -- touch started | --replicas
-u redis://127.0.0.1:1 -u redis+sentinel://s1/m -u unix:///nowhere -- touch started | a quorum consists of single servers
-u redis://127.0.0.1:1 -u redis+cluster://n1 -u unix:///nowhere -- touch started | a quorum consists of single servers
-u redis://127.0.0.1:1 -u redis+cluster://n1 -u unix:///nowhere --format plain -- touch started | a quorum consists of single servers
END
}

@test "the other commands refuse unknown, missing, superfluous and impossible arguments" {
  run -64 rlock
  each_refused <<END
frobnicate
status --frobnicate
status --all name | --all
status --format plain | NAME
queue one two
queue name --remove not-an-owner | give a position, an owner id or its beginning
queue name --remove 0 | give a position, an owner id or its beginning
queue name --remove '' | give a position, an owner id or its beginning
queue name --remove 2nd | give a position, an owner id or its beginning
queue name --remove fffffffffffffffffffffffffffffffff | give a position, an owner id or its beginning
queue --remove 1 | --remove needs a NAME
queue --first 1 | --first needs a NAME: rlock queue NAME --first OWNER
queue name --first 1 --remove 2 | --remove and --first cannot be used together
queue name --first 1 $three | --first works with one server only; start later runs with --urgent
queue name --reason x | --reason needs --remove OWNER or --first OWNER
queue name --format plain
force-unlock --yes
force-unlock name --yes --token x
force-unlock name --yes --token -1
force-unlock name --yes --owner ''
force-unlock name --yes --all --token 1
acquire --ttl 1m
acquire one two --ttl 1m
acquire name | --renew-while
acquire '' --ttl 1m | it is empty; is its variable set?
release --owner '' name
acquire name --ttl 999ms
acquire name --renew-while x | --renew-while
acquire name --renew-while=0 | --renew-while
acquire name --renew-while=-1 | --renew-while
acquire name --renew-while=99999999999 | --renew-while
acquire name -t 15m $three
renew --owner $owner
renew name | --owner
renew name --owner x
renew name --owner $owner --token x
renew name --owner $owner --ttl 0
renew name --owner $owner --format plain | --ttl
release --owner $owner
release name | --owner
release name --owner x
history one two
history name -n x | --runs
history name -n 0 | --runs
history name --format plain
close name | --for DUR or --until TIME
close name --for 1h --until 18:00
close name --for 31d | at most 30d; to keep it closed, run rlock close again
close name --for 0 | open again immediately: use a later --until
close name --until 2001-01-01T00:00 | "2001-01-01T00:00" has passed; give a later time
close name --until 2027-02-30T00:00Z | not a time
close name --until tomorrow | not a time such as 18:00
close --for 1h
close name --for 1h --reason \$'two\nlines' | --reason contains control characters; leave them out
close name --for 1h --reason $(printf '%0201d' 0) | --reason is longer than 200 bytes; shorten it
close name --for 1h --format plain
watch --format plain | watch --format plain needs a NAME
config nightly
doctor name
doctor -u odd://x
completion tcsh | bash|zsh|fish
completion | name a shell
local | rlock stop-local
local stop | rlock stop-local
stop-local | rlock stop-local --url local:
stop-local name | takes no NAME
help nightly | unknown topic
help 256 | exit-codes
END
}

@test "check reports wrong arguments on stdout and exits with 3, as monitoring systems expect" {
  for words in "check" "check a b" "check a --within soon" "check a --no-such-option" "--connect-timeout 1x check a" \
    "-u $RLOCK_URL --no-such-option check a"; do
    # shellcheck disable=SC2086 # words
    run -3 --separate-stderr rlock $words
    [[ $output == "RLOCK UNKNOWN - "* ]] || fail "$words: $output"
  done
}

@test "URLs are refused for bad schemes, hosts, ports, databases, query keys and relative paths" {
  for url in x host:6379 http://h redis:// redis:///1 redis://h:0 redis://h:65536 redis://h:x redis://h/x \
    redis://h/-1 redis://h/1/2 'redis://[::1' 'redis://h?frob=1' redis://a%zz@h redis://:%@h unix:// unix://relative \
    'unix:///s?db=x' 'unix:///s?frob=1'; do
    refused run -u "$url" name -- touch started
  done
  refused run -u redis://word@h name -- touch started
  [[ $stderr == *redis://*:*@* ]] || fail "not both spellings: $stderr"
  refused run -u 'local:my locks' name -- touch started
  says absolute
  RLOCK_URL=local:locks refused status lock
}

@test "two URLs are refused: no majority can survive one of them" {
  refused run -u "unix://$SERVER/s" -u "unix://$SERVER/t" name -- touch started
  RLOCK_URL="unix://$SERVER/s unix://$SERVER/t" refused run name -- touch started
  RLOCK_URL="unix://$SERVER/s,unix://$SERVER/t" refused run name -- touch started
}

@test "no message shows a password" {
  for url in redis://u:canary@h:x redis://:canary@h/x 'unix://:canary@/s?frob=1' redis://u:canary@h:1/0/0; do
    refused -v run -u "$url" name -- touch started
    [[ $output$stderr != *canary* ]] || fail "$stderr"
  done
}

@test "an error is JSON on stdout with --json, one line on stderr" {
  run -69 --separate-stderr rlock status --json -u "unix://$here/nobody"
  says "$here/nobody"
  jq -e '.schema == 1 and .error.code == 69 and .error.kind == "unreachable" and (.error.message | length > 0)' <<<"$output"
  refused status --json --frobnicate
  jq -e '.error.code == 64 and .error.kind == "usage"' <<<"$output"
}

@test "the messages of a busy lock, 69 and 77 name the next command" {
  own
  hold "two words"
  run -75 --separate-stderr rlock run -n "two words" -- true
  says "; see rlock status 'two words'"
  export RLOCK_PREFIX='ci: '
  hold build
  run -75 --separate-stderr rlock run -n build -- true
  says "; see rlock status --prefix='ci: ' build"
  let_go build
  unset RLOCK_PREFIX
  owner=$(rlock acquire --ttl 1m -- --all)
  run -75 --separate-stderr rlock acquire -n --ttl 1m --url "$RLOCK_URL" -- --all
  says "; see rlock status --url $RLOCK_URL -- --all"
  rlock release --owner "$owner" -- --all
  run -75 --separate-stderr rlock acquire --ttl 1m -w 0.1 "two words"
  says "; see rlock status 'two words'"
  let_go "two words"
  local nobody="unix://$here/nobody"
  run -69 --separate-stderr rlock run -n -u "$nobody" --connect-timeout 0.1 x -- true
  says "rlock doctor"
  run -69 --separate-stderr rlock status -u "$nobody" --connect-timeout 0.1
  says "rlock doctor"
  run -77 --separate-stderr rlock run -q -u "unix://nobody:wrong@$SERVER/s" x -- true
  says "rlock doctor"
}

@test "refused input makes no request" {
  [[ $(redis info commandstats) != *cmdstat_client* ]] || fail "$(redis info commandstats)"
}
