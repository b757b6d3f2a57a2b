#!/usr/bin/env bats
# What services and proxies that speak Redis refuse, in their own words.
load helpers/helpers

# picky RULE…: what stands before the server from now on; see helpers/picky_server.py.
picky() {
  picked=$((${picked:-0} + 1))
  start python3 "$BATS_TEST_DIRNAME/helpers/picky_server.py" "$here/p$picked" "$SERVER/s" "$here/log$picked" "$@"
  eventually test -S "$here/p$picked"
  asked=$here/log$picked
  : >>"$asked"
  RLOCK_URL="unix://$here/p$picked"
}

direct() { RLOCK_URL="unix://$SERVER/s" "$@"; }

# asked_times [WORD]: how many commands (that begin so) have come.
asked_times() { grep -c "^[0-9.]* ${1:-}" "$asked" || true; }
asked_at_least() { [ "$(asked_times)" -ge "$1" ]; }

unknown() { echo "$1=-ERR unknown command '$1', with args beginning with: 'rlock:{lock}:holders' "; }

@test "what rlock can do without may be unknown" {
  local word all=()
  for word in CLIENT ROLE CONFIG INFO PING LRANGE SCAN; do
    picky "$(unknown "$word")"
    run -0 --separate-stderr rlock run lock -- true
    silent
    all+=("$(unknown "$word")")
  done
  picky "${all[@]}"
  run -0 --separate-stderr rlock run lock -- true
  silent
}

# Refused, hung up on, or answered at once: a waiter that tries again and again must not be what loads the server.
@test "a waiter that the server does not let wait asks it at most five times a second, and keeps its place" {
  local reply first second
  for reply in "-ERR unknown command 'blpop'" '-UNBLOCKED force unblock from blocking operation' \
    '-MOVED 3999 10.0.0.1:6379' '*-1' close; do
    picky "BLPOP=$reply"
    direct hold lock
    start rlock run lock -- sh -c 'echo 1 >>order' 2>err
    first=$!
    direct eventually waiting 1 lock
    direct start rlock run lock -- sh -c 'echo 2 >>order'
    second=$!
    direct eventually waiting 2 lock
    eventually asked_at_least 21
    awk -v reply="$reply" 'NR == 21 && $1 < 4 { print reply ": 21 commands in " $1 " s"; exit 1 }' "$asked" >&2
    let_go lock
    ends_with 0 "$first"
    ends_with 0 "$second"
    [ "$(tr -d '\n' <order)" = 12 ]
    [ "$(wc -l <err)" -eq 1 ] || fail "$reply: $(cat err) $(cat "$asked")"
    grep -q 'rlock: warning: .*lock.*once a second' err || fail "$(cat err)"
    rm -f order held.lock go.lock
    reset_server
  done
}
