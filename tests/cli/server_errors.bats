#!/usr/bin/env bats
load helpers/helpers

@test "exit 69: nothing listens" {
  RLOCK_URL="unix://$here/nobody" refuses 69 lock "$here/nobody" "No such file"
  # Port 1 is tcpmux, which no machine runs.
  RLOCK_URL=redis://127.0.0.1:1 refuses 69 lock 127.0.0.1:1 "Connection refused"
}

@test "exit 69: a silent server is reported after --connect-timeout" {
  own
  kill -STOP "$(cat "$own_server/pid")"
  run -69 --separate-stderr rlock run -n --connect-timeout 300ms lock -- touch started
  says lock "$SERVER/s" "timed out"
  run -69 --separate-stderr rlock status --connect-timeout 300ms
  says "$SERVER/s"
}

@test "exit 77: the password is missing or wrong, or the user is" {
  own --requirepass canary
  refuses 77 lock "$SERVER/s"
  for wrong in :wrong nobody:canary; do
    RLOCK_URL="unix://$wrong@$SERVER/s" refuses 77 lock "$SERVER/s"
    [[ $stderr != *canary* ]]
  done
  RLOCK_URL="unix://:canary@$SERVER/s" run -0 rlock run lock -- true
  [ "$(redis -a canary --no-auth-warning dbsize)" -gt 0 ]
}

@test "a password comes from a file or the environment, a file wins over the URL" {
  own --requirepass canary
  echo canary >password
  run -0 rlock run --password-file password lock -- true
  RLOCK_PASSWORD=canary run -0 rlock run lock -- true
  REDISCLI_AUTH=canary run -0 rlock run lock -- true
  RLOCK_URL="unix://:wrong@$SERVER/s" run -0 rlock run --password-file password lock -- true
  run -0 rlock run --user default --password-file password lock -- true
  run -77 rlock run --user nobody --password-file password lock -- true
  run -78 --separate-stderr rlock run --password-file "$here/none" lock -- touch started
  says "$here/none"
}

@test "a missing database or a wrong password neither frees nor acquires a lock" {
  own
  # The server has the scripts from here on.
  run -0 rlock run lock -- true
  owner=$(rlock acquire kept --ttl 60s)
  RLOCK_URL="unix://$SERVER/s?db=99" run -78 rlock release kept --owner "$owner"
  held kept
  redis acl setuser bob on '>right' '~*' '&*' +@all >/dev/null
  RLOCK_PASSWORD=wrong run -77 rlock --user bob release kept --owner "$owner"
  held kept
  redis config resetstat >/dev/null
  RLOCK_URL="unix://$SERVER/s?db=99" refuses 78 lock "$SERVER/s"
  RLOCK_PASSWORD=wrong run -77 rlock --user bob run -n untouched -- true
  [[ $(redis info commandstats) != *cmdstat_eval* ]] || fail "$(redis info commandstats)"
  run -0 rlock release kept --owner "$owner"
}

@test "locks of different databases are independent" {
  hold apart
  RLOCK_URL="unix://$SERVER/s?db=3" run -0 rlock run -n apart -- true
  let_go apart
}

# another_form WORD…: this command is refused because of the form, and says so once, on stderr.
another_form() {
  refuses 78 "\"lock\" is stored $stored" "$advice" -- rlock "$@"
  [[ $output != *"is stored"* && ${stderr#*is stored} != *"is stored"* ]] || fail "$output $stderr"
}

@test "exit 78: a lock that another version of rlock stores is left alone, and only its keys in an older form may be deleted" {
  local form before stored advice
  for form in 2 0 x; do
    reset_server
    # Before 1.0 the memory was a text.
    if [ $form != 0 ]; then redis hset 'rlock:{lock}:meta' form $form last 5; else redis set 'rlock:{lock}:meta' '1 5 5 5 5 0 0 -'; fi >/dev/null
    advice="delete its keys: redis-cli -s $SERVER/s DEL 'rlock:{lock}:holders' "
    case $form in
      2) stored='by a newer rlock (form 2; ' advice=': upgrade rlock on this host' ;;
      0) stored='by an older rlock (form 0; ' ;;
      x) stored='in an unknown form ("x"; ' ;;
    esac
    before=$(redis --raw dump 'rlock:{lock}:meta' | od -c)
    another_form run lock -- touch started
    another_form acquire --ttl 1m lock
    another_form force-unlock --yes lock
    another_form status lock
    another_form status
    another_form history lock
    another_form close --for 1h lock
    [ "$(redis --raw dump 'rlock:{lock}:meta' | od -c)" = "$before" ]
    [ "$(redis dbsize)" = 1 ] || fail "$(redis --raw keys '*')"
    [[ $form != 2 ]] || { [[ $stderr != *DEL* ]] || fail "$stderr" && continue; }
    # The line works as it is.
    eval "${stderr#*delete its keys: }" >/dev/null
    run -0 rlock run -n lock -- true
  done
  reset_server
}

@test "status, metrics and history show the other locks next to a lock of another version" {
  reset_server
  hold old
  rlock run fine -- true
  redis hset 'rlock:{old}:meta' form 2 >/dev/null
  run -78 --separate-stderr rlock status --all
  [[ $output == *fine* && $output == *"old"*error* && $stderr == *"by a newer rlock (form 2"* ]] || fail "$output $stderr"
  run -78 --separate-stderr rlock status
  [[ $stderr == *"by a newer rlock (form 2"* ]] || fail "$output $stderr"
  run -78 --separate-stderr rlock queue
  [ -z "$output" ] || fail "$output"
  run -78 --separate-stderr rlock metrics
  [[ $output == *'rlock_runs_total{name="fine"} 1'* ]] || fail "$output"
  redis hset 'rlock:{old}:meta' form 1 >/dev/null
  let_go old
}

@test "a run whose lock takes another form keeps its lease until it expires, and warns" {
  reset_server
  hold turned -t 12 --event-log log 2>err
  redis hset 'rlock:{turned}:meta' form 2 >/dev/null
  eventually logged renew-failed 1 'by a newer rlock'
  eventually grep -q 'by a newer rlock (form 2' err
  kill -0 "$command"
  one_more renewed redis hset 'rlock:{turned}:meta' form 1
  let_go turned
  nothing_left turned
}

@test "exit 78: a lock with rules of a newer version is granted to no run, and can still be released" {
  reset_server
  hold lock
  redis hset 'rlock:{lock}:meta' '!calendar' 1.4 >/dev/null
  refuses 78 '"lock" can only be acquired by rlock 1.4 or later' '!calendar'
  [ "$(about lock state)" = held ] || [ "$(rlock status --json lock | jq -r '.locks[0].state')" = held ]
  run -0 rlock status lock
  [[ $output == *"  needs    rlock 1.4 or later (!calendar)"* && $output == *"lock: held"* ]] || fail "$output"
  let_go lock
  refuses 78 'rlock 1.4 or later'
  reset_server
}

@test "a free lock with rules of a newer version is listed, and each command says which version is needed" {
  reset_server
  rlock run lock -- true
  redis hset 'rlock:{lock}:meta' '!weights' 1.4 >/dev/null
  run -0 rlock status
  [[ $output == *"lock  free  "*"[needs rlock 1.4]"* && $output != *"1 free"* ]] || fail "$output"
  run -0 rlock status --json lock
  jq -e '.locks[0] | .state == "free" and .needs == {version: "1.4", rules: ["!weights"]}' <<<"$output" || fail "$output"
  run -1 rlock check lock
  [[ $output == *"WARNING - \"lock\": to acquire it needs rlock 1.4 or later (!weights)"* ]] || fail "$output"
  run rlock doctor
  [[ $output == *"warn  versions      to acquire \"lock\" needs rlock 1.4 or later (!weights)"* ]] || fail "$output"
  rlock doctor --json | jq -e '.versions.state == "warn"'
  run -0 rlock queue lock
  [[ $output == *'to acquire "lock" needs rlock 1.4 or later (!weights)'* ]] || fail "$output"
  run -0 rlock metrics
  [[ $output == *'rlock_needs_upgrade{name="lock"} 1'* ]] || fail "$output"
  redis hdel 'rlock:{lock}:meta' '!weights' >/dev/null
  redis hset 'rlock:{lock}:meta' form 2 >/dev/null
  run rlock doctor
  [[ $output == *"warn  versions      "*"by a newer rlock (form 2"* ]] || fail "$output"
  reset_server
}

@test "a waiter warns of rules of a newer version, and keeps its position" {
  reset_server
  hold lock
  start rlock run -v -w 1h lock -- true 2>err
  waits=$!
  eventually waiting 1 lock
  redis hset 'rlock:{lock}:meta' '!weights' 1.4 >/dev/null
  let_go lock
  eventually grep -q 'warning: only rlock 1.4 or later (!weights) grants "lock": upgrade rlock on this host' err
  redis hdel 'rlock:{lock}:meta' '!weights' >/dev/null
  ends_with 0 "$waits"
  reset_server
}

@test "rlock version shows the form of stored locks" {
  run -0 rlock version
  [ "${lines[1]}" = "form of stored locks: 1" ] || fail "$output"
  for words in "version --json" "--version --json" "status --version --json"; do
    # shellcheck disable=SC2086
    run -0 rlock $words
    jq -e '.schema == 1 and (.version | test("^[0-9]+[.]")) and has("commit") and .stored_form == 1' <<<"$output" || fail "$output"
  done
}

@test "exit 65: nothing is written to a key of another program" {
  local key precious='2 0 0 0 0 0 0 -'
  for key in holders limits queue alive who meta released; do
    reset_server
    redis set "rlock:{lock}:$key" "$precious" >/dev/null
    refuses 65 lock "$SERVER/s" "the key rlock:{lock}:$key is used for something else" ": redis-cli -s $SERVER/s DEL 'rlock:{lock}:$key'" --prefix
    [ "$(redis get "rlock:{lock}:$key")" = "$precious" ]
    [ "$(redis dbsize)" = 1 ] || fail "$(redis --raw keys '*')"
  done
  reset_server
}

@test "exit 69: the server is out of memory, and a holder from before can still renew and release" {
  own
  hold full -t 12 --event-log log
  redis config set maxmemory 1 >/dev/null
  refuses 69 lock "$SERVER/s"
  nothing_left lock
  one_more renewed
  let_go full
  nothing_left full
}

@test "exit 69: the disk refuses to save" {
  own --save '3600 1000' --stop-writes-on-bgsave-error yes
  redis config set dir "$own_server" >/dev/null
  mkdir "$own_server/dump.rdb"
  redis set x 1 >/dev/null
  redis bgsave >/dev/null
  eventually misconf
  refuses 69 lock "$SERVER/s"
  redis config set stop-writes-on-bgsave-error no >/dev/null
}

misconf() { [[ $(redis set y 1 2>&1) == *MISCONF* ]]; }

@test "the command never notices a server that restarts with its data, and the queue stays" {
  own --appendonly yes --appendfsync always
  hold kept -t 9
  line_up kept
  restart --appendonly yes --appendfsync always
  eventually waiting 2 kept
  held kept
  let_go kept
  in_order
}
