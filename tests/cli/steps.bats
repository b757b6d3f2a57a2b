#!/usr/bin/env bats
# A lock held across separate steps: acquire, renew, release.
load helpers/helpers

# lease NAME OPTION…: $owner has NAME, with $token, as the file lease says.
lease() {
  rlock acquire "$@" --json >lease
  owner=$(jq -r .owner lease) token=$(jq -r .token lease)
}

@test "two pipelines never interleave their steps" {
  cat >pipeline <<'EOF'
set -e
owner=$(rlock acquire both --ttl 1m)
echo "begin $1" >>steps
rlock renew both --owner "$owner"
echo "end $1" >>steps
rlock release both --owner "$owner"
EOF
  for i in 1 2 3 4; do start bash pipeline "$i"; done
  all_done
  [ "$(wc -l <steps)" -eq 8 ]
  awk '$1 == "begin" { at = $2; next } $2 != at { exit 1 }' steps || fail "$(cat steps)"
}

@test "a lock of a pipeline that is cancelled half-way is free when its lease expires" {
  start bash -c 'owner=$(rlock acquire cancelled --ttl 1h) && echo "$owner" >owner && sleep 1000'
  local pipeline=$!
  eventually test -s owner
  kill -TERM "$pipeline"
  run -75 rlock run -n cancelled -- true
  moved 3600
  run -0 rlock run -n cancelled -- true
  refuses 76 cancelled "no longer held" -- rlock release cancelled --owner "$(cat owner)"
}

@test "release --owner does not stop a live run: it exits with 75 and names force-unlock" {
  hold busy
  owner=$(about busy owner)
  refuses 75 busy "held by" "rlock force-unlock --owner $owner busy" -- rlock release busy --owner "$owner"
  run -75 rlock run -n busy -- true
  let_go busy
  run -0 rlock release busy --owner "$owner"
  nothing_left busy
}

@test "a command does not end its own run by release" {
  run -0 --separate-stderr rlock run self -- sh -c 'rlock release self --owner "$RLOCK_OWNER"; echo $?'
  [ "$output" = 75 ]
  says self "force-unlock"
}

@test "a token that was never issued is not restored" {
  refuses 76 typo "never issued token 9007199254740991" -- \
    rlock renew typo --owner 00000000000000000000000000000001 --token 9007199254740991 --ttl 1s
}

@test "acquire prints the owner id and nothing else" {
  run -0 --separate-stderr rlock acquire printed --ttl 1m
  [[ $output =~ ^[0-9a-f]{32}$ ]] || fail "$output"
  [ -z "$stderr" ]
  [ "$(about printed owner)" = "$output" ]
}

@test "acquire --json prints the lease" {
  rlock acquire lease --ttl 90s --json >lease
  jq -e --arg owner "$(about lease owner)" --argjson token "$(about lease token)" '
    .schema == 1 and .name == "lease" and .owner == $owner and .token == $token and .ttl_ms == 90000 and
    .left_ms > 60000 and .left_ms <= 90000 and
    (.since | test("^[0-9]{4}-.*\\.[0-9]{3}Z$"))' lease || fail "$(cat lease)"
}

@test "status shows the process that asked, and --hide-command hides what it is" {
  bash -c 'rlock acquire shown --ttl 1m --reason "release 7" >/dev/null; echo $$ >pid; :'
  [ "$(about shown pid)" = "$(cat pid)" ]
  [[ $(about shown command) == "bash -c"* ]]
  [ "$(about shown reason)" = "release 7" ]
  rlock acquire hidden --ttl 1m --hide-command >/dev/null
  [ "$(about hidden command)" = null ]
}

@test "acquire names the holder of a busy lock and exits with 75 for -n and -w, or the code of -E" {
  hold taken --reason "nightly import"
  for option in -n -w0 -w0.2; do
    refuses 75 taken "nightly import" "pid $holder" -- rlock acquire taken --ttl 1m "$option"
    [ -z "$output" ]
  done
  run -3 --separate-stderr rlock acquire taken --ttl 1m -n -E 3 --json
  jq -e '.error.code == 3 and .error.kind == "busy"' <<<"$output"
  run -75 --separate-stderr rlock acquire taken --ttl 1m -n -q
  silent
  run -75 --separate-stderr rlock acquire taken --ttl 1m -n --json
  jq -e --argjson pid "$holder" --arg host "$(hostname)" '.error | .code == 75 and .kind == "busy" and .name == "taken" and
    (.holder | .pid == $pid and .host == $host and .reason == "nightly import" and .held_ms >= 0)' <<<"$output" || fail "$output"
  run -75 --separate-stderr rlock acquire taken --ttl 1m -w 0.2 --json
  jq -e --argjson pid "$holder" '.error.holder.pid == $pid' <<<"$output" || fail "$output"
  [ "$(waiters taken)" -eq 0 ]
  let_go taken
}

@test "acquire that cannot print the owner id exits with 71 and releases the lock" {
  refuses 71 lost "the lock was released" -- sh -c 'rlock acquire lost --ttl 1m --min-hold 1h >/dev/full'
  free lost
  refuses 71 lost "the lock was released" -- sh -c 'rlock acquire lost --ttl 1m >&-'
  free lost
  # A pipe whose reader is gone.
  mkfifo pipe
  exec 8<>pipe 7>pipe 8<&-
  run -71 --separate-stderr sh -c 'rlock acquire lost --ttl 1m >&7'
  exec 7>&-
  free lost
  job
  run -71 --separate-stderr sh -c "rlock acquire lost --renew-while $job >/dev/full"
  free lost
  eventually no_renewer lost
}

@test "acquire accepts --slots and --shared" {
  one=$(rlock acquire pool --ttl 1m --slots 2)
  two=$(rlock acquire pool --ttl 1m --slots 2)
  run -75 rlock acquire pool --ttl 1m --slots 2 -n
  # The held mode stays what it was.
  rlock renew pool --owner "$one"
  [ "$(rlock status --json pool | jq -c '.locks[0] | [.mode, .slots, (.holders | length)]')" = '["slots",2,2]' ]
  rlock release pool --owner "$one"
  rlock release pool --owner "$two"
  one=$(rlock acquire readers --ttl 1m -s)
  rlock acquire readers --ttl 1m -s >/dev/null
  rlock renew readers --owner "$one"
  [ "$(rlock status --json readers | jq -r '.locks[0].mode')" = shared ]
}

@test "renew keeps the length of the lease, or takes a new one, and never shortens it" {
  owner=$(rlock acquire long --ttl 15m)
  quietly rlock renew long --owner "$owner"
  [ "$(about long left_ms)" -gt 890000 ]
  rlock renew long --owner "$owner" --ttl 1h
  [ "$(about long left_ms)" -gt 3590000 ]
  rlock renew long --owner "$owner"
  [ "$(about long left_ms)" -gt 3590000 ]
}

@test "renew and release need the owner, and RLOCK_OWNER is not taken for it" {
  owner=$(rlock acquire asked --ttl 1m)
  for command in renew release; do
    RLOCK_OWNER=$owner refuses 64 --owner -- rlock "$command" asked
    run -64 --separate-stderr rlock "$command" asked --owner nobody
  done
  held asked
}

@test "renew after the lease expired exits with 76 without the token, and restores the lease with it" {
  lease ended --ttl 1h
  moved 3600
  free ended
  refuses 76 ended "no longer held" "$owner" "has expired" -- rlock renew ended --owner "$owner"
  free ended
  run -0 --separate-stderr rlock renew ended --owner "$owner" --token "$token" --ttl 1m
  says ended "restored"
  run -0 rlock status -q ended --owner "$owner"
  [ "$(about ended token)" = "$token" ]
  rlock release ended --owner "$owner"
}

@test "renew after another run had the lock exits with 76, even with the token, and names the holder" {
  lease handed --ttl 1h
  moved 3600
  hold handed --reason "the next one"
  refuses 76 handed "the next one" -- rlock renew handed --owner "$owner"
  refuses 76 handed "the next one" -- rlock renew handed --owner "$owner" --token "$token"
  refuses 76 handed "taken by $(id -un)@$(hostname)" -- rlock renew handed --owner "$owner" --token "$token" --ttl 1m
  run -76 --separate-stderr rlock renew handed --owner "$owner" --json
  jq -e --arg owner "$owner" '.error.code == 76 and .error.kind == "lost" and .error.owner == $owner' <<<"$output"
  let_go handed
}

@test "renew restores a lost lease with the length that was asked for, and shows no command" {
  own
  lease hidden --ttl 15m --hide-command
  redis flushall >/dev/null
  run -76 rlock renew hidden --owner "$owner"
  redis flushall >/dev/null
  refuses 76 hidden "no longer held" "--ttl" -- rlock renew hidden --owner "$owner" --token "$token" -q
  free hidden
  run -0 --separate-stderr rlock renew hidden --owner "$owner" --token "$token" --ttl 15m
  says hidden "restored it for 15m"
  [ "$(about hidden left_ms)" -gt 890000 ]
  [ "$(about hidden command)" = null ]
}

@test "-v: renew reports the lease that applies, also if --ttl is shorter; release reports that it is over" {
  owner=$(rlock acquire verbose --ttl 10m)
  run -0 --separate-stderr rlock renew verbose --owner "$owner" --ttl 2s -v
  says verbose "not changed: the lease already lasts for another 9m"
  run -0 --separate-stderr rlock renew verbose --owner "$owner" --ttl 20m -v
  says verbose "renewed for 20m"
  run -0 --separate-stderr rlock release verbose --owner "$owner" -v
  says verbose released
}

@test "renew --json says how long the lease lasts, and release --json that it is over" {
  owner=$(rlock acquire spoken --ttl 10m)
  rlock renew spoken --owner "$owner" --ttl 20m --json >renewed
  jq -e --arg owner "$owner" '.schema == 1 and .event == "renewed" and .name == "spoken" and .owner == $owner and
    .ttl_ms == 1200000 and .left_ms > 900000 and .left_ms <= 1200000' renewed || fail "$(cat renewed)"
  rlock renew spoken --owner "$owner" --ttl 2s --json >unchanged
  jq -e '.event == "unchanged" and .ttl_ms == 2000 and .left_ms > 900000' unchanged || fail "$(cat unchanged)"
  rlock release spoken --owner "$owner" --json >released
  jq -e --arg owner "$owner" '.schema == 1 and .event == "released" and .name == "spoken" and .owner == $owner' released ||
    fail "$(cat released)"
}

@test "release exits with 0, even a second time, and with 76 if the lease was lost" {
  owner=$(rlock acquire back --ttl 1m)
  quietly rlock release back --owner "$owner"
  nothing_left back
  run -0 --separate-stderr rlock release back --owner "$owner"
  says "was released before this command"
  owner=$(rlock acquire back --ttl 1h)
  moved 3600
  hold back
  refuses 76 back "no longer held" "pid $holder" -- rlock release back --owner "$owner"
  held back
  let_go back
}

@test "release after force-unlock exits with 76, and says who broke the lock and why" {
  owner=$(rlock acquire broken --ttl 15m)
  run -0 rlock force-unlock broken --yes --reason "host is gone"
  free broken
  refuses 76 broken "$(id -un)@$(hostname)" "host is gone" -- rlock release broken --owner "$owner"
  refuses 76 broken "host is gone" -- rlock renew broken --owner "$owner"
}

@test "status -q --owner exits with 0 for yes and 1 for no, and does not ask about an empty owner" {
  lease asked --ttl 1h
  run -0 rlock status -q --owner "$owner" asked
  run -1 rlock status -q --owner ffffffffffffffffffffffffffffffff asked
  quietly_no() { run -1 --separate-stderr "$@" && silent; }
  quietly_no rlock status -q --owner "" asked
  RLOCK_URL=unix://$here/nowhere quietly_no rlock status -q --owner "" asked
  run -1 rlock status -q --json --owner "" asked
  [ "$(jq -r '.locks[0].state' <<<"$output")" = held ]
  RLOCK_URL=unix://$here/nowhere run -69 rlock status -q --owner "$owner" asked
  run -64 rlock status --owner "" asked
  for command in renew release "force-unlock --yes"; do
    # shellcheck disable=SC2086 # words
    refuses 64 owner -- rlock $command --owner "" asked
  done
  rlock release asked --owner "$owner"
}
