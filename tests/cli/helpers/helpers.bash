# shellcheck shell=bash
# Loaded by every test file. A file has one private redis-server on a unix socket. Whatever a test
# starts in the background is ended by pid when the test is over.
bats_require_minimum_version 1.5.0

PATH=$(dirname "${RLOCK:?set it to the rlock under test}"):$PATH
unset RLOCK_USER RLOCK_PASSWORD REDISCLI_AUTH RLOCK_PREFIX
# The tests of configuration files name their own.
export RLOCK_CONFIG=/dev/null

# rlock ARG…: the program; what it prints with --json is kept, and validated when the file of tests is over.
rlock() {
  case " $* " in
    " run "*) command rlock "$@" ;;
    *" --json "*)
      command rlock "$@" | tee "$(mktemp "$BATS_RUN_TMPDIR/json.XXXXXX")"
      return "${PIPESTATUS[0]}"
      ;;
    *) command rlock "$@" ;;
  esac
}

# ---- servers ----

# serve FOLDER ARG…: a redis-server in FOLDER, on FOLDER/s alone. It may still be loading its data.
serve() {
  local folder=$1
  shift
  mkdir -p "$folder"
  redis-server --port 0 --unixsocket "$folder/s" --dir "$folder" --save '' --daemonize yes \
    --pidfile "$folder/pid" --logfile "$folder/log" "$@" >/dev/null 3>&- 4>&-
  eventually test -S "$folder/s"
  eventually test -s "$folder/pid"
}

# It has nothing to save, so that KILL does no harm.
end_server() {
  local pid
  pid=$(cat "$1/pid")
  kill -KILL "$pid" 2>/dev/null || return 0
  eventually gone "$pid"
}

# own ARG…: a server of the test's own takes the place of the file's, until the test is over.
own() {
  own_server=$(mktemp -d)
  serve "$own_server" "$@"
  export SERVER=$own_server RLOCK_URL="unix://$own_server/s"
}

# restart ARG…: the test's own server is killed, and started again with what it had stored.
restart() {
  end_server "$own_server"
  rm -f "$own_server/s" "$own_server/pid"
  serve "$own_server" "$@"
}

# quorum N ARG…: N servers of the test's own take the place of the file's. They may vote at once: what they acknowledge
# is on disk, unless ARGs say otherwise.
quorum() {
  local count=$1 i
  shift
  quorum_folder=$(mktemp -d)
  RLOCK_URL=
  for ((i = 1; i <= count; i++)); do
    serve "$quorum_folder/$i" --appendonly yes --appendfsync always "$@"
    RLOCK_URL+="unix://$quorum_folder/$i/s "
  done
  export RLOCK_URL
}

# signal_server SIGNAL N…: to servers of the quorum.
signal_server() {
  local signal=$1 i pid
  shift
  for i in "$@"; do
    pid=$(cat "$quorum_folder/$i/pid")
    [ "$pid" -gt 1 ] && kill "-$signal" "$pid"
  done
}

# at_server N COMMAND…: with redis, keys and the like at the Nth server of the quorum.
at_server() {
  local SERVER=$quorum_folder/$1
  shift
  "$@"
}

redis() { redis-cli -s "$SERVER/s" "$@"; }

# reset_server: nothing stored, nothing configured by an earlier test.
reset_server() { redis flushall >/dev/null; }

# keys NAME: the keys of a lock.
keys() { redis --raw keys "rlock:{$1}:*"; }

# Only the memory of the lock and of its runs may stay behind, a run that died included, and what expires within a minute.
nothing_left() {
  local key ttl died
  died=$(redis exists "rlock:{$1}:holders")
  for key in $(keys "$1"); do
    ttl=$(redis pttl "$key")
    [ "$ttl" -ne -2 ] || continue  # its time was over just now
    [ "$ttl" -gt 0 ] || fail "$key lives for ever"
    case $key in
      *:meta | *:history | *:once) ;;
      *:holders | *:limits | *:who | *:queue | *:alive | *:released) [ "$died" = 1 ] || [ "$ttl" -le 60000 ] || fail "$key lives for $ttl ms" ;;
      *) [ "$ttl" -le 60000 ] || fail "$key lives for $ttl ms" ;;
    esac
  done
  [ "$(waiters "$1")" -eq 0 ] || fail "somebody is left in the queue of $1"
  run -1 rlock status -q "$1"
}

# ---- files ----

setup_file() {
  SERVER=$(mktemp -d)
  export SERVER RLOCK_URL="unix://$SERVER/s"
  serve "$SERVER"
}

teardown_file() {
  end_server "$SERVER"
  rm -rf "$SERVER"
}

setup() { begin; }
teardown() { end_started; }

# begin: a test is in a folder of its own.
begin() {
  here=$BATS_TEST_TMPDIR
  started=()
  cd "$here" || return
}

# end_started: the processes and the servers of the test.
end_started() {
  local pid folder
  for pid in "${started[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  for folder in ${own_server:+"$own_server"} ${quorum_folder:+"$quorum_folder"/*}; do end_server "$folder"; done
  rm -rf ${own_server:+"$own_server"} ${quorum_folder:+"$quorum_folder"}
}

# ---- words of the tests ----

fail() {
  echo "$*" >&2
  return 1
}

# gone PID: dead, also if not reaped yet.
gone() {
  local state
  state=$(ps -o stat= -p "$1") || return 0
  [[ $state == Z* ]]
}

# eventually COMMAND…: until it succeeds, a minute at most: for a state whose change cannot be waited for.
eventually() {
  local end=$((SECONDS + 60))
  until "$@"; do
    ((SECONDS < end)) || fail "did not come true: $*" || return
    sleep 0.02
  done
}

# start COMMAND…: in the background, with the signals of a foreground command; $! is its pid.
start() {
  env --default-signal=INT,QUIT "$@" 3>&- 4>&- &
  started+=($!)
}

# ends_with CODE PID
ends_with() {
  local code=0
  wait "$2" || code=$?
  [ "$code" -eq "$1" ] || fail "ended with $code, not $1"
}

# hold NAME [OPTION…]: $holder is a run that holds NAME until let_go NAME; its command's pid is $command.
hold() {
  local name=$1
  shift
  mkfifo "held.$name" "go.$name"
  start rlock run "$@" "$name" -- sh -c 'exec 9<>"$2"; echo $$ >"$1"; read -r _ <&9' sh "held.$name" "go.$name"
  holder=$!
  # shellcheck disable=SC2034 # read by the tests
  command=$(next_line "held.$name")
}

let_go() {
  echo 1<>"go.$1"
  ends_with 0 "$holder"
}

# line_up NAME: two runs wait for NAME.
line_up() {
  local i
  line=()
  for i in 1 2; do
    start rlock run "$1" -- sh -c 'echo "$0" >>order' "$i"
    line+=($!)
    eventually waiting "$i" "$1"
  done
}

# in_order: both have run, the first one first.
in_order() {
  ends_with 0 "${line[0]}"
  ends_with 0 "${line[1]}"
  [ "$(cat order)" = $'1\n2' ] || fail "$(cat order)"
}

# next_line FIFO: the line that its next writer writes. Open for both directions, so that a writer that never
# comes ends in a failure instead of a hang.
next_line() {
  local line
  read -r -t 60 line <>"$1" || fail "nobody wrote to $1" || return
  echo "$line"
}

waiters() { rlock queue --json "$1" | jq '.waiters | length'; }
waiting() { [ "$(waiters "$2")" -eq "$1" ]; }
held() { rlock status -q "$1"; }

needs_terminal() {
  python3 -c 'import pty; pty.openpty()' 2>/dev/null || skip "no pseudo-terminal can be opened here"
}

# says TEXT…: stderr of the last `run --separate-stderr` is one line of rlock's that has each TEXT.
says() {
  local text
  [ "${#stderr_lines[@]}" -eq 1 ] || fail "not one line: $stderr" || return
  [[ $stderr == "rlock: "* ]] || fail "not from rlock: $stderr" || return
  for text in "$@"; do
    [[ $stderr == *"$text"* ]] || fail "\"$text\" is not in: $stderr" || return
  done
}

silent() {
  [ -z "$output$stderr" ] || fail "it said: $output$stderr"
}

# private_mounts SCRIPT ARG…: as root among mounts that nobody else sees.
private_mounts() {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  unshare -m true 2>/dev/null || skip "this machine refuses new mount namespaces"
  unshare -m bash -euc "$@" 3>&- 4>&-
}
