#!/usr/bin/env bats
# Why no lock is acquired, and with which code rlock exits: 69 if a later try may help, 77 if access is denied, 78 if somebody has to
# edit something, 65 for a key of another program, 64 for what was typed.
load helpers/helpers

# Each row: the code, how the server is found, what is wrong. `port` and `socket` lead to a server that answers the commands behind
# them in this way, all others as usual.
table() {
  cat <<'ROWS'
69 socket EVALSHA=-OOM command not allowed when used memory > 'maxmemory'.
69 socket EVALSHA=-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.
69 socket EVALSHA=-LOADING Redis is loading the dataset in memory
69 socket EVALSHA=-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
69 socket EVALSHA=-NOREPLICAS Not enough good replicas to write.
69 socket EVALSHA=-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
69 socket EVALSHA=-TRYAGAIN Multiple keys request during rehashing of slot
69 socket EVALSHA=-CLUSTERDOWN Hash slot not served
69 socket EVALSHA=-ERR max number of clients reached
69 socket EVALSHA=-ERR something else
69 socket EVALSHA=close
69 socket EVALSHA=+OK
69 socket CLIENT SETNAME=-ERR max number of clients reached
69 user AUTH=-LOADING Redis is loading the dataset in memory
69 user AUTH=close
69 database SELECT=-LOADING Redis is loading the dataset in memory
78 sentinel SENTINEL=*-1
69 sentinel SENTINEL=-LOADING Redis is loading the dataset in memory
69 sentinel SENTINEL=close
69 sentinel SENTINEL=*2 9:127.0.0.1 1:1
69 cluster EVALSHA=-CLUSTERDOWN Hash slot not served
69 cluster EVALSHA=-TRYAGAIN Multiple keys request during rehashing of slot
69 cluster EVALSHA=close
69 url unix:///nonexistent/socket
69 url redis://127.0.0.1:1
69 url rediss://127.0.0.1:1
69 url redis+sentinel://127.0.0.1:1/master
69 url redis+cluster://127.0.0.1:1
69 url redis+cluster://127.0.0.1:1/0
69 url redis://127.0.0.1:1 redis://127.0.0.1:2 redis://127.0.0.1:3
77 socket EVALSHA=-NOPERM this user has no permissions to run the 'evalsha' command
77 socket EVALSHA=-NOPERM this user has no permissions to access one of the keys used as arguments
77 socket EVALSHA=-ERR The user executing the script can't run this command or subcommand script
77 socket EVALSHA=-NOAUTH Authentication required.
77 socket CLIENT SETNAME=-NOAUTH Authentication required.
77 socket CLIENT SETNAME=-DENIED Redis is running in protected mode
77 user AUTH=-WRONGPASS invalid username-password pair or user is disabled.
77 user AUTH=-ERR AUTH <password> called without any password configured for the default user.
77 database SELECT=-NOPERM this user has no permissions to run the 'select' command
77 sentinel SENTINEL=-NOAUTH Authentication required.
77 sentinel SENTINEL=-NOPERM this user has no permissions to run the 'sentinel|get-master-addr-by-name' command
77 cluster EVALSHA=-NOPERM this user has no permissions to run the 'evalsha' command
77 cluster CLIENT SETNAME=-NOAUTH Authentication required.
77 certificate
78 socket EVALSHA=-READONLY You can't write against a read only replica.
78 socket EVALSHA=-MOVED 3999 127.0.0.1:6381
78 socket EVALSHA=-ERR unknown command 'EVALSHA', with args beginning with: 'a'
78 socket EVALSHA=-ERR Could not find scripting engine 'lua'
78 socket EVALSHA=-ERR unknown command 'HGETALL' command called from script
78 socket EVALSHA=-FORM 9
78 socket EVALSHA=-UNKNOWN !calendar 1.4
78 database SELECT=-ERR DB index is out of range
78 database SELECT=-ERR SELECT is not allowed in cluster mode
78 database SELECT=-ERR unknown command 'SELECT', with args beginning with: '9'
78 sentinel SENTINEL=-ERR unknown command 'SENTINEL', with args beginning with: 'GET-MASTER-ADDR-BY-NAME'
78 cluster EVALSHA=-READONLY You can't write against a read only replica.
78 cluster EVALSHA=-ERR unknown command 'EVALSHA', with args beginning with: 'a'
78 web redis://
78 web rediss://
78 page redis://
78 url unix:///a/path/of/more/than/a/hundred/bytes/which/no/socket/may/have/since/the/kernel/has/no/room/for/it/in/an/address/of/its/own
78 none
65 socket EVALSHA=-WRONGTYPE Operation against a key holding the wrong kind of value
64 url redis+cluster://127.0.0.1:1/1
64 url http://127.0.0.1
64 url redis://127.0.0.1:1/x
64 url redis://127.0.0.1:1 redis://127.0.0.1:2
64 url redis+sentinel://127.0.0.1:1
ROWS
}

# server PLACE RULE: its URL.
server() {
  local place=$1 rule=${2-}
  case $place in
    socket | user | database)
      start picky_server.py "$here/p" "$SERVER/s" log "$rule"
      eventually test -S p
      case $place in
        socket) RLOCK_URL=unix://$here/p ;;
        user) RLOCK_URL=unix://user:pw@$here/p ;;
        database) RLOCK_URL="unix://$here/p?db=9" ;;
      esac
      ;;
    sentinel | cluster)
      port=$(free_ports 1)
      start picky_server.py "$port" "$SERVER/s" log "$rule"
      eventually listens "$port"
      RLOCK_URL=redis+$place://127.0.0.1:$port
      [ "$place" = cluster ] || RLOCK_URL+=/the-master
      ;;
    web | page)  # with a head, or as HTTP/0.9
      port=$(free_ports 1)
      start /usr/bin/python3 -c 'import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        peer = server.accept()[0]
        peer.recv(1000)
        peer.sendall({"web": b"HTTP/1.1 400 Bad Request\r\n\r\n", "page": b"<!DOCTYPE HTML>\n"}[sys.argv[2]])
        peer.close()' "$port" "$place"
      eventually listens "$port"
      RLOCK_URL=${rule}127.0.0.1:$port
      ;;
    certificate)
      openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out crt -subj /CN=elsewhere -days 1 2>/dev/null
      port=$(free_ports 1)
      start openssl s_server -accept "127.0.0.1:$port" -cert crt -key key -quiet >/dev/null 2>&1 </dev/zero
      eventually listens "$port"
      RLOCK_URL=rediss://127.0.0.1:$port
      ;;
    url) RLOCK_URL=$rule ;;
    none) RLOCK_URL= ;;
  esac
  export RLOCK_URL
}

listens() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

@test "each cause has its code" {
  local code place rule limit wrong=()
  while read -r code place rule; do
    limit=300ms
    [ "$code" -eq 69 ] || limit=5s  # a busy machine may need that long
    end_started
    rm -f p
    # A nil, or an address, in the words of the protocol.
    [ "$rule" != "SENTINEL=*2 9:127.0.0.1 1:1" ] || rule=$'SENTINEL=*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1'
    server "$place" "$rule"
    run --separate-stderr timeout 30 "$RLOCK" run -q -n --connect-timeout "$limit" lock -- touch started
    [ "$status" -eq "$code" ] && [ "${#stderr_lines[@]}" -eq 1 ] || wrong+=("$status, not $code: $place $rule: $stderr")
    [ ! -e started ] || fail "started: $place $rule"
  done < <(table)
  [ "${#wrong[@]}" -eq 0 ] || fail "$(printf '%s\n' "${wrong[@]}")"
}

@test "a Sentinel URL of a plain server: the message and doctor say which URL to use, even if the server requires a password" {
  port=$(open_port "$SERVER")
  export RLOCK_URL=redis+sentinel://:pw@127.0.0.1:$port/the-master
  run -78 --separate-stderr rlock run -n lock -- touch started
  says "127.0.0.1:$port is no Sentinel: use redis://127.0.0.1:$port"
  redis config set requirepass pw >/dev/null
  run -77 --separate-stderr rlock run -n lock -- touch started
  says "(NOAUTH)" "; if 127.0.0.1:$port is no Sentinel, but the server itself: use redis://127.0.0.1:$port"
  run -1 rlock doctor
  [[ $output == *"if 127.0.0.1:$port is no Sentinel, but the server itself: use redis://127.0.0.1:$port"* ]] || fail "$output"
  redis -a pw --no-auth-warning config set requirepass '' >/dev/null
}

@test "a Cluster URL of a plain server: commands that list locks exit with 78 and say which URL to use" {
  port=$(open_port "$SERVER")
  export RLOCK_URL=redis+cluster://127.0.0.1:$port
  for command in status metrics history queue; do
    run -78 --separate-stderr rlock "$command"
    says "127.0.0.1:$port: the server is no node of a cluster: use redis://127.0.0.1:$port"
  done
  run -1 rlock doctor
  [[ $output == *"no node of a cluster: use redis://127.0.0.1:$port"* ]] || fail "$output"
}

@test "a socket that this user may not use is denied: 77" {
  [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null || skip "needs root"
  cp "$RLOCK" rlock
  chmod 755 . "$SERVER"
  chmod 700 "$SERVER/s"
  run --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups ./rlock run -n lock -- true
  [ "$status" -eq 77 ] || fail "$status $stderr"
  [[ $stderr == *"Permission denied"* ]] || fail "$stderr"
}
