#!/usr/bin/env bats
# COMING FROM FLOCK in rlock-recipes(7): each command there, beside flock itself.
load ../cli/helpers/helpers
load example

page=$BATS_TEST_DIRNAME/../../man/rlock-recipes.7

# programs: the commands of the page, and what holds them.
programs() {
  program bin/backup.sh 'echo backed up'
  program bin/daemon.sh "sh -c 'exec 9<>daemon.go; echo >daemon.runs; read -r _ <&9' >/dev/null 2>&1 & read -r _ <daemon.runs; echo >>daemons"
  mkfifo daemon.go daemon.runs flock.go
}

# commands PROGRAM: those of the section.
commands() {
  sed -n '/^\.SH "COMING FROM FLOCK"/,/^\.SH "[^C]/p' "$page" | sed -n "s/^    \($1 .*\)/\1/p" | sed "s/\\\\-/-/g; s/\\\\(aq/'/g"
}

# each_pair: calls `compare FLOCK RLOCK` for each pair.
each_pair() {
  local flock rlock count=0
  while IFS=$'\t' read -r flock rlock; do
    compare "$flock" "$rlock"
    count=$((count + 1))
  done < <(paste <(commands flock) <(commands rlock | head -n "$(commands flock | wc -l)"))
  [ "$count" -ge 6 ] || fail "only $count pairs"
}

@test "if the lock is free, each pair prints the same and succeeds" {
  programs
  compare() {
    run -0 sh -c "$1"
    local of_flock=$output
    run -0 --separate-stderr sh -c "$2"
    [ "$output" = "$of_flock" ] || fail "$2: $output; $1: $of_flock"
  }
  each_pair
}

started_daemons() { [ "$(wc -l <daemons)" -eq "$1" ]; }

@test "flock and rlock --wait-descendants hold the lock until a daemon of the command exits" {
  programs
  flock job.lock daemon.sh
  run -1 flock -n job.lock true
  echo 1<>daemon.go
  eventually flock -n job.lock true
  rlock run shop/job -- daemon.sh
  run -0 rlock run -n shop/job -- true
  start sh -c "exec $(commands rlock | grep -e --wait-descendants)"
  local held=$!
  eventually started_daemons 3
  run -75 rlock run -n shop/job -- true
  # The daemon of before takes one of them.
  printf '\n\n' 1<>daemon.go
  ends_with 0 "$held"
}
