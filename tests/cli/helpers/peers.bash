# shellcheck shell=bash
# Other clients of the same locks: redis-py's Lock, the npm package redlock, and the protocol of Redisson's RLock.

python=/usr/bin/python3

# install_node_redlock FOLDER: pinned; a few kilobytes. Where it is not available the tests that need it are skipped.
install_node_redlock() {
  npm install --prefix "$1/node" --cache "$1/npm" --fetch-retries 0 --fetch-timeout 20000 \
    --no-audit --no-fund --ignore-scripts redlock@4.2.0 >"$1/npm.log" 2>&1 || true
  export NODE_PATH=$1/node/node_modules
}

needs_redis_py() { "$python" -c 'import redis' 2>/dev/null || skip "python3-redis is not installed"; }

needs_node_redlock() {
  node -e 'require("redlock")' 2>/dev/null || skip "no npm package redlock: $(tail -n 1 "$NODE_PATH/../../npm.log")"
}

# peer KIND VERB …: see peer.py. node-redlock uses all servers of RLOCK_URL.
peer() {
  local sockets
  read -ra sockets <<<"${RLOCK_URL//unix:\/\//}"
  if [ "$1" = node-redlock ]; then
    node "$helpers/peer.js" "$(IFS=, && echo "${sockets[*]}")" "${@:2}"
  else
    "$python" "$helpers/peer.py" "$1" "${sockets[0]}" "${@:2}"
  fi
}

# excludes_both_ways KIND FORMAT: each excludes the other, and neither extends nor releases the other's. `at_most MS NAME` says
# that no server keeps NAME longer.
excludes_both_ways() {
  local kind=$1 format=$2 token owner stranger=00000000000000000000000000000000
  token=$(peer "$kind" take theirs 20000)
  [ -n "$token" ]
  run -75 rlock run -n --format "$format" theirs -- touch started
  [ "$(rlock status --format "$format" --json theirs | jq -r '.locks[0] | .format + " " + .holders[0].owner')" = "$format $token" ]
  run -76 rlock renew --format "$format" --ttl 60 --owner "$stranger" theirs
  run -76 rlock release --format "$format" --owner "$stranger" theirs
  at_most 20000 theirs
  peer "$kind" extend theirs "$token" 90000
  peer "$kind" drop theirs "$token"

  owner=$(rlock acquire --format "$format" --ttl 60 ours)
  run -1 peer "$kind" take ours 60000
  [ -z "$output" ]
  run -1 peer "$kind" extend ours stranger 600000
  run -1 peer "$kind" drop ours stranger
  at_most 60000 ours
  rlock release --format "$format" --owner "$owner" ours
  token=$(peer "$kind" take ours 60000)
  peer "$kind" drop ours "$token"
}
