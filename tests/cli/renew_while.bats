#!/usr/bin/env bats
# acquire --renew-while: a lock that is renewed while a process lives.
load helpers/helpers

# steps NAME [OPTION…]: $owner holds NAME for the process $job.
steps() {
  job
  owner=$(rlock acquire "$@" --renew-while "$job")
}

# await_steps NAME: $waiter has joined the queue of NAME for the process $job.
await_steps() {
  job
  joins "$1" rlock acquire "$1" --renew-while "$job"
}

@test "--renew-while keeps the lock while the process lives, and releases it afterwards" {
  steps while -t 1h
  outlasts while
  run -75 rlock run -n while -- true
  run -0 rlock status -q while --owner "$owner"
  [ "$(about while pid)" = "$job" ]
  end_job
  eventually free while
  eventually no_renewer while
  nothing_left while
}

@test "--renew-while survives the shell that asked, holds up no pipe, and leaves no zombie" {
  job
  # The command substitution ends although the renewer lives on.
  owner=$(timeout 20 sh -c "rlock acquire outlived --renew-while $job -t 1h; :")
  renewer=$(renewers outlived)
  [ -n "$renewer" ]
  [ "$(readlink "/proc/$renewer/cwd")" = / ]
  [ "$(ps -o sid= -p "$renewer" | tr -d ' ')" != "$(ps -o sid= -p $$ | tr -d ' ')" ]
  [ "$(find "/proc/$renewer/fd" -lname "*pipe:*" -o -lname "$here/*" | wc -l)" -eq 0 ]
  [ "$(ps -o ppid= -p "$renewer" | tr -d ' ')" != $$ ]
  outlasts outlived
  run -0 rlock status -q outlived --owner "$owner"
  end_job
  eventually free outlived
  eventually no_renewer outlived
}

@test "--renew-while: release stops the renewer but not the process" {
  steps finished
  run -0 rlock release finished --owner "$owner"
  renew_now 1
  eventually no_renewer finished
  kill -0 "$job"
  run -0 rlock release finished --owner "$owner"
}

@test "release says that the lock was released before, as when the process of --renew-while was the wrong one" {
  steps wrong
  end_job
  eventually free wrong
  run -0 --separate-stderr rlock release wrong --owner "$owner"
  says '"wrong" at ' " was released before this command" "the process of --renew-while had exited" '$PPID'
  [ -z "$output" ]
  quietly rlock release -q wrong --owner "$owner"
  hold wrong
  run -0 --separate-stderr rlock release wrong --owner "$owner"
  says "; it is now held by "
  let_go wrong
  owner=$(rlock acquire right --ttl 1m)
  quietly rlock release right --owner "$owner"
}

@test "--renew-while: a broken lock stays held while the process lives, because nothing stops its steps" {
  steps forced -t 30 2>err
  queue_up forced -w 60 -- touch served
  run -0 rlock force-unlock forced --yes --reason "stuck"
  [[ $output == *"rlock cannot stop its steps; the next holder starts when process $job exits, or in "* ]] || fail "$output"
  eventually grep -q '^rlock: "forced" at .*broken by .*: stuck; rlock does not stop the steps of process .*when that process exits' err
  shows 0 "stays held until its process exits or its lease expires" -- rlock status forced
  kill -0 "$job"
  waiting 1 forced
  [ ! -e served ]
  end_job
  ends_with 0 "${started[1]}"
  [ -e served ]
  eventually no_renewer forced
  [ "$(wc -l <err)" -eq 1 ]
  refuses 76 forced stuck -- rlock release forced --owner "$owner"
}

@test "--renew-while: a broken lock is free when its lease expires, although the process lives" {
  steps overdue -t 3
  queue_up overdue -w 60
  run -0 rlock force-unlock overdue --yes
  ends_with 0 "${started[1]}"
  kill -0 "$job"
  eventually no_renewer overdue
}

@test "--renew-while: force-unlock --now frees the lock immediately, and the steps are notified" {
  # Through a pipe whose reader is there.
  mkfifo pipe
  start cat pipe >err
  steps now -t 30 2>pipe
  shows 0 "freed immediately; rlock cannot stop its steps, which may overlap with the next holder" -- rlock force-unlock now --now --yes
  run -0 rlock run -n now -- true
  eventually grep -q "rlock does not stop the steps of process $job: another holder may have the lock now" err
  eventually no_renewer now
  kill -0 "$job"
}

@test "--renew-while: a lock that is lost is reported on the stderr of the process, after what it wrote" {
  own
  start sh -c 'echo step >&2; exec sleep 1000' 2>err
  job=$!
  eventually test -s err
  rlock acquire taken --renew-while "$job" >owner
  redis flushall >/dev/null
  hold taken
  renew_now 2
  eventually grep -q "\"taken\" at .* is no longer held: the server lost its data; then it was taken by .*; the steps of process $job run without the lock" err
  [ "$(head -1 err)" = step ]
  eventually no_renewer taken
  let_go taken
}

@test "--renew-while: the report of a lost lock and the later lines of the process share a file that was opened with >" {
  mkfifo go
  start sh -c 'rlock acquire shared --renew-while $$ -t 30 >owner; read -r _ <go; echo step >&2' 2>err
  job=$!
  eventually test -s owner
  run -0 rlock force-unlock shared --now --yes
  eventually grep -q 'another holder may have the lock now' err
  echo >go
  wait "$job"
  [[ $(head -1 err) == 'rlock: "shared" at '* && $(tail -1 err) == step ]] || fail "$(cat err)"
}

@test "--renew-while: nothing is written through a descriptor of another user's process" {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  start setpriv --reuid 65534 --clear-groups sleep 1000 2>err
  job=$!
  of_nobody() { [ "$(stat -c %u "/proc/$job")" -eq 65534 ]; }
  eventually of_nobody
  rlock acquire strange --renew-while "$job" -t 30 >owner
  run -0 rlock force-unlock strange --now --yes
  eventually no_renewer strange
  [ ! -s err ] || fail "$(cat err)"
}

# steps_of_one_shell NAME OPTION…: acquires in a shell that ends at once, below one that goes on; err is their stderr.
steps_of_one_shell() {
  start sh -c 'sh -c "rlock acquire \"\$@\" --renew-while \$\$ >owner; :" sh "$@"; exec sleep 1000' sh "$@" 2>err
}

@test "--renew-while: a process that exits immediately is an error, even with -q" {
  for options in "" -q; do
    # shellcheck disable=SC2086 # none, or one
    steps_of_one_shell early $options
    eventually grep -q '^rlock: "early" at .*: rlock released the lock, because process .* exited .* after.*\$PPID' err
    eventually free early
  done
}

@test "--renew-while: a stderr on a disk that hangs delays no release" {
  mkfifo go
  start strace -f -qq -o /dev/null -P "$here/err" -e trace=write -e inject=write:delay_enter=100s \
    sh -c 'sh -c "rlock acquire hung --renew-while \$\$ >owner; :"; read -r _ <go' 2>err
  local tracer=$!
  eventually test -s owner
  eventually free hung
  echo >go
  ends_by KILL "$tracer"
}

@test "--renew-while: a process that exits after its work is no error" {
  # Its parent lives, and the lease that it began with is not over.
  start sh -c 'sh -c "rlock acquire worked --renew-while \$\$ -t 6 >owner; read -r _ <go; rm owner"; exec sleep 1000' 2>err
  mkfifo go
  eventually test -s owner
  renewals() { [ "$(calls evalsha)" -gt "$before" ]; }
  before=$(($(calls evalsha) + 1))
  eventually renewals  # the second one, after four seconds
  echo >go
  eventually no_renewer worked
  [ ! -e owner ]
  [ ! -s err ] || fail "$(cat err)"
}

@test "--renew-while: a lock that was released before the process ended causes no warning" {
  start sh -c 'sh -c "owner=\$(rlock acquire tidy --renew-while \$\$); rlock release tidy --owner \$owner; echo >finished"; exec sleep 1000' 2>err
  eventually test -s finished
  eventually no_renewer tidy
  [ ! -s err ] || fail "$(cat err)"
}

@test "--renew-while: a signal to the renewer, as to all processes of a job, leaves the lock to the steps" {
  steps termed -t 1h
  for signal in TERM INT HUP QUIT USR1; do kill -$signal "$(renewers termed)"; done
  outlasts termed
  run -0 rlock status -q termed --owner "$owner"
  end_job
  eventually free termed
  eventually no_renewer termed
}

@test "--renew-while: after a killed renewer the lock is free when its lease ends" {
  steps murdered -t 1h
  kill -KILL "$(renewers murdered)"
  held murdered
  moved 3600
  free murdered
}

@test "--renew-while: the renewer restores the lease on a server that restarts without its data" {
  own
  steps restored -t 20
  eventually blocked 1
  restart
  eventually rlock status -q restored --owner "$owner"
  end_job
  eventually free restored
}

@test "--renew-while: a server that stalls for less than the lease is no loss" {
  own
  steps stalled -t 1h
  moved 3000
  renewal_held_up
  redis client unpause >/dev/null
  eventually just_renewed stalled
  run -0 rlock status -q stalled --owner "$owner"
  end_job
  eventually no_renewer stalled
}

@test "--renew-while: a renewer that is cut off exits when the lease is over" {
  own
  steps severed -t 1 2>err
  kill -STOP "$(cat "$own_server/pid")"
  eventually no_renewer severed
  grep -q '"severed" at .* is no longer held: the lease could not be renewed' err || fail "$(cat err)"
  kill -0 "$job"
}

@test "--renew-while of an ended process exits with 64 and acquires nothing" {
  job
  end_job
  refuses 64 --renew-while -- rlock acquire nobody --renew-while="$job"
  free nobody
  no_renewer nobody
}

@test "--renew-while: a busy lock, or a signal in the wait, leaves no process behind" {
  job
  hold contested
  run -75 rlock acquire contested --renew-while "$job" -n
  eventually no_renewer contested
  joins contested rlock acquire contested --renew-while "$job"
  ends_by TERM "$waiter"
  eventually no_renewer contested
  let_go contested
}

@test "--renew-while: if the process ends during the wait, acquire leaves the queue and exits with 75" {
  hold awaited
  await_steps awaited 2>err
  end_job
  ends_with 75 "$waiter"
  grep -q "^rlock: \"awaited\": the lock was not acquired, because process $job (--renew-while) has exited" err || fail "$(cat err)"
  [ "$(waiters awaited)" -eq 0 ]
  eventually no_renewer awaited
  # While the lock is granted to it.
  left_alone() { [ "$(renewers awaited)" = "$waiter" ]; }
  await_steps awaited >owner
  kill -STOP "$waiter"
  end_job
  let_go awaited
  eventually left_alone
  kill -CONT "$waiter"
  ends_with 75 "$waiter"
  [ ! -s owner ]
  free awaited
}

@test "--renew-while: if the renewing process is killed during the wait, acquire exits with 71" {
  hold bereft
  await_steps bereft
  for pid in $(renewers bereft); do [ "$pid" = "$waiter" ] || kill -KILL "$pid"; done
  ends_with 71 "$waiter"
  [ "$(waiters bereft)" -eq 0 ]
  let_go bereft
}

@test "--renew-while: an acquire that is killed before it could print leaves no lock behind" {
  job
  # A full pipe holds up the print.
  mkfifo full
  exec 8<>full
  dd if=/dev/zero of=full bs=65536 count=1 conv=notrunc status=none
  start rlock acquire unprinted --renew-while "$job" -t 20 >full 8<&-
  local asker=$!
  eventually held unprinted
  kill -KILL "$asker"
  eventually free unprinted
  eventually no_renewer unprinted
  exec 8<&-
}

# Where the shell itself is what collects the owner, the lock would be released as soon as the caller has it.
@test "--renew-while: the substitution that reads the owner is refused, with what to write instead" {
  local shell script
  while read -r shell script; do
    refuses 64 '--renew-while' 'use $$' 'pid=$BASHPID' -- "$shell" -c "$script" || fail "$shell: $script" || return
    free fleeting
  done <<'END'
bash owner=$(rlock acquire fleeting --renew-while "$BASHPID")
bash owner=$(:; rlock acquire -q fleeting --renew-while "$BASHPID"; exit)
bash owner=$(:; rlock acquire fleeting --renew-while "$BASHPID" | cat; exit "${PIPESTATUS[0]}")
bash owner=$(:; rlock acquire fleeting --json --renew-while "$BASHPID" >&1; exit)
dash owner=$(read -r pid _ </proc/self/stat; rlock acquire fleeting --renew-while "$pid"; exit)
dash owner=$(exec sh -c 'exec rlock acquire fleeting --renew-while $$')
END
}

@test "--renew-while: a script whose stdout is a pipe keeps the lock, and so does a lasting subshell" {
  local shell text
  while read -r shell text; do
    printf '%s\n' "$text" 'rlock status -q honest && touch kept' >script
    if [[ $text == "("* ]]; then echo "$text" >script; fi
    run -0 bash -o pipefail -c "$shell script | cat" || fail "$shell: $text" || return
    [ -e kept ] || fail "$shell: $text: $output" || return
    rm kept
    eventually no_renewer honest
    free honest
  done <<'END'
bash rlock acquire honest --renew-while $$
dash rlock acquire honest --renew-while $$
bash owner=$(rlock acquire honest --renew-while $$)
dash owner=$(rlock acquire honest --renew-while $$)
bash (pid=$BASHPID; owner=$(rlock acquire honest --renew-while "$pid"); rlock status -q honest && touch kept)
bash (pid=$BASHPID; owner=$(rlock acquire honest --renew-while "$pid"); rlock status -q honest && touch kept) | cat
END
}
