#!/usr/bin/env bats
# shellcheck disable=SC2034 # set and read by the helpers; each test is a function of its own
# rediss+sentinel:// and rediss+cluster://: every port is a TLS port. Nodes and sentinels announce addresses, so the
# certificates are for those.
load topology
load ../cli/helpers/authority

setup_file() {
  command -v openssl >/dev/null || skip "openssl is not installed"
  PKI=$(mktemp -d)
  authority "$PKI"
  issue "$PKI" server "subjectAltName=DNS:localhost,IP:127.0.0.1"
  issue "$PKI" named "subjectAltName=DNS:localhost"
  export PKI RLOCK_CACERT=$PKI/ca.crt
}
teardown_file() { rm -rf "$PKI"; }

cli_options=(--tls --cacert "${PKI:-}/ca.crt")

# As in topology, but for the port.
node() {
  local name=$1 port=$2
  shift 2
  serve_tls "$fleet/$name" --tls-port "$port" --bind 127.0.0.1 --repl-diskless-sync-delay 0 --tls-replication yes --tls-cluster yes "$@"
  echo "$port" >"$fleet/$name/port"
}

present() { at "$1" config set tls-cert-file "$PKI/$2.crt" tls-key-file "$PKI/$2.key"; }

@test "rediss+sentinel://: a run is renewed over a failover; 77 if the certificate of a sentinel or the master is wrong" {
  group
  export RLOCK_URL=rediss${RLOCK_URL#redis}
  run -7 --separate-stderr rlock run job -- sh -c 'exit 7'
  silent
  hold job -t 90
  replicated r0
  fail_over
  let_go job
  node=$(master)
  present "$node" named
  refuses 77 "not for 127.0.0.1" -- rlock run job -- touch started
  present "$node" server
  RLOCK_CACERT='' refuses 77 "no trusted CA signed it" -- rlock run job -- touch started
}

@test "rediss+cluster://: every master holds locks, redirects use TLS; 77 if the certificate of a node is wrong" {
  cluster 0
  export RLOCK_URL=rediss${RLOCK_URL#redis}
  for name in one two three four five; do
    run -7 --separate-stderr rlock run "$name" -- sh -c 'exit 7'
    silent
  done
  [ "$(rlock status --all | wc -l)" -eq 6 ]
  for name in c0 c1 c2; do present "$name" named; done
  refuses 77 "not for 127.0.0.1" -- rlock run one -- touch started
}

# in_namespace: rlock has a file of hosts of its own, $here/hosts.
in_namespace() {
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  unshare -m true 2>/dev/null || skip "this machine refuses new mount namespaces"
  start unshare -m --propagation private sh -c 'mount --bind hosts /etc/hosts && echo $$ >ready; exec sleep 1000'
  eventually test -s ready
  mkdir bin
  printf '#!/bin/sh\nexec nsenter -t %s -m --wd=. %s "$@"\n' "$(cat ready)" "$RLOCK" >bin/rlock
  chmod +x bin/rlock
  PATH=$here/bin:$PATH
}

# at_both COMMAND…: at both servers, with the password of today.
at_both() {
  local name
  for name in one two; do at "$name" -a "$(cat password)" "$@" >/dev/null; done
}

# goes_on: after the connections have ended, the holder renews twice.
goes_on() {
  at_both client kill type normal
  for _ in 1 2; do one_more renewed; done
}

@test "a run whose certificates, password, name of the server and master change continues, and a waiter keeps its position" {
  local plain secure
  echo '127.0.0.1 db.test' >hosts
  in_namespace
  authority other
  issue other db "subjectAltName=DNS:db.test"
  issue "$PKI" db "subjectAltName=DNS:db.test"
  cp "$PKI/ca.crt" ca
  echo old >password
  read -r plain secure < <(free_ports 2)
  serve_tls "$fleet/one" --bind 127.0.0.1 --port "$plain" --tls-port "$secure" --requirepass old
  serve_tls "$fleet/two" --bind 127.0.0.2 --tls-port "$secure" --requirepass old --masterauth old --replicaof 127.0.0.1 "$plain"
  at_both config set tls-cert-file "$PKI/db.crt" tls-key-file "$PKI/db.key"
  export RLOCK_URL=rediss://db.test:$secure RLOCK_CACERT=$here/ca RLOCK_PASSWORD_FILE=$here/password
  hold lock -t 12 --event-log log
  line_up lock

  at_both config set tls-cert-file "$here/other/db.crt" tls-key-file "$here/other/db.key" tls-ca-cert-file "$here/other/ca.crt"
  cp other/ca.crt ca.new
  mv ca.new ca
  goes_on

  at_both config set requirepass new masterauth new
  echo new >password
  goes_on

  eventually replicas_follow
  echo '127.0.0.2 db.test' >hosts
  crash one
  at two -a new replicaof no one
  for _ in 1 2; do one_more renewed; done
  let_go lock
  in_order
}
replicas_follow() { at one -a new info replication | grep -q 'state=online'; }
