#!/usr/bin/env bats
load helpers/helpers

rfc3339='^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$'

@test "status --json has every field, and mode and slots show the limit" {
  hold exact -t 20 --reason why
  rlock status --json exact >status
  jq -e --arg user "$(id -un)" --arg host "$(hostname)" --argjson pid "$holder" --arg time "$rfc3339" '
    .schema == 1 and (.locks | length) == 1 and (.locks[0] |
      .name == "exact" and .state == "held" and .mode == "exclusive" and .slots == 1 and .waiters == 0 and
      .format == "native" and (.holders | length) == 1 and (.holders[0] |
        (.owner | test("^[0-9a-f]{32}$")) and (.token | type == "number" and . == floor and . < 9007199254740992) and
        .host == $host and .pid == $pid and .user == $user and (.command | startswith("sh -c")) and
        .reason == "why" and (.since | test($time)) and .held_ms >= 0 and
        .left_ms > 10000 and .left_ms <= 20000 and .ttl_ms == 20000 and .entries == 1))' status || fail "$(cat status)"
  let_go exact
}

@test "status calls a lock without a holder free, known or not" {
  rlock run remembered -- true
  run -0 rlock status --json remembered never-seen
  [ "$(jq -c '[.locks[] | [.name, .state, .holders, .waiters]]' <<<"$output")" = \
    '[["remembered","free",[],0],["never-seen","free",[],0]]' ] || fail "$output"
  run -0 rlock status never-seen remembered
  [ "${lines[0]}" = "never-seen: never held, not within 30 days, or the server has lost its data" ] || fail "$output"
  [[ ${lines[1]} == "remembered: free"* ]] || fail "$output"
  [ "$(rlock status --json remembered never-seen | jq -c '[.locks[].known]')" = '[true,false]' ]
}

@test "status cuts no name in a pipe, nor on a terminal that is wide enough" {
  reset_server
  name=team-1/$(printf 'x%.0s' {1..150})
  rlock run "$name" -- true
  rlock status --all | grep -qF "$name"
  rlock status "$name" | grep -qF "$name: free"
  rlock history "$name" | grep -qF "exit 0"
  needs_terminal
  name=team-1/nightly-import-of-all-the-things
  rlock run "$name" -- true
  start in_terminal.py sh -c 'stty cols 200 && rlock status "team-1/n*"' >shown
  ends_with 0 $!
  grep -qF "$name " shown || fail "$(cat shown)"
}

@test "times on a terminal are those of this host, with their offset, and elsewhere in UTC" {
  needs_terminal
  rlock run dated -- true
  utc='20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z'
  for call in 'rlock status dated' 'rlock history dated'; do
    TZ=XYZ-5:30 start in_terminal.py sh -c "$call" >shown
    ends_with 0 $!
    grep -qE '20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+05:30' shown || fail "$(cat shown)"
    TZ=XYZ-5:30 start in_terminal.py sh -c "$call 2>/dev/null" >shown
    ends_with 0 $!
    grep -qE "$utc" shown || fail "$(cat shown)"
    TZ=XYZ-5:30 $call | grep -qE "$utc"
  done
}

@test "a NAME with * or ? is a pattern, and status prints a table of the matches" {
  reset_server
  rlock run team-1/deploy -- true
  rlock run team-1/build -- true
  rlock run team-2/deploy -- true
  run -0 rlock status --json 'team-1/*'
  [ "$(jq -c '[.locks[].name]' <<<"$output")" = '["team-1/build","team-1/deploy"]' ] || fail "$output"
  run -0 rlock status 'team-?/deploy'
  [[ $output == *NAME*team-1/deploy*team-2/deploy* && $output != *build* ]] || fail "$output"
  run -0 rlock status 'team-3/*'
  [ "$output" = 'no lock matches "team-3/*"' ] || fail "$output"
  run -0 rlock status 'team-1/b*' unknown
  [[ $output == *team-1/build* && $output == *unknown* ]] || fail "$output"
}

@test "a lock without renewal, a renewed lock and a cool-down are shown differently" {
  reset_server
  owner=$(rlock acquire manual --ttl 10m)
  hold running
  run -0 rlock status manual
  [[ $output == *"only rlock renew extends it"* ]] || fail "$output"
  run -0 rlock status running
  [[ $output == *"lease    alive, renewed "*" ago"* ]] || fail "$output"
  rlock status | grep -q 'manual .*\[not renewed\]'
  renewed='[.locks[].holders[].renewed]'
  [ "$(rlock status --json manual running | jq -c "$renewed")" = '[false,true]' ]
  let_go running
  rlock release manual --owner "$owner"
  run -1 rlock run --min-hold 5m cooling -- false
  run -0 rlock status cooling
  [[ $output == *cooldown*"free in 4m5"* && $output != *lease* ]] || fail "$output"
  rlock status | grep -q 'cooling .*\[free in 4m5'
  [ "$(rlock status --json cooling | jq -c "$renewed")" = '[null]' ]
}

@test "status without a name lists every lock under the prefix, and no other" {
  reset_server
  hold other --prefix else:
  local elsewhere=$holder
  hold listed
  RLOCK_PREFIX=none: run -0 rlock status --json
  [ "$(jq -c . <<<"$output")" = '{"schema":1,"locks":[],"free":0}' ]
  run -0 rlock status --json
  [ "$(jq -c '[.locks[].name]' <<<"$output")" = '["listed"]' ] || fail "$output"
  run -0 rlock status
  [[ $output == *listed* && $output != *other* ]]
  let_go listed
  holder=$elsewhere
  let_go other
}

@test "status -q exits with 0 if the lock is held and 1 if not, and --owner asks about that owner" {
  run -1 --separate-stderr rlock status -q asked
  silent
  hold asked
  quietly rlock status -q asked
  run -0 rlock status -q asked --owner "$(about asked owner)"
  run -1 rlock status -q asked --owner 0123456789abcdef0123456789abcdef
  let_go asked
}

@test "--hide-command stores no command line, and a long one is cut" {
  hold hidden --hide-command
  [ "$(about hidden command)" = null ]
  redis --raw hgetall 'rlock:{hidden}:who' >stored
  grep -q '"pid"' stored
  run ! grep -q 'read -r' stored
  let_go hidden
  mkfifo up go
  start rlock run long -- sh -c 'exec 9<>go; echo up >up; read -r _ <&9' "$(printf 'x%.0s' {1..1000})"
  next_line up
  [ "$(about long command | tr -d '\n' | wc -c)" -le 203 ]
  echo 1<>go
}

@test "queue shows when each waiter can expect the lock, after three successes" {
  for run in 1 2 3; do
    redis lpush "rlock:{due}:history" "kind=run token=$run since=1700000000000 ended=$((1700000000000 + 600000)) how=released result=exit:0 | {}" >/dev/null
  done
  hold due
  queue_up due
  queue_up due
  rlock queue --json due | jq -e '[.waiters[].starts_in_ms] | .[0] > 0 and .[0] <= 600000 and .[1] - .[0] == 600000'
  run -0 rlock queue due
  [[ ${lines[0]} == *"WAITING  STARTS IN"* && ${lines[1]} == *" 10m "* && ${lines[2]} == *" 20m "* ]] || fail "$output"
  rlock close -q due --for 1h
  rlock queue --json due | jq -e '.waiters[0].starts_in_ms > 3000000'
  rlock open -q due
  let_go due
}

@test "queue shows the pid of a waiter, and that it is silent, or dead on this host" {
  hold quiet
  queue_up quiet
  run -0 rlock queue quiet
  [[ ${lines[1]} == *"$(id -un)@"*" $waiter "* && ${lines[1]} != *"["* ]] || fail "$output"
  kill -KILL "$waiter"
  eventually gone "$waiter"
  run -0 rlock queue quiet
  [[ $output == *"[no such process here] true"* ]] || fail "$output"
  rlock queue quiet --json | jq -e '.waiters[0].silent_ms == null'
  moved 8
  run -0 rlock queue quiet
  [[ $output =~ \[silent\ [0-9]+(\.[0-9])?s,\ no\ such\ process\ here\]\ true ]] || fail "$output"
  rlock queue quiet --json | jq -e '.waiters[0].silent_ms >= 8000'
  let_go quiet
}

@test "queue without NAME shows the waiters of all locks" {
  own
  run -0 rlock queue
  [ "$output" = "no run is waiting" ]
  run -0 rlock queue nobody
  [ "$(rlock queue --json nobody | jq -c .)" = '{"schema":1,"name":"nobody","waiters":[]}' ]
  rlock acquire idle --ttl 10m >/dev/null
  for name in left right; do
    rlock acquire "$name" --ttl 10m >/dev/null
    queue_up "$name" --reason "for $name"
  done
  run -0 rlock queue
  [[ ${lines[0]} == "NAME "*" OWNER" && ${lines[1]} == "left "*"for left"* && ${lines[2]} == "right "*"for right"* &&
    ${#lines[@]} -eq 3 ]] || fail "$output"
  rlock queue --json | jq -e '.name == null and [.waiters[] | [.name, .position]] == [["left", 1], ["right", 1]]'
  quietly rlock queue -q
}

# owner_at POSITION: of the waiters for crowd.
owner_at() { rlock queue --json crowd | jq -r ".waiters[$1 - 1].owner"; }

@test "queue --remove takes digits that are no position as the beginning of an owner id" {
  hold digits
  local owner waiting=0
  until owner=$(rlock queue --json digits | jq -er '[.waiters[].owner | select(test("^[1-9][0-9]"))][0]'); do
    waiting=$((waiting + 1))
    [ "$waiting" -lt 90 ] || fail "no owner id begins with two digits"
    start rlock run -q digits -- true
    eventually waiting "$waiting" digits
  done
  digits=$(grep -oE '^[0-9]{2,6}' <<<"$owner")
  [ "$digits" -gt "$waiting" ] || skip "too many waiters came first"
  run -0 --separate-stderr rlock queue digits --remove "$digits"
  [[ $output == "removed "*" from the queue of \"digits\": true" ]] || fail "$output"
}

@test "queue --remove takes a position, or the beginning of an owner id if only one has it" {
  rlock acquire crowd --ttl 10m >/dev/null
  for _ in 1 2 3; do start rlock run -q crowd -- true; done
  eventually waiting 3 crowd
  for form in position beginning; do
    owner=$(owner_at 2)
    pid=$(rlock queue --json crowd | jq '.waiters[1].pid')
    case $form in
      position) run -0 rlock queue crowd --remove 2 ;;
      beginning) run -0 rlock queue crowd --remove "${owner:0:12}" ;;
    esac
    [ "$output" = "removed $(id -un)@$(hostname) (pid $pid) from the queue of \"crowd\": true" ] || fail "$form: $output"
  done
  [ "$(waiters crowd)" -eq 1 ]
  while read -r form text; do
    run -0 rlock queue crowd --remove "$form"
    [ "$output" = "$text: nothing to remove" ] || fail "$form: $output"
  done <<'END'
999999 the queue of "crowd" has no position 999999 and no owner id that begins with 999999 (rlock queue crowd lists them)
ffffffffffff ffffffffffff is not waiting for "crowd"
END
  # Until two owner ids begin with the same letter.
  until letter=$(rlock queue --json crowd |
    jq -er '[.waiters[].owner[0:1]] | group_by(.) | map(select(length > 1)[0] | select(test("[a-f]")))[0]'); do
    owners=$(waiters crowd)
    start rlock run -q crowd -- true
    eventually waiting $((owners + 1)) crowd
  done
  owners=$(waiters crowd)
  run -64 --separate-stderr rlock queue crowd --remove "$letter"
  says "--remove $letter: " "waiters have an owner id that begins with this: $letter" "give more characters, or a position"
  [ "$(waiters crowd)" -eq "$owners" ]
}

@test "force-unlock never prompts off a terminal: it needs --yes" {
  hold unbroken
  run -64 --separate-stderr rlock force-unlock unbroken </dev/null
  [[ $stderr == *--yes* ]] || fail "$stderr"
  held unbroken
  let_go unbroken
}

@test "force-unlock shows what it breaks" {
  hold broken --reason precious
  rlock status --json broken >before
  rlock force-unlock broken --yes >shown 2>&1
  for text in broken "$(id -un)@$(hostname)" "$holder" precious; do
    grep -q "$text" shown || fail "\"$text\" is not in: $(cat shown)"
  done
  [ "$(grep -c precious shown)" -eq 1 ] || fail "shown more than once: $(cat shown)"
  ends_with 76 "$holder"
}

@test "force-unlock --json contains what was released and who is next" {
  hold handed
  queue_up handed
  owner=$(about handed owner)
  rlock force-unlock handed --yes --now --json >forced 2>/dev/null
  next=$(jq -r .next forced)
  jq -e --arg owner "$owner" '.schema == 1 and .name == "handed" and [.broken[].owner] == [$owner]' forced ||
    fail "$(cat forced)"
  [[ $next =~ ^[0-9a-f]{32}$ ]] || fail "$(cat forced)"
  ends_with 0 "$waiter"
  ends_with 76 "$holder"
}

@test "force-unlock of a lock without a holder says so and exits with 0" {
  run -0 --separate-stderr rlock force-unlock idle --yes
  [[ $output$stderr == *"not held"* ]] || fail "$output$stderr"
  run -0 --separate-stderr rlock force-unlock idle --yes --json
  jq -e '.broken == [] and .next == null' <<<"$output"
}

@test "force-unlock with an --owner or --token that no longer matches changes nothing and exits with 75" {
  hold matched
  run -75 --separate-stderr rlock force-unlock matched --yes --owner 0123456789abcdef0123456789abcdef
  says matched
  run -75 --separate-stderr rlock force-unlock matched --yes --token 1
  says matched
  [ "$(rlock status --json matched | jq -r '.locks[0].state')" = held ]
  run -0 rlock force-unlock matched --yes --token "$(about matched token)"
  ends_with 76 "$holder"
  hold matched
  run -0 rlock force-unlock matched --yes --owner "$(about matched owner)"
  ends_with 76 "$holder"
  hold matched
  run -0 rlock force-unlock matched --yes --all
  ends_with 76 "$holder"
}

@test "on a terminal force-unlock asks, and changes nothing after a no" {
  needs_terminal
  hold prompted
  run in_terminal.py rlock force-unlock prompted <<<n
  [[ $output == *prompted* ]] || fail "$output"
  held prompted
  let_go prompted
}

# asked NAME [OPTION…]: force-unlock NAME has shown what it breaks, and waits until answer() types there. What is
# started meanwhile must not inherit descriptor 8.
asked() {
  rm -f answer question
  mkfifo answer
  exec 8<>answer
  start sh -c 'exec "$@" <answer >question 8>&-' sh \
    in_terminal.py rlock force-unlock "$@"
  operator=$!
  eventually test -s question
}

answer() {
  echo "$1" >&8
  exec 8>&-
}

@test "force-unlock that showed a cool-down does not break a holder that came before the answer" {
  needs_terminal
  for options in "" --all; do
    rlock run --min-hold 1h cool -- true
    # shellcheck disable=SC2086 # none or one
    asked cool $options
    rlock force-unlock --yes cool
    hold cool 8>&-
    answer y
    ends_with 75 "$operator"
    grep -q 'free in .*(--min-hold)' question
    grep -q 'nothing was changed' question
    held cool
    let_go cool
  done
}

# breaks NAME [OPTION…]: force-unlock NAME with the answer y, all that it says.
breaks() {
  asked "$@"
  answer y
  ends_with 0 "$operator"
  cat question
}

@test "force-unlock says what happens to the holder, before and after" {
  needs_terminal
  hold run --reason precious
  run -0 breaks run
  [[ $output == *"its holder will be asked to stop its command. Break it?"*"the holder was asked to stop its command; the next one starts"* ]] || fail "$output"
  ends_with 76 "$holder"
  hold run
  run -0 breaks run --now
  [[ $output == *"this frees the lock immediately: unless its holder's host is dead, two commands may overlap. Break it?"*"may overlap with"* ]] || fail "$output"
  ends_with 76 "$holder"
  rlock acquire steps --ttl 1h
  run -0 breaks steps
  [[ $output == *"its holder is not notified and may overlap"*"Break it?"*"freed immediately; the holder is not notified"*"may overlap"* ]] ||
    fail "$output"
  start sleep 1000
  rlock acquire renewed --renew-while $!
  run -0 breaks renewed
  [[ $output == *"rlock cannot stop its steps: the next holder waits until their process exits or the lease expires. Break it?"*"process $!"* ]] ||
    fail "$output"
  run -0 breaks renewed --now
  [[ $output == *"rlock cannot stop its steps, which may overlap with the next holder. Break it?"*"may overlap"* ]] ||
    fail "$output"
  rlock run --min-hold 1h cool -- true
  run -0 breaks cool --now
  [[ $output == *"the lock is only in its cool-down. Break it?"*"freed immediately"* && $output != *overlap* ]] || fail "$output"
  redis set other stranger px 3600000
  run -0 breaks other
  [[ $output == *"cannot be notified and may overlap with the next one. Break it?"*"cannot be notified"*"may overlap"* ]] || fail "$output"
}

@test "the shell does not get the rest of a long answer" {
  needs_terminal
  hold asked
  printf '%0100d\n' 0 | in_terminal.py \
    bash -c 'rlock force-unlock asked; ! read -t 0 || echo "left behind"' >said
  grep -q 'Break it?' said
  run ! grep 'left behind' said
  let_go asked
}

@test "a record that is not ours still gives valid JSON" {
  hold odd
  owner=$(redis --raw zrange 'rlock:{odd}:holders' 0 0)
  held=$(redis --raw hget 'rlock:{odd}:who' "$owner")
  printf '%s| {"host": 7, "user": ["\xff"], "pid": "x"' "${held%%|*}" | redis -x hset 'rlock:{odd}:who' "$owner" >/dev/null
  rlock status --json odd >status
  python3 -c 'import json, sys; json.loads(open("status", "rb").read().decode("utf-8"))'
  rlock status odd >/dev/null
  let_go odd
}

@test "--version and --help work without a server, everywhere" {
  unset RLOCK_URL
  for words in "--version" "--help" "run --help" "status --help" "queue --help" "force-unlock --help"; do
    # shellcheck disable=SC2086
    run -0 --separate-stderr rlock $words
    [ -n "$output" ]
    [ -z "$stderr" ]
  done
  # -h is short; "Usage: " alone goes to standard error.
  for words in "" run acquire queue; do
    # shellcheck disable=SC2086
    run -0 --separate-stderr rlock $words -h
    [[ ${#lines[@]} -le 45 && $output == *Examples:* && $output == *"--help"* && -z $stderr ]] || fail "$words: $output"
  done
  version=$(sed -n 's/^project(rlock VERSION \([0-9.]*\) .*/\1/p' "$BATS_TEST_DIRNAME/../../CMakeLists.txt")
  [[ -n $version && $(rlock --version) == "rlock $version"[$' \n']* ]]
}

@test "force-unlock of a holder that may be dead names --now" {
  hold silent -t 60s
  kill -STOP "$holder"
  run -0 rlock force-unlock silent --yes
  [[ $output == *"when the lease expires; if the holder's host is dead, use --now to free the lock immediately"* ]] || fail "$output"
  kill -CONT "$holder"
  ends_with 76 "$holder"
}

@test "force-unlock --all of more holders than go into one step reports every one" {
  for _ in {1..501}; do rlock acquire many -s --ttl 10m >/dev/null; done
  [ "$(rlock force-unlock many --all --yes -q --json | jq '.broken | length')" -eq 501 ]
  run -0 rlock status many
  [[ $output == *"free"* ]] || fail "$output"
}

# bats test_tags=one_program
@test "force-unlock --all that fails half-way reports what it broke, and that the rest was not" {
  for _ in {1..501}; do rlock acquire many -s --ttl 10m >/dev/null; done
  start picky_server.py "$here/all" "$SERVER/s" all.log
  eventually test -S all
  rlock acquire one --ttl 10m >/dev/null
  rlock force-unlock -u "unix://$here/all" one --yes -q
  local force
  force=$(awk '$2 == "EVALSHA" { last = $3 } END { print toupper(last) }' all.log)
  start picky_server.py "$here/half" "$SERVER/s" half.log "EVALSHA $force@2=-NOPERM this user may not"
  eventually test -S half
  run -77 --separate-stderr rlock force-unlock -u "unix://$here/half" many --all --yes --json
  [ "$(jq -c '[(.broken | length), .error.code, (.error.message | contains("500 of 501 holders were broken"))]' <<<"$output")" = "[500,77,true]" ] ||
    fail "$output"
  [[ $stderr == "rlock: "*NOPERM*"500 of 501 holders were broken before"*"run the same command again"* ]] || fail "$stderr"
  run -0 rlock force-unlock many --all --yes
  [ "$(grep -c '  was ' <<<"$output")" -eq 1 ] || fail "$output"
}

@test "the commands report a name that had no holder for 30 days, and suggest a similar name" {
  rlock run shop/nightly -- true
  local command
  for command in "force-unlock --yes" queue history "forget --yes" open; do
    # shellcheck disable=SC2086 # words
    run -0 --separate-stderr rlock $command shop/nightyl
    says "no run held \"shop/nightyl\" at $SERVER/s in the last 30 days; did you mean \"shop/nightly\"?" || fail "$command: $stderr" || return
    # shellcheck disable=SC2086
    run -0 --separate-stderr rlock $command -q shop/nightyl || [ "$status" -eq 1 ]
    [ -z "$stderr" ] || fail "$command -q: $stderr" || return
    # shellcheck disable=SC2086
    run -0 --separate-stderr rlock $command shop/nightly
    [ -z "$stderr" ] || fail "$command: $stderr" || return
  done
  run -0 --separate-stderr rlock status nightly
  says '"nightly": did you mean "shop/nightly"?'
  run -0 --separate-stderr rlock status shop/nightyl
  says '"shop/nightyl": did you mean "shop/nightly"?'
  run -0 --separate-stderr rlock status --json shop/nightyl
  [ -z "$stderr" ] || fail "$stderr"
  for command in release renew; do
    run -76 --separate-stderr rlock $command nightly --owner 0123456789abcdef0123456789abcdef
    says 'did you mean "shop/nightly"?'
  done
  run -0 --separate-stderr rlock history quite-another
  says 'no run held "quite-another"' "30 days"
  [[ $stderr != *"did you mean"* ]] || fail "$stderr"
  # Commands that ask often, or make a name known.
  run -1 --separate-stderr rlock status -q shop/nightyl
  silent
  run -3 --separate-stderr rlock check shop/nightyl
  [ -z "$stderr" ] || fail "$stderr"
  quietly rlock close -q shop/nightyl --for 1h
}

@test "closing a name says that no run of it is known, and suggests a similar name" {
  rlock run shop/nightly -- true
  run -0 --separate-stderr rlock close shop/nightly shop/nihgtly --for 1h
  [ "$stderr" = "rlock: no run of \"shop/nihgtly\" is known at $SERVER/s; did you mean \"shop/nightly\"?" ] || fail "$stderr"
  [[ $output == *'closed "shop/nihgtly" until'* ]] || fail "$output"
  # It is closed already: whoever closed it has read this.
  run -0 --separate-stderr rlock close shop/nihgtly --for 2h
  [ -z "$stderr" ] || fail "$stderr"
}

@test "a name without a holder is no error on a server that refuses to list names" {
  rlock run team/report -- true
  limited "~rlock:* +@all -scan"
  run -0 --separate-stderr rlock force-unlock --yes team/reprot
  says "no run held"
  [[ $stderr != *"did you mean"* ]] || fail "$stderr"
}
