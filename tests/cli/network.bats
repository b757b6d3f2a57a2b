#!/usr/bin/env bats
# Real packets that get lost, in a network of the test's own with nothing but loopback. [docs/FAULTS.md, "Faults"]
load helpers/helpers

# A process that keeps the namespaces; `rlock` runs in them, the test and its redis-cli outside.
setup() {
  begin
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  unshare -nm true 2>/dev/null || skip "this machine refuses new network namespaces"
  command -v nft ip >/dev/null || skip "nft or ip is not installed"
  start unshare -nm --propagation private sh -c 'ip link set lo up; echo $$ >ready; exec sleep 1000'
  eventually test -s ready
  network=$(cat ready)
  inside nft -f - <<<'table inet faults { chain in { type filter hook input priority 0; }; }' 2>/dev/null ||
    skip "nft does not work in a network namespace here"
  mkdir bin
  printf '#!/bin/sh\nexec nsenter -t %s -n -m --wd=. %s "$@"\n' "$network" "$RLOCK" >bin/rlock
  chmod +x bin/rlock
  PATH=$here/bin:$PATH
  # From here on servers listen there, on a port of this network, which has no other.
  # shellcheck disable=SC2317 # by serve
  redis-server() { inside redis-server "$@"; }
  own --bind 127.0.0.1 --port 6379
  near=$RLOCK_URL
  export RLOCK_URL=redis://127.0.0.1:6379
}

inside() { nsenter -t "$network" -n -m --wd=. "$@"; }
drop() { inside nft add rule inet faults in "$@"; }
mend() { inside nft flush chain inet faults in; }

# cut_off RULE…: a holder whose packets get lost has its command dead before the next one starts.
cut_off() {
  hold_alone lost -t 8
  drop "$@"
  run -0 env RLOCK_URL="$near" rlock run -w 60 lost -- flock -n alone true
  ends_with 76 "$holder"
  grep -q '^rlock: lost "lost" at 127.0.0.1:6379: .*; rlock stopped the command; rlock help 76 says what to do$' err || fail "$(cat err)"
  # On a slow machine a warning comes before it.
  [ "$(grep -vc 'unless the server answers$' err)" -eq 1 ] || fail "$(cat err)"
}

@test "if the network falls silent, the command is dead before the next one starts" {
  cut_off meta l4proto tcp drop
}

@test "if requests get lost, the command is dead before the next one starts" {
  cut_off tcp dport 6379 drop
}

@test "if only replies get lost, the command is dead before the extended lease expires" {
  cut_off tcp sport 6379 drop
}

@test "the command never notices connections that are reset for a while" {
  hold reset -t 15 --event-log log
  drop tcp dport 6379 reject with tcp reset
  one_more renew-failed
  mend
  one_more renewed
  let_go reset
  RLOCK_URL=$near nothing_left reset
}

@test "the command never notices a link that is down for less than the lease" {
  hold unplugged -t 15 --event-log log
  inside ip link set lo down
  one_more renew-failed
  inside ip link set lo up
  one_more renewed
  let_go unplugged
  RLOCK_URL=$near nothing_left unplugged
}

# Many short runs, each a success or a clear failure.
contend() {
  local code
  for _ in 1 2 3 4 5 6; do
    code=0
    rlock run -t 6 -w 30 lossy -- flock -n alone sleep 0.02 2>>err || code=$?
    echo "$code" >>codes
  done
}

@test "with 30 % of all packets lost no runs overlap, and nothing is left behind" {
  drop numgen random mod 100 '<' 30 drop
  local pids=() one
  for one in 1 2 3; do
    contend 3>&- 4>&- &
    started+=($!)
    pids+=($!)
  done
  for one in "${pids[@]}"; do ends_with 0 "$one"; done
  mend
  run ! grep -vxE '0|69|75|76' codes
  grep -qx 0 codes
  echo "# exit codes: $(sort codes | uniq -c | tr -s ' \n' ' ')" >&3
  export RLOCK_URL=$near
  run -0 rlock run -w 60 lossy -- flock -n alone true
  # A late acquire of one that gave up may arrive yet.
  eventually nothing_left lossy
}

# names HOW: db.test is in the hosts file, and a name server answers queries for other names as HOW says, where a query without an
# answer is repeated after half a minute.
names() {
  echo '127.0.0.1 db.test' >hosts
  echo 'hosts: files dns' >nsswitch.conf
  printf 'nameserver 127.0.0.1\noptions timeout:30 attempts:5\n' >resolv.conf
  local file
  for file in hosts nsswitch.conf resolv.conf; do
    inside mount --bind "$here/$file" "/etc/$file" || skip "cannot mount over /etc/$file here"
  done
  start nsenter -t "$network" -n "$helpers/name_server.py" "$1" >name_server
  eventually test -s name_server
}

@test "a silent name server does not stretch the first contact" {
  names silent
  local before=$SECONDS
  RLOCK_URL=redis://other.test:6379 refuses 69 lock other.test "timed out"
  # 2 s are promised, and the name server would cost 150.
  [ $((SECONDS - before)) -lt 30 ]
}

@test "a name server that falls silent in mid-lease does not cost the lease" {
  names silent
  RLOCK_URL=redis://db.test:6379 hold named -t 12 --event-log log
  : >hosts
  redis client kill type normal >/dev/null
  one_more renewed
  redis client kill type normal >/dev/null
  one_more renewed
  let_go named
  RLOCK_URL=$near nothing_left named
}

@test "a name server that never answers for IPv6 costs nothing" {
  names only_v4
  RLOCK_URL=redis://other.test:6379 run -0 rlock run -n lock -- true
}

@test "a lost DNS query costs a waiting run one try" {
  names loses_first
  RLOCK_URL=redis://other.test:6379 run -0 rlock run -q -w 25 lock -- true
  [ "$(grep -c lost name_server)" -gt 0 ]
}

@test "an IPv6 address that the name server gives late is tried, even if the IPv4 address is silent" {
  restart --bind 127.0.0.1 ::1 --port 6379
  names late_v6
  drop ip protocol tcp drop
  RLOCK_URL=redis://other.test:6379 run -0 rlock run -n --connect-timeout 8s lock -- true
}
