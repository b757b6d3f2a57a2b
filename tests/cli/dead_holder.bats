#!/usr/bin/env bats
# A holder of this host whose rlock has died, which only its host can know before the lease has expired.
load helpers/helpers

# died: rlock $holder has died, and nothing reports its exit code to the test.
died() {
  kill -KILL "$@"
  local pid
  for pid in "$@"; do eventually gone "$pid"; done
}

# everyone_says NAME PID: every command that shows the holder says that rlock has died, and when the lock is free.
everyone_says() {
  local death="rlock (pid $2) has died; processes of its command may still run" end='; the lock is free in ([5-9]|10)m[0-9]*s?'
  run -0 rlock status "$1"
  [[ $output == *"lease    $death"* && $output =~ $end ]] || fail "$output"
  run -0 rlock status
  [[ $output == *"[$death"* && $output =~ $end ]] || fail "$output"
  run -75 --separate-stderr rlock run -n "$1" -- touch started
  [[ $stderr == *"; $death"*"; see rlock status $1" && $stderr =~ $end ]] || fail "$stderr"
  run -75 --separate-stderr rlock acquire -n "$1" --ttl 1m
  [[ $stderr == *"; $death"* ]] || fail "$stderr"
  run -1 rlock check "$1"
  [[ $output == *"WARNING"*" (pid $2): $death"* && $output =~ $end ]] || fail "$output"
}

# nobody_says NAME: no command says so.
nobody_says() {
  run -0 rlock status "$1"
  [[ $output != *died* && $output == *"lease    alive, renewed "*" ago"* ]] || fail "$output"
  run -75 --separate-stderr rlock run -n "$1" -- touch started
  [[ $stderr != *died* ]] || fail "$stderr"
}

@test "if rlock was killed, status, check and a refused run say immediately that it has died, and when the lock is free" {
  hold dead -t 10m
  nobody_says dead
  died "$holder"
  everyone_says dead "$holder"
}

@test "a holder is called dead even before its parent has reaped it" {
  mkfifo up
  start sh -c 'rlock run -t 10m unreaped -- sh -c "echo up >up; exec sleep 1000" & echo $! >pid; exec sleep 1000'
  next_line up
  holder=$(cat pid)
  nobody_says unreaped
  died "$holder"
  kill -0 "$holder"
  everyone_says unreaped "$holder"
}

@test "if rlock and its guard were killed, they say the same, and that processes may still run" {
  hold_with 'sleep 1000 & echo $PPID $! >up; wait' orphaned -t 10m
  read -r guard left <<<"$said"
  # rlock, which cannot act while it is stopped, takes over from a guard that dies.
  kill -STOP "$holder"
  kill -KILL "$guard"
  died "$holder"
  kill -0 "$left"
  everyone_says orphaned "$holder"
  kill -KILL "$left"
}

@test "a waiter says within its next request that the holder has died, and so does its log when it has the lock" {
  hold awaited -t 10m
  start rlock run -v --event-log log awaited -- true 2>err
  waiter=$!
  eventually grep -q 'held by .*(alive)$' err
  died "$holder"
  eventually grep -qF "; rlock (pid $holder) has died; processes of its command may still run; the lock is free in " err
  moved 600
  ends_with 0 "$waiter"
  grep -q "acquired \"awaited\" after .*; rlock (pid $holder) has died; processes of its command may still run" err || fail "$(cat err)"
  logged acquired 1 "rlock (pid $holder) has died"
  rlock history awaited | grep -qF '[no such process here] sh -c' || fail "$(rlock history awaited)"
}

@test "force-unlock of a holder that has died names what may overlap, and --now" {
  hold forced -t 10m
  died "$holder"
  run -0 rlock force-unlock forced --yes
  [[ $output == *"rlock (pid $holder) has died; processes of its command may still run; the lock is free in "*"if none of its processes runs, use --now"* ]] ||
    fail "$output"
  run -0 rlock force-unlock forced --yes --now
  [[ $output == *"freed immediately; processes of its command may still run and overlap with the next one"* ]] || fail "$output"
}

@test "a holder that lives is never called dead: stopped, in another container, under a copied host name, or before a boot" {
  hold stopped -t 10m
  kill -STOP "$holder"
  nobody_says stopped
  kill -CONT "$holder"
  let_go stopped
  unshare -pfmu --mount-proc true 2>/dev/null || skip "this machine refuses new namespaces"
  # Its pid is a process of no other container.
  hold_with 'exec 9<>go; echo $$ >up; read -r _ <&9' contained -t 10m
  hold=$holder
  run -0 unshare -pfmu --mount-proc "$RLOCK" status contained
  [[ $output == *"pid $hold"* && $output != *died* ]] || fail "$output"
  # The copy of a host has its name, but was booted for itself.
  echo 00000000-0000-0000-0000-000000000000 >boot_id
  other='mount --bind boot_id /proc/sys/kernel/random/boot_id && exec'
  kill -KILL "$hold"
  eventually gone "$hold"
  run -0 unshare -m sh -c "$other \"\$RLOCK\" status contained"
  [[ $output != *died* ]] || fail "$output"
  run -0 unshare -u sh -c 'hostname another && exec "$RLOCK" status contained'
  [[ $output != *died* ]] || fail "$output"
  run -0 rlock status contained
  [[ $output == *died* ]] || fail "$output"
}

@test "watch shows that a holder has died, and when the lock is free" {
  own
  watch_scenes.py dead_holder 3>&- 4>&-
}

@test "a lock of acquire is not called dead when the process of its steps has exited" {
  own
  owner=$(rlock acquire steps --ttl 10m)
  run -0 rlock status steps
  [[ $output != *died* && $output == *"only rlock renew extends it"* ]] || fail "$output"
  rlock release steps --owner "$owner"
}
