# shellcheck shell=bash
# Sentinel groups and clusters for the tests, on top of the helpers of tests/cli: real servers on free
# ports of 127.0.0.1, each in a folder under $fleet with a unix socket of its own, ended by pid.
load ../cli/helpers/helpers

export LC_ALL=C
master_name=the-master
cli_options=() # to reach a port

# These files have no single server of their own.
setup_file() { :; }
teardown_file() { :; }

setup() {
  begin
  # A path in the test's own folder may be too long for a socket.
  fleet=$(mktemp -d)
}

teardown() {
  local folder
  end_started
  for folder in "$fleet"/*/; do
    [ ! -s "${folder}pid" ] || end_server "${folder%/}"
  done
  rm -rf "$fleet"
}

# at NODE ARG…: redis-cli at one of the fleet's servers.
at() {
  local node=$1
  shift
  redis-cli -s "$fleet/$node/s" --no-auth-warning "$@"
}

pid_of() { cat "$fleet/$1/pid"; }
port_of() { cat "$fleet/$1/port"; }

# node NAME PORT ARG…
node() {
  local name=$1 port=$2
  shift 2
  serve "$fleet/$name" --port "$port" --bind 127.0.0.1 --repl-diskless-sync-delay 0 "$@"
  echo "$port" >"$fleet/$name/port"
}

stop() { kill -STOP "$(pid_of "$1")"; }
go_on() { kill -CONT "$(pid_of "$1")"; }
crash() { end_server "$fleet/$1"; }

# node_with_port PORT
node_with_port() {
  local file
  file=$(grep -lx "$1" "$fleet"/*/port)
  basename "$(dirname "$file")"
}

# ---- a Sentinel group: r0 (the first master), r1, r2 and the sentinels s0, s1, s2 ----

# sentinel NAME PORT: watches r0.
sentinel() {
  mkdir "$fleet/$1"
  cat >"$fleet/$1/conf" <<CONF
${sentinel_lines:-}
sentinel monitor $master_name 127.0.0.1 $(port_of r0) 2
sentinel down-after-milliseconds $master_name 1000
sentinel failover-timeout $master_name 3000
${group_password:+sentinel auth-pass $master_name $group_password}
CONF
  node "$1" "$2" --sentinel
  # Else it does nothing for 30 s where this machine stood still for two.
  at "$1" ${sentinel_password:+-a "$sentinel_password"} sentinel debug tilt-trigger 600000 >/dev/null
}

# group ARG…: of the data servers; $group_password is theirs, $sentinel_lines the sentinels' own.
group() {
  local ports i
  read -ra ports < <(free_ports 6)
  for i in 0 1 2; do
    local role=()
    [ "$i" -eq 0 ] || role=(--replicaof 127.0.0.1 "${ports[0]}")
    node "r$i" "${ports[i]}" ${group_password:+--requirepass "$group_password" --masterauth "$group_password"} \
      "${role[@]}" "$@"
  done
  eventually replicas_linked r0 2
  for i in 0 1 2; do sentinel "s$i" "${ports[3 + i]}"; done
  for i in 0 1 2; do eventually knows_all "s$i"; done
  export RLOCK_URL="redis+sentinel://127.0.0.1:${ports[3]},127.0.0.1:${ports[4]},127.0.0.1:${ports[5]}/$master_name"
}

replicas_linked() {
  [ "$(at "$1" ${group_password:+-a "$group_password"} info replication | grep -c 'state=online')" -ge "$2" ]
}

knows_all() {
  local facts
  facts=$(at "$1" ${sentinel_password:+-a "$sentinel_password"} sentinel master "$master_name" | paste - - )
  grep -qP '^num-slaves\t2$' <<<"$facts" && grep -qP '^num-other-sentinels\t2$' <<<"$facts"
}

# The master that every running sentinel names: empty as long as they differ.
master() {
  local ports
  ports=$(for s in s0 s1 s2; do at "$s" sentinel get-master-addr-by-name "$master_name" | tail -1; done | sort -u)
  [[ $ports != *$'\n'* ]] && node_with_port "$ports"
}

# deposed NODE: all sentinels name another master, and it agrees.
deposed() {
  local now
  now=$(master) && [ "$now" != "$1" ] && [ "$(at "$now" role | head -1)" = master ]
}

# fail_over: r0 is killed, and another one is the master.
fail_over() {
  crash r0
  eventually deposed r0
}

# replicated NODE [REPLICAS]: so many replicas (2) have all that was written so far. WAIT waits for what was written before the
# last command of its own connection: without one it counts a replica that has nothing yet.
replicated() { [ "$(printf 'ping\nwait %d 60000\n' "${2:-2}" | at "$1" | tail -1)" -ge "${2:-2}" ]; }

# far SENTINEL TIME: $far is another address of it, from which each way takes so many seconds, and a connection two ways.
far() {
  far=127.0.0.1:$(free_ports 1)
  mkfifo far.orders
  start sh -c 'exec /usr/bin/python3 -B "$0" "$@" <>far.orders' "$helpers/../../harness/proxy.py" \
    127.0.0.1 "$(port_of "$1")" "${far%:*}" "${far#*:}" >far.lines
  eventually grep -qx up far.lines
  echo "{\"port\": ${far#*:}, \"mode\": \"far\", \"seconds\": $2}" >far.orders
  eventually grep -qx 'done' far.lines
}

# ---- a cluster: three masters c0, c1, c2, each with a replica among c3, c4, c5 ----

# cluster REPLICAS ARG…: $REPLICAS of each master. A node has the timeout to greet another, too, and is asked to but once.
cluster() {
  local replicas=$1 ports nodes i
  shift
  nodes=$((3 * (1 + replicas)))
  read -ra ports < <(free_ports $((2 * nodes)))
  local addresses=()
  for ((i = 0; i < nodes; i++)); do
    node "c$i" "${ports[i]}" --cluster-enabled yes --cluster-node-timeout 5000 --cluster-port "${ports[nodes + i]}" "$@"
    addresses+=("127.0.0.1:${ports[i]}")
  done
  redis-cli "${cli_options[@]}" --cluster create "${addresses[@]}" --cluster-replicas "$replicas" --cluster-yes >"$fleet/created" || return
  for ((i = 0; i < nodes; i++)); do eventually sees_all "c$i"; done
  [ "$replicas" -eq 0 ] || for i in 0 1 2; do eventually replicas_linked "c$i" "$replicas"; done
  export RLOCK_URL="redis+cluster://127.0.0.1:${ports[0]},127.0.0.1:${ports[1]},127.0.0.1:${ports[2]}"
}

sees_all() { at "$1" cluster info | tr -d '\r' | grep -qx cluster_state:ok; }

slot_of() { at c0 cluster keyslot "rlock:{$1}:holders"; }
id_of() { at "$1" cluster myid; }

# owner_of NAME [ASKED]: the node that serves the lock's slot, according to ASKED.
owner_of() {
  local slot first last port rest
  slot=$(slot_of "$1")
  while read -r first last port rest; do
    [ "$slot" -lt "$first" ] || [ "$slot" -gt "$last" ] || node_with_port "$port"
  done < <(at "${2:-c0}" cluster slots | paste -sd' ' | sed 's/ \([0-9]* [0-9]* 127\)/\n\1/g' | awk '{print $1, $2, $4}')
}

# Some node other than NODE that is a master from the start.
other_than() {
  [ "$1" = c1 ] && echo c2 || echo c1
}

# The steps of a slot's move; a lock's keys are all in one slot.
open_move() {
  at "$3" cluster setslot "$1" importing "$(id_of "$2")" >/dev/null
  at "$2" cluster setslot "$1" migrating "$(id_of "$3")" >/dev/null
}
move_keys() {
  local slot=$1 from=$2 to=$3 most=$4 keys
  mapfile -t keys < <(at "$from" --raw cluster getkeysinslot "$slot" "$most")
  [ "${#keys[@]}" -eq 0 ] || [ -z "${keys[0]}" ] ||
    at "$from" migrate 127.0.0.1 "$(port_of "$to")" '' 0 5000 keys "${keys[@]}" >/dev/null
}
close_move() {
  local node
  for node in "$3" "$2" c0 c1 c2; do at "$node" cluster setslot "$1" node "$(id_of "$3")" >/dev/null; done
}
