#!/usr/bin/env bats
load helpers/helpers

@test "exit 69: nothing listens" {
  RLOCK_URL="unix://$here/nobody" refuses 69 lock "$here/nobody" "No such file"
  # Port 1 is tcpmux, which no machine runs.
  RLOCK_URL=redis://127.0.0.1:1 refuses 69 lock 127.0.0.1:1 "Connection refused"
}

@test "exit 69: the server is silent, said after --connect-timeout" {
  own
  kill -STOP "$(cat "$own_server/pid")"
  run -69 --separate-stderr rlock run --connect-timeout 300ms lock -- touch started
  says lock "$SERVER/s" "timed out"
  run -69 --separate-stderr rlock status --connect-timeout 300ms
  says "$SERVER/s"
}

@test "exit 77: no password, a wrong password, a wrong user" {
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

@test "a database that is not there, or a password that is wrong, frees and takes nothing" {
  own
  # The server has the scripts from here on.
  run -0 rlock run lock -- true
  owner=$(rlock acquire kept --ttl 60s)
  RLOCK_URL="unix://$SERVER/s?db=99" run -69 rlock release kept --owner "$owner"
  held kept
  redis acl setuser bob on '>right' '~*' '&*' +@all >/dev/null
  RLOCK_PASSWORD=wrong run -77 rlock --user bob release kept --owner "$owner"
  held kept
  redis config resetstat >/dev/null
  RLOCK_URL="unix://$SERVER/s?db=99" refuses 69 lock "$SERVER/s"
  RLOCK_PASSWORD=wrong run -77 rlock --user bob run -n untouched -- true
  [[ $(redis info commandstats) != *cmdstat_eval* ]] || fail "$(redis info commandstats)"
  run -0 rlock release kept --owner "$owner"
}

@test "locks of different databases are independent" {
  hold apart
  RLOCK_URL="unix://$SERVER/s?db=3" run -0 rlock run -n apart -- true
  let_go apart
}

@test "exit 65: a key of the lock that is not ours, or that a newer rlock wrote, nothing is written" {
  local key precious='2 0 0 0 0 0 0 -'
  for key in holders limits queue alive who meta released; do
    reset_server
    redis set "rlock:{lock}:$key" "$precious" >/dev/null
    refuses 65 lock "$SERVER/s"
    [ "$(redis get "rlock:{lock}:$key")" = "$precious" ]
    [ "$(redis dbsize)" = 1 ] || fail "$(redis --raw keys '*')"
  done
  reset_server
}

@test "exit 69: out of memory, and a holder from before can still renew and release" {
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

@test "a server that restarts in mid-hold with its data: the command never notices, and the queue stays" {
  own --appendonly yes --appendfsync always
  hold kept -t 9
  line_up kept
  restart --appendonly yes --appendfsync always
  eventually waiting 2 kept
  held kept
  let_go kept
  in_order
}
