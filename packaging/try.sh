#!/bin/bash
# Builds rlock on a bare Debian 12 or 13 and shows its main job on a private server. Needs root or sudo
# only to install what is missing. Leaves those packages and build/try behind, and no process.
set -euo pipefail

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"

build=$top/build/try
scratch=$(mktemp -d)

# The build takes minutes: each tenth of it is shown on descriptor 3, while its output goes to the log.
compile() {
  tenths=0
  cmake -S "$top" -B "$build" -DCMAKE_BUILD_TYPE=Release -DRLOCK_TESTS=OFF &&
    cmake --build "$build" --parallel "$(nproc)" | while IFS= read -r line; do
      printf '%s\n' "$line"
      if [[ $line =~ ^\[\ *([0-9]+)%\] ]] && [ $((BASH_REMATCH[1] / 10)) -gt "$tenths" ]; then
        tenths=$((BASH_REMATCH[1] / 10))
        printf '%s0%% ' "$tenths" >&3
      fi
    done
}

finish() {
  for pid in $(jobs -p); do kill "$pid" || true; done
  wait
  redis-cli -s "$scratch/state/rlock.sock" shutdown nosave 2>/dev/null || true
  rm -rf "$scratch" "$log"
}

# ---- the show ----

title() { printf '\n=== %s\n' "$*"; }

# show CODE COMMAND: prints the command, runs it, and insists on its exit code.
show() {
  printf '\n$ %s\n' "$2"
  code=0
  eval "$2" || code=$?
  say "(exit code $code)"
  [ "$code" -eq "$1" ] || { say "expected $1" >&2; exit 1; }
}

# The command of a job: says that it runs, then waits to be let go.
write_job() {
  mkfifo "$scratch/running" "$scratch/go"
  cat >"$scratch/job" <<'JOB'
#!/bin/sh
here=$(dirname "$0")
exec 9<>"$here/go"
echo "$1 runs, with fencing token $RLOCK_TOKEN" >"$here/running"
read -r _ <&9
echo "$1 is done"
JOB
  chmod +x "$scratch/job"
}

# What the job that runs says. A job that never starts ends the show.
job_runs() {
  read -r -t 60 line <>"$scratch/running" || { say "try.sh: no job has started within a minute" >&2; exit 1; }
  say "$line"
}

# Three at once; one holds the lock when this returns, the others have skipped.
race() {
  declare -A hosts
  title "Three hosts come to one cron line at once: rlock run -n nightly -- job HOST"
  for host in alpha beta gamma; do
    rlock run -n nightly -- "$scratch/job" "$host" &
    hosts[$!]=$host
  done
  job_runs
  for _ in 1 2; do
    code=0
    wait -n -p pid || code=$?
    say "${hosts[$pid]} skipped (exit code $code)"
    [ "$code" -eq 75 ]
  done
}

hand_over() {
  title "A fourth one waits in line and gets the lock the moment it is free"
  rlock run nightly -- "$scratch/job" delta &
  until rlock queue --json nightly | grep -q '"position": *1'; do
    kill -0 $! || { say "try.sh: the run that should wait has ended" >&2; exit 1; }
    sleep 0.05
  done
  show 0 "rlock queue nightly"
  say
  echo >"$scratch/go"
  job_runs
  echo >"$scratch/go"
  wait
}

exit_codes() {
  title "The truth is in the exit code"
  show 7 "rlock run nightly -- sh -c 'exit 7'"
  show 143 "rlock run nightly -- sh -c 'kill -TERM \$\$'"
  show 127 "rlock run nightly -- no-such-command"
  show 64 "rlock run -E 600 nightly -- true"
}

trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

say "rlock: build and first run on $(. /etc/os-release && echo "$PRETTY_NAME")"
install_build_packages
install_packages redis-tools
provide_server "$build/server"
exec 3>&1
quietly "Building in $build, which takes a few minutes" compile
exec 3>&-
PATH=$build/src:$PATH

# A server of this show's own: that of plain local: may serve others of this user.
export RLOCK_URL=local:$scratch/state
say
say "export RLOCK_URL=$RLOCK_URL"
write_job
race
title "Meanwhile, for operators and scripts"
show 0 "rlock status nightly"
show 0 "rlock status --json nightly"
show 75 "rlock run -n nightly -- echo never"
hand_over
exit_codes
title "It works. To go on with the first steps of README.md, paste these two lines"
say
say "    PATH=$build/src:$build/server:\$PATH"
say "    export RLOCK_URL=local:"
