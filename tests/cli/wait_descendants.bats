#!/usr/bin/env bats
load helpers/helpers

# A server that a local: URL of a test started stays: it is ended here.
teardown() {
  local pid
  if [ -e "$here/local/rlock.sock" ]; then
    pid=$(redis-cli -s "$here/local/rlock.sock" info server | tr -d '\r' | sed -n 's/^process_id://p')
    kill -KILL "$pid"
    eventually gone "$pid"
  fi
  for pid in "${started[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

# The command leaves a daemon behind that ends on request, and exits with 7.
leaving='setsid sh -c "echo up >up; read -r _ <go; echo last >last" & exit 7'

@test "the lock is held until the last descendant is gone; the code is the command's" {
  mkfifo up go
  start rlock run --wait-descendants daemon -- sh -c "$leaving"
  holder=$!
  next_line up
  run -75 rlock run -n daemon -- true
  echo 1 >go
  ends_with 7 "$holder"
  [ "$(cat last)" = last ]
  nothing_left daemon
}

@test "the lease is renewed for a descendant" {
  run -3 rlock run -t 1 --wait-descendants renewed -- sh -c 'setsid sleep 2.5 & exit 3'
}

@test "--max-run ends what was left behind" {
  run -124 --separate-stderr rlock run --max-run 0.3 --wait-descendants limited -- sh -c 'setsid sleep 1000 & (sleep 1000 &); exit 0'
  says limited --max-run
  nothing_left limited
}

# leave NAME: the command has ended with 5 and left the process $left behind; rlock is $holder.
leave() {
  mkfifo up
  start rlock run --wait-descendants "$1" -- sh -c 'setsid sh -c "echo \$\$ >up; exec sleep 1000" & exit 5'
  holder=$!
  left=$(next_line up)
}

@test "TERM reaches what was left behind, and the code stays the command's" {
  leave asked
  # The guard is its parent then, and the holder the guard's.
  left_alone() { [ "$(ps -o ppid= -p "$(ps -o ppid= -p "$left" | tr -d ' ')")" -eq "$holder" ]; }
  eventually left_alone
  kill -TERM "$holder"
  ends_with 5 "$holder"
  gone "$left"
}

@test "when rlock is killed the guard ends what was left behind" {
  leave killed
  kill -KILL "$holder"
  eventually gone "$left"
}

@test "force-unlock ends what was left behind, 76" {
  mkfifo up
  start rlock run --wait-descendants forced -- sh -c 'setsid sh -c "echo up >up; exec sleep 1000" & exit 0' 2>err
  holder=$!
  next_line up
  run -0 rlock force-unlock forced --yes
  ends_with 76 "$holder"
  grep -q forced err
}

@test "the server that a nested run starts for local: is neither waited for nor ended" {
  run -4 rlock run --wait-descendants around -- sh -c "rlock run -u 'local:$here/local' in -- true; exit 4"
  redis-cli -s local/rlock.sock ping
  run -124 rlock run --max-run 0.5 around -- sh -c "rlock run -u 'local:$here/local' in -- true; sleep 1000"
  [ "$(redis-cli -s local/rlock.sock ping)" = PONG ]
}

@test "the server that a nested run has just started survives the end of the outer run" {
  mkfifo up
  start rlock run around -- sh -c "rlock run -u 'local:$here/local' in -- true; echo up >up; exec sleep 1000"
  holder=$!
  next_line up
  kill -TERM "$holder"
  ends_with 143 "$holder"
  [ "$(redis-cli -s local/rlock.sock ping)" = PONG ]
}
