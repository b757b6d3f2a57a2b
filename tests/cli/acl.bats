#!/usr/bin/env bats
# The least ACL rule of rlock(1): it is sufficient, and every part of it is needed. [docs/PROTOCOL.md, "Server permissions"]
load helpers/helpers

# The manual page is generated from the same rule.
rule() { sed -n '/^~rlock:/{s/\\-/-/g;p}' "$BATS_TEST_DIRNAME/../../man/rlock.1"; }

# denied: what the server has refused to the user since the last ACL LOG RESET.
denied() { redis acl log | grep -c '^reason' || true; }

setup() {
  begin
  reset_server
  redis script flush >/dev/null
  redis acl log reset >/dev/null
}

@test "with the least ACL rule everything works, and the server denies nothing" {
  limited "$(rule)"
  hold busy
  run -75 rlock run -n busy -- true
  queue_up busy -- sh -c 'rlock run busy -- touch second'
  run -0 rlock queue busy
  run -0 rlock status
  hand_over busy
  [ -e second ]
  run -0 rlock run --slots 2 --min-hold 10ms slotted -- true
  run -0 rlock run --shared shared -- true
  run -0 rlock acquire steps --ttl 20s
  local owner=$output
  run -0 rlock renew steps --owner "$owner"
  run -0 rlock release steps --owner "$owner"
  hold broken
  run -0 rlock force-unlock broken --yes
  ends_with 76 "$holder"
  hold kept
  queue_up kept
  run -0 rlock queue kept --remove "$(rlock queue --json kept | jq -r '.waiters[0].owner')"
  ends_with 75 "$waiter"
  let_go kept
  run -0 rlock history kept
  RLOCK_URL="$RLOCK_URL?db=2" run -0 rlock run elsewhere -- true
  [ "$(denied)" -eq 0 ] || fail "$(redis acl log)"
}

@test "the least ACL rule covers only its prefix" {
  limited "$(rule)"
  run -77 rlock run --prefix other: lock -- touch started
}

# try COMMAND: what needs it.
try() {
  case $1 in
    scan) run --separate-stderr rlock status ;;
    select) RLOCK_URL="$RLOCK_URL?db=2" run --separate-stderr rlock run lock -- touch started ;;
    eval) redis script flush >/dev/null && run --separate-stderr rlock run lock -- touch started ;;
    *) run --separate-stderr rlock run lock -- touch started ;;
  esac
}

@test "exit 77: a command that the ACL lacks is named, nothing runs, and nothing is left" {
  local least command tried=0
  least=$(rule)
  # All scripts are known to the server, so that the denial is not one of EVAL.
  run -0 rlock run lock -- true
  for command in $(tr ' ' '\n' <<<"$least" | sed -n 's/^+//p'); do
    # Only a convenience for readers of CLIENT LIST.
    [ "$command" != 'client|setname' ] || continue
    reset_server
    tried=$((tried + 1))
    limited "$least -$command"
    try "$command"
    [ "$status" -eq 77 ] || fail "without $command: $status, $stderr"
    says "$SERVER/s" || fail "without $command: $stderr"
    [[ ${stderr,,} =~ [^a-z]$command([^a-z]|$) ]] || fail "without $command: $stderr"
    RLOCK_URL="unix://$SERVER/s" nothing_left lock || fail "without $command"
    run rlock close lock --for 1h
    [ "$status" -ne 0 ] || continue
    [ "$status" -eq 77 ] || fail "close without $command: $status"
    RLOCK_URL="unix://$SERVER/s" nothing_left lock || fail "close without $command"
  done
  [ "$tried" -gt 30 ]
}

@test "a user who may not set the client's name works all the same" {
  limited "$(rule) -client|setname"
  quietly rlock run lock -- true
}

@test "a password in --url is not overruled by that of another server in the environment, nor is that one sent" {
  own --requirepass right
  for other in RLOCK_PASSWORD REDISCLI_AUTH; do
    quietly env RLOCK_USER=other "$other=other" rlock run -q -u "unix://:right@$own_server/s" job -- true
    run -77 env "$other=other" RLOCK_URL="unix://:right@$own_server/s" rlock run job -- true
  done
}
