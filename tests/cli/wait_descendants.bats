#!/usr/bin/env bats
load helpers/helpers

@test "the lock is held until the last descendant is gone, and rlock exits as the command did" {
  hold_with 'setsid sh -c "echo >up; read -r _ <&9; echo last >last" & exit 7' daemon --wait-descendants
  run -75 rlock run -n daemon -- true
  echo 1<>go
  ends_with 7 "$holder"
  [ "$(cat last)" = last ]
  nothing_left daemon
}

@test "the lease is renewed for a descendant" {
  run -3 rlock run -t 12 --event-log log --wait-descendants renewed -- \
    sh -c 'setsid sh -c "until grep -q renewed log; do sleep 0.05; done" & exit 3'
}

@test "--max-run stops leftover processes" {
  run -124 --separate-stderr rlock run --max-run 0.3 --wait-descendants limited -- sh -c 'setsid sleep 1000 & (sleep 1000 &); exit 0'
  says limited --max-run
  nothing_left limited
}

# leave NAME: the command has ended with 5 and left the process $said behind.
leave() { hold_with 'setsid sh -c "echo \$\$ >up; exec sleep 1000" & exit 5' "$1" --wait-descendants 2>err; }

@test "when rlock is killed, the guard stops leftover processes" {
  leave killed
  kill -KILL "$holder"
  eventually gone "$said"
}

@test "an outer run neither waits for nor stops the local: server that a nested run started" {
  run -4 rlock run --wait-descendants around -- sh -c "rlock run -u 'local:$here/local' in -- true; exit 4"
  redis-cli -s local/rlock.sock ping
  run -124 rlock run --max-run 0.5 around -- sh -c "rlock run -u 'local:$here/local' in -- true; sleep 1000"
  [ "$(redis-cli -s local/rlock.sock ping)" = PONG ]
}

@test "the server that a nested run has just started survives the end of the outer run" {
  hold_with "rlock run -u 'local:$here/local' in -- true; echo >up; exec sleep 1000" around
  ends_by TERM "$holder"
  [ "$(redis-cli -s local/rlock.sock ping)" = PONG ]
}
