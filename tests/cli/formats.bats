#!/usr/bin/env bats
# --format plain and redisson by themselves; formats_peers.bats has the other clients.
load helpers/helpers

forms=(plain redisson)

# their_hash NAME FIELD VALUE MS: a lock as Redisson stores it.
their_hash() { redis hset "$1" "$2" "$3" >/dev/null && redis pexpire "$1" "$4" >/dev/null; }

looks() { rlock status --json "$@" | jq -c '.locks[0] | [.state, .format, .holders[0].owner]'; }
exists() { [ "$(redis exists "$1")" -eq 1 ]; }
absent() { [ "$(redis exists "$1")" -eq 0 ]; }

@test "the key is NAME itself, with the owner and an end; nothing is left after the run" {
  run -0 rlock run --format plain -t 20 job -- sh -c \
    'redis-cli -s "$0/s" get job; redis-cli -s "$0/s" pttl job; echo "$RLOCK_OWNER $RLOCK_NAME"' "$SERVER"
  [ "${lines[2]}" = "${lines[0]} job" ]
  [ "${lines[1]}" -gt 0 ]
  [ "${lines[1]}" -le 20000 ]
  run -0 rlock run --format redisson -t 20 job -- sh -c \
    'redis-cli -s "$0/s" hgetall job; redis-cli -s "$0/s" pttl job; echo "$RLOCK_OWNER"' "$SERVER"
  [ "${lines[0]} ${lines[1]}" = "${lines[3]}:1 1" ]
  [ "${lines[2]}" -gt 0 ]
  [ "${lines[2]}" -le 20000 ]
  [ "$(redis dbsize)" -eq 0 ]
}

@test "RLOCK_TOKEN is not set, and one of an outer run is removed" {
  for form in "${forms[@]}"; do
    RLOCK_TOKEN=7 run -0 rlock run --format "$form" job -- sh -c 'echo "${RLOCK_TOKEN-unset}"'
    [ "$output" = unset ]
  done
}

@test "a busy lock of another format exits with 75 for -n and -w and names the owner" {
  for form in "${forms[@]}"; do
    hold "$form" --format "$form"
    run -75 --separate-stderr rlock run -n --format "$form" "$form" -- touch started
    says "$form" busy "held by owner $(rlock status --format "$form" --json "$form" | jq -r '.locks[0].holders[0].owner')"
    run -75 rlock run -w 300ms --format "$form" "$form" -- touch started
    run -9 rlock run -n -E 9 --format "$form" "$form" -- touch started
    let_go "$form"
    run -7 rlock run -n --format "$form" "$form" -- sh -c 'exit 7'
    absent "$form"
  done
}

@test "a waiter acquires after a release" {
  for form in "${forms[@]}"; do
    hold "$form" --format "$form"
    start rlock run --format "$form" "$form" -- touch "served.$form"
    waiter=$!
    if [ "$form" = redisson ]; then eventually subscribed; fi
    let_go "$form"
    ends_with 0 "$waiter"
    [ -e "served.$form" ]
  done
}

subscribed() { [ "$(redis --raw pubsub numsub 'redisson_lock__channel:{redisson}' | tail -n 1)" -eq 1 ]; }

@test "a key without a value is held by a client without an owner id" {
  redis set blank '' px 60000 >/dev/null
  refuses 75 "held by a client without an owner id;" -- rlock run -n --format plain blank -- touch started
}

@test "the lease is renewed while the command runs" {
  for form in "${forms[@]}"; do start rlock run --format "$form" -t 8 "$form" -- sleep 9 >>said 2>&1; done
  all_done
  [ ! -s said ] || fail "$(cat said)"
}

@test "a lease that was deleted, or taken over, ends the command: 76, and the other's lock is untouched" {
  hold gone --format plain -t 3
  redis del gone >/dev/null
  ends_with 76 "$holder"
  hold taken --format plain -t 3
  redis set taken stranger px 60000 >/dev/null
  ends_with 76 "$holder"
  [ "$(redis --raw get taken)" = stranger ]
  hold hash --format redisson -t 3
  redis del hash >/dev/null
  their_hash hash stranger:5 1 60000
  ends_with 76 "$holder"
  [ "$(redis --raw hget hash stranger:5)" = 1 ]
}

@test "a redisson holder is notified immediately that its lock was broken" {
  hold broken --format redisson -t 60
  eventually listening
  run -0 rlock force-unlock --yes broken
  ends_with 76 "$holder"
}

listening() { [ "$(redis --raw pubsub numsub 'redisson_lock__channel:{broken}' | tail -n 1)" -eq 1 ]; }

@test "a lock that was never released is free when its lease expires" {
  redis set old stranger px 700 >/dev/null
  run -0 rlock run -w 20 --format plain old -- true
  their_hash old stranger:1 3 700
  run -0 rlock run -w 20 --format redisson old -- true
}

@test "status shows a lock of another format only with --format" {
  redis set p stranger px 60000 >/dev/null
  [ "$(looks p)" = '["free","native",null]' ]
  [ "$(looks --format plain p)" = '["held","plain","stranger"]' ]
  their_hash r uuid:31 2 60000
  [ "$(looks --format redisson r)" = '["held","redisson","uuid:31"]' ]
  [ "$(rlock status --format redisson --json r | jq -c '.locks[0] | [.waiters] + [.holders[0] | .token, .host, .pid, .user,
    .command, .since, .held_ms, .entries]')" = '[null,null,null,null,null,null,null,null,2]' ]
  shows 0 "plain format" "held by  unknown" "owner    stranger" -- rlock status --format plain p
  run -1 rlock status -q p
}

@test "a key without an expiry, or of another type or shape, is no lock" {
  redis set value 1 >/dev/null
  redis hset two a 1 b 2 >/dev/null
  redis pexpire two 60000 >/dev/null
  their_hash words a text 60000
  redis rpush list a >/dev/null
  for name in value two words list; do
    [ "$(looks "$name")" = '["free","native",null]' ] || fail "$name: $(looks "$name")"
  done
  for name in two words list; do
    run -65 rlock run -n --format redisson "$name" -- true
    run -65 rlock run -n --format plain "$name" -- true
    exists "$name"
  done
  # With --format the operator says so.
  [ "$(looks --format plain value)" = '["held","plain","1"]' ]
  run -75 --separate-stderr rlock run -n --format plain value -- true
  redis del value two words list >/dev/null
}

@test "a native lock of the same name is another lock" {
  redis set both stranger px 60000 >/dev/null
  hold both
  [[ $(looks both) == '["held","native",'* ]]
  [ "$(looks --format plain both)" = '["held","plain","stranger"]' ]
  let_go both
  [ "$(looks both)" = '["free","native",null]' ]
}

@test "force-unlock frees what was shown and nothing else, and says that the holder is not notified" {
  redis set f 'a b=' px 60000 >/dev/null
  run -64 --separate-stderr rlock force-unlock f
  exists f
  run -75 rlock force-unlock --yes --format plain --owner other f
  exists f
  shows 0 "cannot be notified" -- rlock force-unlock --yes f
  absent f
  their_hash f uuid:1 1 60000
  run -0 rlock force-unlock --yes --format redisson --owner uuid:1 f
  absent f
  shows 0 "not held" -- rlock force-unlock --yes f
}

@test "a lock of another format is named by the owner that status prints; no token names it" {
  redis set p host:123 px 60000 >/dev/null
  their_hash r uuid:31 1 60000
  run -0 rlock status -q --format plain --owner host:123 p
  run -1 rlock status -q --format plain --owner host:124 p
  run -75 --separate-stderr rlock force-unlock p --owner host:124 --yes
  local name format=plain
  for name in p r; do
    refuses 64 --token -- rlock force-unlock "$name" --token 0 --yes
    refuses 64 "$name" --token format -- rlock force-unlock "$name" --token 7 --yes
    refuses 64 --owner -- rlock force-unlock "$name" --owner '' --yes
    exists "$name"
    run -0 rlock force-unlock "$name" --owner "$(rlock status --format "$format" --json "$name" | jq -r '.locks[0].holders[0].owner')" --yes
    absent "$name"
    format=redisson
  done
}

@test "a run inside a run of the same lock of another format exits with 64, because it would wait for itself" {
  for form in "${forms[@]}"; do
    refuses 64 in "$form" re-entry -- rlock run --format "$form" in -- rlock run --format "$form" in -- true
    run -75 rlock run --format "$form" in -- env -u RLOCK_HELD rlock run -n --format "$form" in -- true
    held=$(rlock run --format "$form" in -- sh -c 'echo "$RLOCK_HELD"')
    RLOCK_HELD=$held run -0 rlock run --format "$form" in -- true
    run -0 rlock run --format "$form" in -- rlock run in -- true
  done
}

@test "options that these formats cannot store are refused with a reason" {
  for form in "${forms[@]}"; do
    for option in --slots=2 --shared --min-hold=3 --max-queue=1 --reason=x; do
      refuses 64 "${option%%=*}" "--format $form" -- rlock run --format "$form" "$option" x -- true
    done
  done
}

@test "acquire, renew and release change nothing for an owner that is not the holder" {
  for form in "${forms[@]}"; do
    owner=$(rlock acquire --format "$form" --ttl 20 step)
    run -76 rlock renew --format "$form" --ttl 90 --owner "${owner//[0-9]/0}" step
    run -76 rlock release --format "$form" --owner "${owner//[0-9]/0}" step
    [ "$(redis pttl step)" -le 20000 ]
    run -0 rlock renew --format "$form" --ttl 60 --owner "$owner" step
    [ "$(redis pttl step)" -gt 20000 ]
    run -0 rlock release --format "$form" --owner "$owner" step
    run -76 rlock release --format "$form" --owner "$owner" step
    absent step
  done
}

@test "after SCRIPT FLUSH the scripts are sent again" {
  for form in "${forms[@]}"; do
    hold "$form" --format "$form"
    redis script flush >/dev/null
    let_go "$form"
    absent "$form"
  done
}

@test "NAME is another program's key: hash tags and patterns' characters are parts of it, control characters are not" {
  for form in plain redisson; do
    for name in '{shop}:lock' 'jobs[1]*'; do
      run -0 rlock run --format "$form" "$name" -- redis-cli -s "$SERVER/s" --raw exists "$name"
      [ "$output" = 1 ] || fail "$form $name: $output"
    done
    run -64 --separate-stderr rlock run --format "$form" $'a\nb' -- true
    says "control characters"
  done
}

tagged_subscribed() { [ "$(redis --raw pubsub numsub 'redisson_lock__channel:{shop}:lock' | tail -n 1)" -eq 1 ]; }

@test "Redisson's channel of a name with braces has no braces of its own" {
  hold '{shop}:lock' --format redisson
  start rlock run -q --format redisson -w 60 '{shop}:lock' -- touch ran
  local waiter=$!
  eventually tagged_subscribed
  let_go '{shop}:lock'
  ends_with 0 "$waiter"
  [ -e ran ]
}

# names_key KEY KIND CODE COMMAND…: it ends with CODE, and its message names them and the whole line that deletes the key.
names_key() {
  local key=$1 kind=$2 code=$3
  shift 3
  run -"$code" --separate-stderr "$@"
  [[ $output$stderr == *"$key is $kind"* && $output$stderr == *": redis-cli -s $SERVER/s DEL $key"* ]] || fail "$*: $output$stderr"
}

@test "a key of another program that keeps everybody from a lock is named, with its type, its expiry and how to delete it; rlock never does" {
  local key
  redis set app-queue value >/dev/null
  redis rpush app-list value >/dev/null
  redis hset app-hash field value >/dev/null
  names_key app-queue "a string without an expiry" 75 rlock run -n --format plain app-queue -- touch started
  names_key app-queue "a string without an expiry" 75 rlock acquire -n --ttl 1m --format plain app-queue
  names_key app-queue "a string without an expiry" 0 rlock status --format plain app-queue
  names_key app-list "a list without an expiry" 65 rlock run -n --format plain app-list -- touch started
  names_key app-list "a list without an expiry" 65 rlock status --format plain app-list
  names_key app-hash "a hash without an expiry" 65 rlock run -n --format redisson app-hash -- touch started
  redis expire app-hash 7000 >/dev/null
  names_key app-hash "a hash that expires in 1h56m" 65 rlock acquire -n --ttl 1m --format redisson app-hash
  for key in app-queue app-list app-hash; do
    run -0 rlock force-unlock --yes $key
    [[ $output == "\"$key\" is not held, and rlock does not break keys of other programs: the key $key is a "*"DEL $key" ]] || fail "$output"
    [ "$(redis exists $key)" -eq 1 ]
  done
  # The line that was printed does it.
  run -75 --separate-stderr rlock run -n --format plain app-queue -- touch started
  sh -c "${stderr##*if no program needs it: }" >/dev/null
  run -0 rlock run -n --format plain app-queue -- true
}

@test "run, acquire, status and force-unlock name a key of a lock that has another type" {
  redis rpush 'rlock:{shop/job}:queue' value >/dev/null
  for command in "run -n shop/job -- touch started" "acquire -n --ttl 1m shop/job" "status shop/job" "force-unlock --yes shop/job"; do
    # shellcheck disable=SC2086 # words
    run -65 --separate-stderr rlock $command
    [[ $stderr == *"the key rlock:{shop/job}:queue is used for something else"*": redis-cli -s $SERVER/s DEL 'rlock:{shop/job}:queue'  # 'rlock:{shop/job}:queue' is a list without an expiry" ]] ||
      fail "$command: $stderr"
  done
  # The line is printed once, and is for the database and the user of the run.
  redis -n 3 rpush 'rlock:{shop/job}:queue' value >/dev/null
  limited "~* +@all"
  RLOCK_URL+="?db=3" run -65 --separate-stderr rlock run -n shop/job -- touch started
  [ "$(grep -o 'redis-cli' <<<"$stderr" | wc -l)" = 1 ] || fail "$stderr"
  says ": redis-cli -s $SERVER/s --user limited --askpass -n 3 DEL 'rlock:{shop/job}:queue'  # "
  run -65 --separate-stderr rlock release --owner 0123456789abcdef0123456789abcdef shop/job
  says ": redis-cli -s $SERVER/s --user limited --askpass DEL 'rlock:{shop/job}:queue'"
  redis -n 3 flushdb >/dev/null
  # A server that does not say what it is.
  limited "~rlock:* +@all -type"
  run -65 --separate-stderr rlock run -n shop/job -- touch started
  says "used for something else"
}
