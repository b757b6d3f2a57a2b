#!/usr/bin/env bats
load helpers/helpers

# rlock.toml: settings that neither a flag nor the environment gives come from the user's file, then from the
# machine's.

setup() {
  begin
  mkdir -p home/.config/rlock
  export HOME=$here/home
  user_file=$HOME/.config/rlock/rlock.toml
  unset RLOCK_CONFIG XDG_CONFIG_HOME
}

# configure FILE < CONTENT: closed to others.
configure() { (umask 077 && cat >"$1"); }

# For private_mounts: an /etc of its own, a copy, with a folder rlock.
own_etc='mount -t tmpfs tmpfs /mnt; cp -a /etc/. /mnt; mkdir -p /mnt/rlock; mount --bind /mnt /etc'

# prefix [OPTION…]: what the keys of a run begin with.
prefix() {
  redis flushall >/dev/null
  rlock run "$@" lock -- true || return
  redis --raw keys '*' | sed 's/{.*//' | sort -u
}

# refused TEXT…: 78 and one line that has each TEXT, whichever command reads the file.
refused() {
  refuses 78 "$@" || return
  run -78 --separate-stderr rlock status
  says "$@"
}

@test "a file names the server, and a run needs neither flag nor variable" {
  configure "$user_file" <<<"url = '$RLOCK_URL'"
  unset RLOCK_URL
  run -0 --separate-stderr rlock run lock -- echo ready
  [ "$output" = ready ]
  run -0 rlock status lock
}

@test "a flag wins over the environment, and that over the user's file" {
  configure "$user_file" <<<'prefix = "file:"'
  [ "$(prefix)" = file: ]
  [ "$(RLOCK_PREFIX=environment: prefix)" = environment: ]
  [ "$(RLOCK_PREFIX=environment: prefix --prefix flag:)" = flag: ]
}

@test "the user's file wins over that of the machine in /etc/rlock" {
  configure "$user_file" <<<'prefix = "user:"'
  run -0 private_mounts "$own_etc"'
    printf "prefix = \"machine:\"\n[run]\nreason = \"of the machine\"\n" >/etc/rlock/rlock.toml
    rlock run lock -- rlock status lock | grep -q "of the machine"
    redis-cli -s "$SERVER/s" --raw keys "*" | grep -q ^user:
    [ -z "$(redis-cli -s "$SERVER/s" --raw keys "machine:*")" ]
    rm "$HOME/.config/rlock/rlock.toml"
    rlock run lock -- true
    redis-cli -s "$SERVER/s" --raw keys "*" | grep -q ^machine:
  '
}

@test "the user's file is in XDG_CONFIG_HOME if that is set" {
  configure "$user_file" <<<'prefix = "home:"'
  mkdir -p xdg/rlock
  configure xdg/rlock/rlock.toml <<<'prefix = "xdg:"'
  [ "$(XDG_CONFIG_HOME=$here/xdg prefix)" = xdg: ]
  [ "$(XDG_CONFIG_HOME=xdg prefix)" = home: ] # a relative one is to be ignored
}

@test "--config and RLOCK_CONFIG name the only file, and it must be there" {
  configure "$user_file" <<<'prefix = "user:"'
  configure named.toml <<<'connect-timeout = "1s"'
  [ "$(prefix --config named.toml)" = rlock: ]
  [ "$(RLOCK_CONFIG=named.toml prefix)" = rlock: ]
  [ "$(RLOCK_CONFIG=none prefix --config named.toml)" = rlock: ]
  [ "$(prefix --config /dev/null)" = rlock: ]
  [ "$(prefix --config <(echo 'prefix = "pipe:"'))" = pipe: ]
  RLOCK_CONFIG=$here/none refused "$here/none" "No such file"
}

@test "without a file, or without a home, the defaults apply" {
  [ "$(prefix)" = rlock: ]
  [ "$(HOME='' prefix)" = rlock: ]
  run -0 env -u HOME rlock run lock -- true
}

@test "[run] has the defaults of run's options; a flag of one call beats them" {
  configure "$user_file" <<'EOT'
[run]
wait = 0.1
reason = "from the file"
EOT
  hold lock
  [ "$(rlock status --json lock | jq -r '.locks[0].holders[0].reason')" = "from the file" ]
  run -75 rlock run lock -- touch started
  queue_up lock -w 60 -- touch followed
  hand_over lock
}

@test "a default that only the native format can store does not apply to a run with another --format" {
  configure "$user_file" <<<$'[run]\nreason = "from the file"\nhistory = 3\nttl = "20s"'
  for form in plain redisson; do
    quietly rlock run --format "$form" lock -- true
    run -64 --separate-stderr rlock run --format "$form" --min-hold 1s lock -- true
    says --min-hold "--format $form"
  done
}

@test "a file cannot make runs overlap that exclude each other without it" {
  for setting in 'shared = true' 'slots = 2' 'min-hold = 5' 'on-lost = "ignore"' 'format = "plain"' 'max-run = 5'; do
    configure "$user_file" <<<$'[run]\nttl = "1m"\n'"$setting"
    refused "$user_file:3:" "\"${setting%% *}\" cannot be a setting of all runs" "command line"
  done
}

@test "a mistake in a file is reported as JSON with --json" {
  configure "$user_file" <<<'prefx = "x:"'
  run -78 --separate-stderr rlock status --json
  [ "$(jq -r '.error.code' <<<"$output")" = 78 ]
  [[ $(jq -r '.error.message' <<<"$output") == *"$user_file:1:"* ]]
}

@test "rlock uses a password from a file only if others cannot read it" {
  own --requirepass canary
  configure "$user_file" <<<'password = "canary"'
  run -0 rlock run lock -- true
  chmod 644 "$user_file"
  refused "$user_file" "chmod 6" "password-file"
  [[ $stderr != *canary* ]]
}

@test "a password file is found from the folder of the file that names it" {
  own --requirepass canary
  echo canary | configure "$HOME/.config/rlock/secret"
  configure "$user_file" <<<'password-file = "secret"'
  cd /
  run -0 rlock run lock -- true
}

@test "a machine's file of mode 0600 stops no user who has a server, and one of mode 0640 serves its group" {
  run -0 private_mounts "$own_etc"'
    cp "$RLOCK" /mnt/rlock/bin
    unset HOME
    nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
    server="--url unix:///nonexistent/s --connect-timeout 0.1"
    echo "password = \"canary\"" >/etc/rlock/rlock.toml
    chmod 600 /etc/rlock/rlock.toml
    code=0
    $nobody /etc/rlock/bin status $server 2>/etc/said || code=$?
    [ "$code" -eq 69 ]
    grep -q "warning: .*/etc/rlock/rlock.toml: Permission denied" /etc/said
    $nobody /etc/rlock/bin status -q x $server 2>/etc/said || code=$?
    if grep -q warning /etc/said; then exit 1; fi
    code=0
    RLOCK_URL= $nobody /etc/rlock/bin status 2>/etc/said || code=$?
    [ "$code" -eq 78 ]
    grep -q "/etc/rlock/rlock.toml: Permission denied.*--url or RLOCK_URL" /etc/said
    chmod 640 /etc/rlock/rlock.toml
    chgrp 65534 /etc/rlock/rlock.toml
    for who in "$nobody" ""; do
      code=0
      $who /etc/rlock/bin status $server 2>/etc/said || code=$?
      [ "$code" -eq 69 ]
      if grep -q rlock.toml /etc/said; then exit 1; fi
    done
  '
}

@test "a password file that others can write is refused, a mounted secret of 0444 is not" {
  own --requirepass canary
  echo canary >secret
  chmod 444 secret
  run -0 rlock run --password-file secret lock -- true
  chmod 664 secret
  run -78 --separate-stderr rlock run --password-file secret lock -- touch started
  says secret "chmod go-w"
}

@test "a user's file that others can write is refused, as ssh does" {
  configure "$user_file" <<<'prefix = "x:"'
  chmod 664 "$user_file"
  refused "$user_file" "chmod go-w"
}

@test "a file that cannot be read is an error, a folder that cannot be entered has none" {
  configure "$user_file" <<<'prefix = "x:"'
  run -0 private_mounts '
    mount -t tmpfs -o mode=755 tmpfs /home
    cp "$RLOCK" /home/rlock
    mkdir -p /home/a/.config/rlock
    cp "$HOME/.config/rlock/rlock.toml" /home/a/.config/rlock/rlock.toml
    chmod 600 /home/a/.config/rlock/rlock.toml
    export HOME=/home/a RLOCK_URL=unix:///nonexistent/s
    nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
    cd /
    code=0
    $nobody /home/rlock status 2>/home/said || code=$?
    [ "$code" -eq 78 ]
    grep -q "rlock.toml: Permission denied" /home/said
    chmod 700 /home/a
    code=0
    $nobody /home/rlock status 2>/home/said || code=$?
    [ "$code" -eq 69 ]
  '
}

# hides PID: neither its command line nor its environment has the password.
hides() {
  local file
  for file in cmdline environ; do
    grep -qa RLOCK "/proc/$1/environ" || fail "$1: no environment"
    if grep -qa canary "/proc/$1/$file"; then fail "$1: $file: $(tr '\0' ' ' <"/proc/$1/$file")"; fi
  done
}

@test "a password in --url or in the environment is not shown by /proc, of rlock, its guard or its renewer, and nested runs work" {
  own --requirepass canary
  local url="unix://:canary@$own_server/s" process
  export RLOCK_URL=$url RLOCK_PASSWORD=canary REDISCLI_AUTH=canary
  start rlock run --url "$url" -q job -- sh -c 'echo "$1" >got; rlock run job -- touch up && exec sleep 1000' sh "$url"
  eventually test -e up
  [ "$(cat got)" = "$url" ]
  hides "$!"
  process=$(pgrep -P "$!")
  hides "$process"
  job
  rlock acquire steps --renew-while "$job" >owner
  process=$(renewers steps)
  hides "$process"
  rlock release steps --owner "$(cat owner)"
}

@test "a password in --url causes one warning, and none with -q or in the environment" {
  own --requirepass canary
  run -0 --separate-stderr rlock run --url "unix://:canary@$own_server/s" job -- true
  [ "$(grep -c -- '--url contains a password.*--password-file' <<<"$stderr")" -eq 1 ] || fail "$stderr"
  [[ $stderr != *canary* ]]
  quietly rlock run -q --url "unix://:canary@$own_server/s" job -- true
  RLOCK_URL="unix://:canary@$own_server/s" quietly rlock run job -- true
}

# setting NAME: its value and where it comes from.
setting() { rlock config --json | jq -r --arg name "$1" '.settings[] | select(.setting == $name) | "\(.value) \(.source) \(.place)"'; }

@test "config shows each setting and its source, and no password" {
  configure "$user_file" <<<$'prefix = "mine:"\npassword = "canary"\n[run]\nwait = "10m"'
  export RLOCK_URL="redis://me:canary@db1/2"
  [ "$(setting url)" = "redis://me:******@db1/2 environment RLOCK_URL" ]
  [ "$(setting prefix)" = "mine: file $user_file:1" ]
  [ "$(setting wait)" = "10m file $user_file:4" ]
  [ "$(setting connect-timeout)" = "2s default null" ]
  [ "$(setting cert)" = "null default null" ]
  # The URL has its own.
  [ "$(setting password)" = "null default null" ]
  export RLOCK_URL=redis://db1
  [ "$(setting password)" = "(hidden) file $user_file:2" ]
  REDISCLI_AUTH=canary run -0 setting password
  [ "$output" = "(hidden) environment REDISCLI_AUTH" ]
  run -0 rlock config --prefix given:
  [[ $output =~ prefix\ +given:\ +--prefix ]] || fail "$output"
  [[ $output =~ run.wait\ +10m\ +"$user_file:4" ]] || fail "$output"
  [[ $output != *canary* ]]
}

@test "config needs no server and no URL; it refuses a file that cannot be used" {
  RLOCK_URL='' run -0 rlock config
  [[ $output =~ url\ +-\ +default ]] || fail "$output"
  configure "$user_file" <<<'ttl = "1s"'
  run -78 rlock config
}

# refuses_password TEXT…: the login fails, and the message has each TEXT, but not the password.
refuses_password() {
  run -77 --separate-stderr rlock status
  says WRONGPASS "$@" || return
  [[ $stderr != *canary* ]]
}

@test "if a login fails, rlock says what is odd about the password, without showing it" {
  own --requirepass canary
  RLOCK_PASSWORD='$(PASSWORD)' refuses_password "begins like a variable"
  RLOCK_PASSWORD=$'canary\r' refuses_password "ends with a carriage return"
  RLOCK_PASSWORD='canary ' refuses_password "ends with a space"
  RLOCK_PASSWORD='"canary"' refuses_password "is in quotes"
  RLOCK_PASSWORD=$'\xef\xbb\xbfcanary' refuses_password "begins with a byte order mark"
  printf 'canary\r\n' >secret
  RLOCK_PASSWORD_FILE=$here/secret refuses_password "ends with a carriage return"
  printf 'canary\n\n' >secret
  RLOCK_PASSWORD_FILE=$here/secret refuses_password "ends with a newline"
  RLOCK_PASSWORD=wrong run -77 --separate-stderr rlock status
  [[ $stderr != *"look at"* ]]
}

@test "the password of a file is not sent to another server than that of the file, and rlock config says why" {
  own --requirepass canary
  configure "$user_file" <<<$'url = "redis://db.example"\npassword = "canary"'
  run -77 --separate-stderr rlock status
  says "(NOAUTH): the password of $user_file:2 is for the server of $user_file:1" "not for the server of RLOCK_URL"
  run -0 rlock config
  [[ $output == *"the password of $user_file:2 is for the server of $user_file:1"*"not for the server of RLOCK_URL"* ]] || fail "$output"
  rlock config --json | jq -e '.unused_login | contains("RLOCK_URL")'
  # The one that the file means: a password of the same URL.
  configure "$user_file" <<<"url = \"$RLOCK_URL\""$'\npassword = "canary"'
  run -0 rlock status
  # What a server sees that is not meant.
  configure "$user_file" <<<$'url = "redis://db.example"\npassword = "canary"'
  start /usr/bin/python3 -c '
import socket
spy = socket.socket(socket.AF_UNIX)
spy.bind("spy")
spy.listen()
while True:
    got = spy.accept()[0].recv(65536)
    with open("got", "ab") as file:
        file.write(got)
'
  eventually test -S spy
  run -69 --separate-stderr env RLOCK_URL="unix://$here/spy" "$RLOCK" status --connect-timeout 0.5
  [ -s got ]
  if grep -q canary got; then fail "the password was sent: $(cat got)"; fi
}

@test "without a server, the message mentions sudo, cron and REDIS_URL" {
  unset RLOCK_URL
  run -78 --separate-stderr rlock status
  says "cron and sudo do not pass RLOCK_URL on" /etc/rlock/rlock.toml
  [[ $stderr != *local:* ]]
  SUDO_UID=1000 run -78 --separate-stderr rlock status
  says "sudo does not pass RLOCK_URL on"
  RLOCK_CONFIG=/dev/null run -78 --separate-stderr rlock status
  says 'or url = "URL" in /dev/null'
  REDIS_URL=redis://x run -78 --separate-stderr rlock status
  says 'RLOCK_URL=$REDIS_URL'
  [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null || skip "needs root"
  cp "$RLOCK" .
  chmod 755 . rlock
  run -78 --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups ./rlock status
  says "no server given: use --url URL, RLOCK_URL, or url = \"URL\" in $user_file"
  [[ $stderr != */etc/rlock/* ]] || fail "$stderr"
}

@test "an unknown variable causes a warning, but not inside a run or with -q; config lists unknown variables" {
  RLOCK_PREFX=x: run -0 --separate-stderr rlock run lock -- true
  says "does not know RLOCK_PREFX; ENVIRONMENT in rlock(1)"
  RLOCK_PREFX=x: quietly rlock run -q lock -- true
  quietly rlock run lock -- env RLOCK_PREFX=x: "$RLOCK" status -q lock
  RLOCK_TTL=5m RLOCK_SERVER=db1 run -0 --separate-stderr rlock run lock -- true
  [ "$(grep -c 'does not know RLOCK_' <<<"$stderr")" = 2 ] || fail "$stderr"
  RLOCK_TTL=5m quietly rlock run -q lock -- true
  RLOCK_SERVICE_HOST=10.0.0.1 quietly rlock run lock -- true
  RLOCK_SERVICE_HOST=10.0.0.1 RLOCK_PREFX=x: run -0 rlock config
  [[ $output == *"does not know these variables: RLOCK_PREFX" ]] || fail "$output"
}

@test "the word that help shows as a default is a value: it undoes a file" {
  printf '[run]\nwait = "1s"\n' >file
  export RLOCK_CONFIG=$here/file
  [ "$(rlock config --json | jq -r '.settings[] | select(.setting == "wait").value')" = 1s ]
  hold lock
  start rlock run --wait forever lock -- true
  local waiter=$!
  eventually waiting 1 lock
  run -75 rlock run lock -- touch started
  let_go lock
  ends_with 0 "$waiter"
  run -0 rlock run --max-run none --stop-after none --max-queue none --max-failures none lock -- true
  run -64 --separate-stderr rlock run --ttl none lock -- touch started
  run -64 --separate-stderr rlock close --wait forever lock --for 1h
  printf '[run]\nwait = "forever"\n' >file
  [ "$(rlock config --json | jq -r '.settings[] | select(.setting == "wait").value')" = forever ]
}

@test "a run does not read its configuration again" {
  echo "url = \"$RLOCK_URL\"" >file
  RLOCK_URL='' hold read_once -t 1h --config "$here/file" --event-log log
  echo 'url = "redis://elsewhere.invalid"' >file
  renew_now 1
  eventually logged renewed
  let_go read_once
}
