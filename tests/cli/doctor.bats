#!/usr/bin/env bats
load helpers/helpers

# state CHECK [OPTION…]: what the doctor says of one point of the first server. What is not ok comes with advice, and only that.
state() {
  local check=$1
  shift
  rlock doctor --json "$@" | jq -r --arg check "$check" '.servers[0].checks[] | select(.check == $check) |
    if (.state == "ok") == (.advice == null) then .state else "\(.state) with the advice \(.advice)" end'
}

advice() { rlock doctor --json | jq -r --arg check "$1" '.servers[0].checks[] | select(.check == $check) | .advice'; }

@test "a suitable server passes every check, exit 0, and nothing is left there" {
  own --appendonly yes --appendfsync always
  # The version is the distribution's: it may be below the one that was fixed upstream, and have the fix.
  run -0 --separate-stderr rlock doctor
  output=$(sed '/^  warn  version /,+1d' <<<"$output")
  [[ $output != *" warn "* && $output != *" fail "* ]] || fail "$output"
  [ -z "$stderr" ]
  [ "$(rlock doctor --json | jq -r '[.servers[0].checks[].check] | join(",")')" = \
    "reachable,version,commands,scripts,waiting,role,eviction,persistence,neighbours,clock,round trip,tls" ]
  [ "$(rlock doctor --json | jq '[.servers[0].checks[] | select(.check != "version") | select(.state != "ok" or .advice != null)] | length')" -eq 0 ]
  [ "$(redis dbsize)" -eq 0 ]
  run -0 rlock doctor -q
  [ "$(rlock doctor -q --json | jq -r .url_place)" = RLOCK_URL ]
  [ "$(grep -E '^  (ok|warn|fail) ' <<<"$output" | grep -cv ' version ')" -eq 0 ]
}

@test "keys of another program, and calls of FLUSHDB, are a warning; keys of another prefix are none" {
  own
  rlock --prefix team: run lock -- true
  [ "$(advice neighbours)" = null ]
  redis set session:7 x >/dev/null
  [[ $(advice neighbours) == "a FLUSHDB frees every lock: give rlock a database of its own" ]]
  run -0 rlock doctor
  [[ $output == *'warn  neighbours '*'another program has keys in this database, such as "session:7"'* ]] || fail "$output"
  redis del session:7 >/dev/null
  redis flushdb >/dev/null
  run -0 rlock doctor
  [[ $output == *'warn  neighbours '*'FLUSHDB or FLUSHALL was called once since the server started'* ]] || fail "$output"
}

@test "the doctor says which password it used" {
  own --requirepass pw
  says_password() { rlock doctor --json | jq -r .password_place; }
  [ "$(rlock doctor --json -u "unix://$SERVER/s" | jq -r .password_place)" = null ]
  run -1 rlock doctor
  [[ ${lines[0]} == "the URL comes from RLOCK_URL, without password" ]] || fail "$output"
  RLOCK_URL="unix://:pw@$SERVER/s" run -0 rlock doctor
  [[ ${lines[0]} == "the URL comes from RLOCK_URL, the password from RLOCK_URL" ]] || fail "$output"
  [ "$(RLOCK_PASSWORD=pw says_password)" = RLOCK_PASSWORD ]
  echo pw >secret
  chmod 600 secret
  [ "$(rlock doctor --json --password-file secret | jq -r .password_place)" = --password-file ]
  [ "$(RLOCK_PASSWORD=pw RLOCK_URL="unix://:other@$SERVER/s" says_password)" = RLOCK_PASSWORD ]
  [ "$(RLOCK_PASSWORD='' RLOCK_URL="unix://:pw@$SERVER/s" says_password)" = RLOCK_URL ]
}

@test "the doctor says whether --contain and --contain=user work here, which is never a fault" {
  run -0 rlock doctor --json
  local form works
  for form in contain contain=user; do
    works="rlock run --$form works on this host"
    rlock run "--$form" c -- true || works="cannot contain the command: "
    [[ $(jq -r ".${form/=/_}.detail" <<<"$output") == "$works"* ]] || fail "$form: $output"
  done
  run -0 strace -qq -o /dev/null -e trace=clone -e inject=clone:error=ENOSYS rlock doctor
  [[ $output == *"this host"*"no    contain "*"cannot contain the command: "*"not implemented"*"no    contain user "*"in a user namespace: "* ]] ||
    fail "$output"
}

@test "the doctor warns where /proc does not show what a command starts" {
  run -0 rlock doctor
  [[ $output == *"ok    proc  "* ]] || fail "$output"
  unshare -m sh -c 'mount -t tmpfs none /proc' 2>/dev/null || skip "this machine refuses new namespaces"
  run -0 unshare -m sh -c 'mount -t tmpfs none /proc; rlock doctor'
  [[ $output == *"warn  proc  "*"-> mount /proc"* ]] || fail "$output"
  run -1 unshare -m sh -c 'mount -t tmpfs none /proc; rlock doctor -q --strict'
}

@test "doctor exits with 78 without a URL, and with 1 and advice if no server answers" {
  RLOCK_URL='' run -78 rlock doctor
  run -1 rlock doctor -u "unix://$here/nobody"
  [[ $output == *"fail  reachable"*"No such file"*"->"* ]] || fail "$output"
  own
  kill -STOP "$(cat "$own_server/pid")"
  run -1 rlock doctor --connect-timeout 300ms
  [[ $output == *"fail  reachable"*"timed out"*"(connected, but no answer: stopped, swapping or busy; look at its log)"* ]] || fail "$output"
}

@test "a password file that another user owns is a warning, and rlock uses it" {
  [ "$(id -u)" -eq 0 ] || skip "only root can give a file away"
  verdict() { jq -r '[.password.state // "none", .password.advice // ""] | join(" ")'; }
  own --requirepass pw
  echo pw >"a secret"
  chmod 600 "a secret"
  [ "$(RLOCK_PASSWORD=pw rlock doctor --json | verdict)" = "none " ]
  [ "$(rlock doctor --json --password-file "a secret" | verdict)" = "ok " ]
  chown 61184 "a secret"
  [[ $(rlock doctor --json --password-file "a secret" | verdict) == "warn "*"chown \"\$(id -u)\" 'a secret'" ]]
  run -0 rlock doctor --password-file "a secret"
  [[ $output == *"warn  password      user 61184 owns the password file"* ]] || fail "$output"
  run -1 rlock doctor --strict --password-file "a secret"
}

@test "a wrong password is reported as such" {
  own --requirepass canary
  run -1 rlock doctor
  [[ $output == *"fail  access"* ]] || fail "$output"
  run -1 rlock doctor -u "unix://:wrong@$SERVER/s"
  [[ $output == *"fail  access"*WRONGPASS* && $output != *canary* ]] || fail "$output"
}

@test "the ACL rule that it prints is sufficient, and every part of it is needed" {
  own
  rule=$(rlock doctor --json | jq -r .acl_rule)
  # Words on purpose.
  # shellcheck disable=SC2086
  redis acl setuser least on '>pw' $rule >/dev/null
  export RLOCK_URL="unix://least:pw@$own_server/s"
  [ "$(state commands)" = ok ]
  run -0 rlock run job -- true
  run -0 rlock run -w 30 job -- true
  for command in eval evalsha blpop scan lrange time exists del zadd zrem zcard zcount zrange zrangebyscore zrank zscore \
    zmscore hset hget hmget hdel hlen hexists lpush ltrim lindex lset llen get hgetall pexpire pexpireat pttl; do
    redis acl setuser least "-$command" >/dev/null
    run -1 rlock doctor
    grep -qiE "this user may not run .*\b$command\b" <<<"$output" || fail "$command: $output"
    redis acl setuser least "+$command" >/dev/null
  done
  [[ $(rlock doctor) == *"warn  version"*"+info"* ]]
}

@test "the ACL rule names the prefix, whatever characters it has" {
  own
  export RLOCK_PREFIX="it's [p]*?\\:"
  rlock run job -- true
  read -ra words < <(rlock doctor --json | jq -r .acl_rule)
  redis acl setuser odd on '>pw' "${words[@]}" >/dev/null
  RLOCK_URL="unix://odd:pw@$own_server/s" run -0 rlock run job -- true
  RLOCK_PREFIX=other: RLOCK_URL="unix://odd:pw@$own_server/s" run -77 rlock run job -- true
}

# mends CHECK: its advice, pasted into a shell, is accepted by the server, and CHECK is then ok, or not reported any more.
mends() {
  local advised
  [ "$(state "$1")" != ok ]
  advised=$(advice "$1")
  [[ $advised == redis-cli* ]] || fail "$1: $advised"
  run -0 sh -c "$advised"
  [ "$(sort -u <<<"$output")" = OK ] || fail "$1: $advised: $output"
  [[ $(state "$1") =~ ^(ok|)$ ]] || fail "$1 after $advised: $(rlock doctor)"
}

@test "the advice of doctor about a user's rights fixes them, and removes no other right" {
  own
  rule=$(rlock doctor --json | jq -r .acl_rule)
  for rights in "keys ~other:* +@all" "keys ${rule/rlock:/other:}" "commands $rule -eval" "commands $rule -zadd -blpop" \
    "commands ~rlock:* -@all +get" "access $rule -select"; do
    fault=${rights%% *}
    # shellcheck disable=SC2086
    redis acl setuser 'us$er' reset on '>pw' ${rights#* } >/dev/null
    export RLOCK_URL="unix://us\$er:pw@$own_server/s"
    [ "$fault" != access ] || RLOCK_URL+="?db=2"
    run -1 rlock doctor
    [[ $output != *"'ping'"* ]] || fail "$rights: $output"
    [[ $rights != *" -zadd -blpop" ]] || grep -qiE 'may not run (zadd, blpop|blpop, zadd)$' <<<"$output" || fail "$rights: $output"
    mends "$fault"
    run -0 rlock run job -- true
  done
  export RLOCK_URL="unix://$own_server/s"
  redis acl setuser default -zadd >/dev/null
  mends commands
  [ "$(redis config get save | wc -l)" -eq 2 ]
}

@test "doctor names the keys that the ACL refuses, with the prefix that rlock used" {
  own
  redis acl setuser limited on '>pw' '~team:*' +@all >/dev/null
  export RLOCK_URL="unix://limited:pw@$own_server/s"
  run -1 rlock doctor
  [[ $output == *'fail  keys'*'keys that begin with "rlock:"'* ]] || fail "$output"
  run -1 rlock doctor --prefix other:
  [[ $output == *'fail  keys'*'keys that begin with "other:"'*"'~other:*'"* ]] || fail "$output"
  run -0 rlock doctor --prefix team:
}

@test "the advice of doctor about the server's settings fixes them, even after a restart" {
  own_server=$(mktemp -d)
  echo 'maxmemory-policy allkeys-lru' >"$own_server/conf"
  serve "$own_server"
  export RLOCK_URL="unix://$own_server/s" SERVER=$own_server
  mends eviction
  mends persistence
  eventually grep -q '^appendfsync always' "$own_server/conf"
  restart
  [ "$(state eviction) $(state persistence)" = "ok ok" ]
}

@test "a server without a configuration file: the advice says that it lasts until the next restart" {
  own --maxmemory-policy allkeys-lru
  [[ $(advice eviction) == *"# until the server restarts"* ]]
  mends eviction
  mends persistence
}

@test "doctor says where the URL comes from" {
  [[ $(rlock doctor) == "the URL comes from RLOCK_URL"* ]]
  [[ $(rlock doctor --url "$RLOCK_URL") == "the URL comes from --url"* ]]
  printf 'prefix = "a:"\nurl = "%s"\n' "$RLOCK_URL" >rlock.toml
  RLOCK_URL='' run rlock doctor --config "$PWD/rlock.toml" --json
  [ "$(jq -r .url_place <<<"$output")" = "$PWD/rlock.toml:2" ]
}

@test "doctor lists the settings that no run uses: variables that rlock does not know, and a password for another server" {
  [ "$(rlock doctor --json | jq -c .ignored)" = '[]' ]
  run -0 env RLOCK_URLS=x RLOCK_TIMEOUT=3 rlock doctor
  [[ $output == *$'\nrlock does not know these variables: '*RLOCK_URLS* && $output == *RLOCK_TIMEOUT* ]] || fail "$output"
  echo pw >secret
  printf 'url = "unix:///elsewhere"\npassword-file = "secret"\n' >rlock.toml
  RLOCK_CONFIG=$PWD/rlock.toml run -0 rlock doctor --json
  [ "$(jq -c .ignored <<<"$output")" = "$(RLOCK_CONFIG=$PWD/rlock.toml rlock config --json | jq -c '[.unused_login]')" ]
  [[ $(jq -r .ignored[0] <<<"$output") == "the password of $PWD/rlock.toml:2 "*RLOCK_URL ]] || fail "$output"
  [ "$(jq .password_place <<<"$output")" = null ]
}

@test "doctor fails an old server version" {
  local info=$'redis_version:5.0.14\r\nrole:master'
  start picky_server.py "$here/old" "$SERVER/s" log "INFO=\$${#info}"$'\r\n'"$info"
  eventually test -S "$here/old"
  run -1 rlock doctor -u "unix://$here/old"
  [[ $output == *"fail  version"*"5.0.14"*"6.2"* ]] || fail "$output"
}

@test "doctor fails a replica" {
  own --replicaof 127.0.0.1 1
  [ "$(state role)" = fail ]
  run -1 rlock doctor
  [[ $output == *"fail  role"*replica* ]] || fail "$output"
  [ "$(advice commands)" = "$(advice role)" ]
}

@test "an eviction policy that deletes keys is a warning, exit 0; with --strict, or a limit to the memory, it fails" {
  own --maxmemory-policy allkeys-lru
  [ "$(state eviction)" = warn ]
  [[ $(advice eviction) == *noeviction* ]]
  run -0 rlock doctor
  run -1 rlock doctor --strict
  own --maxmemory-policy allkeys-lru --maxmemory 64mb
  [ "$(state eviction)" = fail ]
  run -1 rlock doctor
}

@test "a server without BLPOP is a warning, one without ZADD fails with its name" {
  own --rename-command BLPOP ''
  [ "$(state waiting)" = warn ]
  run -0 rlock doctor
  own --rename-command ZADD ''
  run -1 rlock doctor
  [[ $output == *"fail  commands"*"the server lacks ZADD"* ]] || fail "$output"
}

# detail CHECK [OPTION…]: what it found.
detail() {
  local check=$1
  shift
  rlock doctor --json "$@" | jq -r --arg check "$check" '.servers[0].checks[] | select(.check == $check) | .detail'
}

@test "a user who may not run BLPOP: waiting is not tested" {
  own
  rule=$(rlock doctor --json | jq -r .acl_rule)
  limited "$rule -blpop"
  [ "$(state commands) $(state waiting)" = "fail warn" ]
  [ "$(advice waiting)" = "allow this user to run BLPOP (+blpop)" ]
  [ "$(detail waiting)" = "not tested: this user may not run BLPOP" ]
}

@test "doctor does not test what the user may not ask, and names the command" {
  own --appendonly yes --appendfsync always
  rule=$(rlock doctor --json | jq -r .acl_rule)
  limited "$rule"
  for check in version role eviction persistence; do
    [ "$(detail "$check")" = "not tested: this user may not run INFO" ]
    [ "$(state "$check") $(advice "$check")" = "warn allow this user to run INFO (+info)" ]
  done
  limited "$rule +info"
  [ "$(detail persistence)" = "append-only file; its fsync policy is not tested: this user may not run CONFIG GET" ]
  limited "$rule +info +config|get"
  [ "$(state persistence)" = ok ]
  limited "$rule +wait"
  [ "$(detail replicas --replicas 1)" = "not tested: this user may not run ROLE" ]
  limited "$rule -time"
  [ "$(detail clock)" = "not tested: this user may not run TIME" ]
  limited "$rule -hget"
  [[ $(detail scripts) == "not tested: "*hget* ]] || fail "$(detail scripts)"
  RLOCK_URL+="?db=2"
  [[ $(detail databases) == "not tested: cannot ask: "* ]] || fail "$(detail databases)"
}

@test "doctor says what to do if the server refuses writes, and does not blame BLPOP" {
  own --min-replicas-to-write 1
  run -1 rlock doctor
  [[ $output == *"fail  commands"*NOREPLICAS*"-> connect replicas to the server, or lower its min-replicas-to-write"* ]] || fail "$output"
  [[ $output == *"waiting       not tested: "*NOREPLICAS* && $output != *"allow BLPOP"* ]] || fail "$output"
  own --replicaof 127.0.0.1 1
  run -1 rlock doctor
  [[ $output == *"waiting       not tested: "*READONLY*"-> use the address of the master"* && $output != *"allow BLPOP"* ]] ||
    fail "$output"
}

@test "doctor says what to do about protected mode" {
  start picky_server.py "$here/p" "$SERVER/s" log "CLIENT=-DENIED Redis is running in protected mode"
  eventually test -S p
  run -1 rlock doctor -u "unix://$here/p"
  [[ $output == *"-> on the server's host: redis-cli CONFIG SET requirepass PASSWORD, or redis-cli CONFIG SET protected-mode no"* ]] ||
    fail "$output"
}

@test "doctor does not test what the server lacks, and names the command" {
  own --rename-command INFO '' --rename-command TIME '' --rename-command CONFIG ''
  [ "$(detail role)" = "not tested: there is no command INFO" ]
  [[ "$(state role) $(advice role)" == "warn enable it (check rename-command"* ]] || fail "$(advice role)"
  [ "$(detail clock)" = "not tested: there is no command TIME" ]
  own --rename-command CONFIG ''
  [ "$(detail persistence)" = "no append-only file: a restart loses locks" ]
}

# Keys of database 2 that do not expire.
endless() {
  local key
  for key in $(redis -n 2 --raw keys '*'); do [ "$(redis -n 2 pttl "$key")" -ge 0 ] || echo "$key"; done
}

@test "a user without the right to delete: what the doctor tries expires, and no check depends on what another one left" {
  own
  rule=$(rlock doctor --json | jq -r .acl_rule)
  for denied in "" " -pexpire" " -pexpireat"; do
    redis flushall >/dev/null
    limited "$rule -del -hdel -ltrim -zrem$denied"
    RLOCK_URL+="?db=2"
    run -1 rlock doctor
    grep -qi "fail  commands .* del\b" <<<"$output" || fail "$denied: $output"
    [[ $output == *"ok    waiting "* && $output != *" databases "*"no effect"* ]] || fail "$denied: $output"
    [[ $denied == *-pexpire || $output == *"ok    scripts "* ]] || fail "$denied: $output"
    [ "$(redis dbsize)" -eq 0 ]
    [ "$(redis -n 2 dbsize)" -ge 3 ]
    [ -z "$(endless)" ] || fail "$denied: $(endless)"
  done
}

@test "the advice of doctor asks for the password if the server has one" {
  own --requirepass canary --maxmemory-policy allkeys-lru
  export RLOCK_URL="unix://:canary@$own_server/s"
  advised=$(advice eviction)
  [[ $advised == *--askpass* && $advised != *canary* ]] || fail "$advised"
  sh -c "$advised" <<<canary
  [ "$(state eviction)" = ok ]
}

@test "data that a restart would lose is a warning" {
  own
  [ "$(state persistence)" = warn ]
  redis config set save '3600 1' >/dev/null
  [[ $(rlock doctor) == *"warn  persistence"*snapshots* ]]
  redis config set appendonly yes >/dev/null
  [[ $(rlock doctor) == *"warn  persistence"*everysec* ]]
}

@test "a server that is full cannot hold locks" {
  own --maxmemory 1
  run -1 rlock doctor
  [[ $output == *"fail  commands"*OOM*"-> free memory"* ]] || fail "$output"
}

# each_count REPLY: the server answers so from the third call on, whether it runs one script at a time.
each_count() {
  end_started
  rm -f p
  start picky_server.py "$here/p" "$SERVER/s" log "EVALSHA $sha@3=$1"
  eventually test -S p
}

@test "a server that removes the key of the test of scripts has not failed it" {
  local here=$PWD sha=""
  start picky_server.py "$here/p" "$SERVER/s" log
  eventually test -S p
  export RLOCK_URL=unix://$here/p
  rlock doctor >/dev/null
  sha=$(awk '/:atomicity$/ { print toupper($3); exit }' log)
  each_count :7
  [ "$(state scripts)" = fail ]
  [[ $(rlock doctor) == *"runs scripts concurrently"* ]]
  each_count :1
  [ "$(state scripts)" = warn ]
  [[ $(rlock doctor) == *"not tested: the server removed the key"*"-> free memory"* ]]
}

@test "a server that is busy with a script: the advice is to end that" {
  own --lua-time-limit 1
  start redis-cli -s "$own_server/s" eval 'while true do end' 0
  eventually busy
  run -1 rlock doctor
  [[ $output == *"fail  reachable"*BUSY*"-> a script of another client"*"SCRIPT KILL"* ]] || fail "$output"
  redis script kill
}

busy() { [[ $(redis ping 2>&1) == *BUSY* ]]; }

@test "doctor prints a section for each server, and one server under two names is no quorum" {
  own --appendonly yes --appendfsync always
  serve "$here/b" --appendonly yes --appendfsync always
  serve "$here/c" --appendonly yes --appendfsync always
  ln -s "$here/b/s" "$here/alias"
  run -0 rlock doctor --json -u "$RLOCK_URL" -u "unix://$here/b/s" -u "unix://$here/c/s"
  [ "$(jq -r '.servers | length' <<<"$output")" -eq 3 ]
  [ "$(jq -r .independence.state <<<"$output")" = ok ]
  run -1 rlock doctor -u "$RLOCK_URL" -u "unix://$here/b/s" -u "unix://$here/alias"
  [[ $output == *"fail  independence"*"same server"* ]] || fail "$output"
  end_server "$here/c"
  run -1 rlock doctor -u "$RLOCK_URL" -u "unix://$here/b/s" -u "unix://$here/c/s"
  [[ $output == *"fail  reachable"*"warn  independence"*"when every server answers"* ]] || fail "$output"
  end_server "$here/b"
}

@test "a server that its quorum does not count yet fails, with the time that is left" {
  quorum 3
  run -0 rlock doctor
  [ "$(state counted)" = ok ]
  at_server 1 redis config set appendfsync everysec >/dev/null
  run -1 rlock doctor
  [[ $output =~ "fail  counted".*"for another "[1-5]?[0-9]s ]] || fail "$output"
}

@test "doctor reports that the server accepts no second connection" {
  own
  redis config set maxclients 1 >/dev/null
  eventually alone
  run -0 rlock doctor
  [[ $output == *"warn  scripts"*"not tested: "*"maxclients"*"-> close connections"* ]] || fail "$output"
}

alone() { [[ $(redis ping 2>&1) == PONG ]]; }

@test "a database that the server does not have is named, and not taken for missing commands" {
  own --cluster-enabled yes
  redis cluster addslotsrange 0 16383 >/dev/null
  eventually sees_itself
  run -1 rlock doctor -u "unix://$own_server/s?db=2"
  [[ $output == *"fail  reachable"*"only one database"* && $output != *"lacks"* ]] || fail "$output"
}

sees_itself() { [[ $(redis cluster info) == *cluster_state:ok* ]]; }

@test "doctor says how to stop the server of local:, and that works" {
  folder=$(mktemp -d)
  run -0 rlock doctor -u "local:$folder"
  advice=$(grep -o "rlock stop-local" <<<"$output")
  RLOCK_URL=local:$folder run -0 bash -c "$advice"
  [ ! -S "$folder/rlock.sock" ]
  rm -rf "$folder"
}
