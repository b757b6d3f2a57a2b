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
