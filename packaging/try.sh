#!/bin/bash
# Builds rlock on a bare Debian 12 or 13 and demonstrates it on a private server. Needs root or sudo only to install missing
# packages. Leaves these packages and build/try behind, and no process.
set -euo pipefail

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"

build=$top/build/try
scratch=$(mktemp -d)

# Prints each tenth of the build on descriptor 3, because it takes minutes. The output of the build is written to the log.
compile() {
  tenths=0
  cmake -S "$top" -B "$build" -DCMAKE_BUILD_TYPE=Release -DRLOCK_TESTS=OFF -DCMAKE_UNITY_BUILD=ON &&
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

# ---- the demonstration ----

title() { printf '\n=== %s\n' "$*"; }

# show CODE COMMAND: prints the command, runs it, and fails unless it exits with CODE.
show() {
  printf '\n$ %s\n' "$2"
  code=0
  eval "$2" || code=$?
  say "(exit code $code)"
  [ "$code" -eq "$1" ] || { say "expected $1" >&2; exit 1; }
}

# Writes the command of a job: it reports that it is running, then waits for a line in the pipe `go`.
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

# Prints the report of the running job. Fails if no job starts within a minute.
job_runs() {
  read -r -t 60 line <>"$scratch/running" || { say "try.sh: no job has started within a minute" >&2; exit 1; }
  say "$line"
}

# Starts three runs at the same time. When it returns, one of them holds the lock and the others have skipped.
race() {
  declare -A hosts
  title "Three hosts run the same cron line at the same time: rlock run -n shop/nightly -- job HOST"
  for host in alpha beta gamma; do
    rlock run -n shop/nightly -- "$scratch/job" "$host" &
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
  title "A fourth host waits in the queue and gets the lock as soon as it is free"
  rlock run shop/nightly -- "$scratch/job" delta &
  until rlock queue --json shop/nightly | grep -q '"position": *1'; do
    kill -0 $! || { say "try.sh: the run that should wait has exited" >&2; exit 1; }
    sleep 0.05
  done
  show 0 "rlock queue shop/nightly"
  say
  echo >"$scratch/go"
  job_runs
  echo >"$scratch/go"
  wait
}

exit_codes() {
  title "The exit code says what happened"
  show 7 "rlock run shop/nightly -- sh -c 'exit 7'"
  show 143 "rlock run shop/nightly -- sh -c 'kill -TERM \$\$'"
  show 127 "rlock run shop/nightly -- no-such-command"
  show 64 "rlock run -E 600 shop/nightly -- true"
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

# The demonstration has its own server, because that of plain local: may serve other runs of this user.
export RLOCK_URL=local:$scratch/state
say
say "export RLOCK_URL=$RLOCK_URL"
write_job
race
title "What operators and scripts see meanwhile"
show 0 "rlock status shop/nightly"
show 0 "rlock status --json shop/nightly"
show 75 "rlock run -n shop/nightly -- echo never"
hand_over
exit_codes
title "It works. To continue with the first steps of README.md, paste these two lines"
say
say "    PATH=$build/src:$build/server:\$PATH"
say "    export RLOCK_URL=local:"
