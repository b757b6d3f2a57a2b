#!/usr/bin/env bats
# The portable rlock in a root folder of its own that has nothing else: no library, no /proc, no /etc.
load ../cli/helpers/helpers
load ../cli/helpers/authority

setup_file() {
  command -v openssl >/dev/null || skip "openssl is not installed"
  SERVER=$(mktemp -d)
  PKI=$SERVER/pki
  authority "$PKI"
  issue "$PKI" server "subjectAltName=DNS:localhost,DNS:db.test"
  serve "$SERVER" --tls-cert-file "$PKI/server.crt" --tls-key-file "$PKI/server.key" --tls-ca-cert-file "$PKI/ca.crt" \
    --tls-auth-clients no
  PLAIN=$(open_port "$SERVER")
  TLS=$(open_port "$SERVER" tls-port)
  export SERVER PKI PLAIN TLS RLOCK_URL=unix://$SERVER/s
}

setup() {
  begin
  unset SSL_CERT_FILE SSL_CERT_DIR
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  mkdir root
  cp "$RLOCK" root/rlock
}

# alone URL: a run in the root folder, whose command is the only other program there is. Its warning that there is no /proc is not in
# $stderr.
alone() {
  run --separate-stderr env -u RLOCK_CONFIG chroot root /rlock --url "$1" run -n lock -- /rlock --version
  [[ $stderr == 'rlock: warning: "lock": /proc is not mounted, '* ]] || fail "no warning: $stderr" || return
  stderr=$(tail -n +2 <<<"$stderr") stderr_lines=("${stderr_lines[@]:1}")
}

# works URL
works() {
  alone "$1"
  [ "$status" -eq 0 ] || fail "code $status: $stderr" || return
  [[ $output == "rlock "* && -z $stderr ]] || fail "$output$stderr" || return
  nothing_left lock
}

# refuses CODE URL TEXT…
refuses() {
  alone "$2"
  [ "$status" -eq "$1" ] || fail "code $status, not $1: $stderr" || return
  says "${@:3}"
}

@test "the portable program needs no other file" {
  run ldd "$RLOCK"
  [[ $output == *"statically linked"* ]] || fail "$output"
  works "redis://localhost:$PLAIN"
  works "redis://127.0.0.1:$PLAIN"
}

@test "names come from /etc/hosts, and no module of nsswitch.conf is loaded" {
  mkdir root/etc
  echo "127.0.0.1 db.test" >root/etc/hosts
  works "redis://db.test:$PLAIN"
  echo "hosts: mymachines mdns4_minimal [NOTFOUND=return] dns" >root/etc/nsswitch.conf
  echo "passwd: sss" >>root/etc/nsswitch.conf
  env -u RLOCK_CONFIG strace -f -o calls -e trace=open,openat chroot root /rlock --url "redis://db.test:$PLAIN" run -n lock -- /rlock --version
  sed -n '/nsswitch/,$p' calls >after
  grep -q /etc/hosts after
  run -1 grep -F .so after
}

@test "an unknown host name is an error that shows the name" {
  refuses 69 "redis://nobody.test:$PLAIN" nobody.test
}

@test "authorities come from the system's hashed folder, from the bundle of others, or from where SSL_CERT_… says" {
  refuses 77 "rediss://localhost:$TLS" "no trusted CA signed it"
  mkdir -p root/etc/ssl/certs
  cp "$PKI/ca.crt" root/etc/ssl/certs/own.pem
  openssl rehash root/etc/ssl/certs
  works "rediss://localhost:$TLS"
  mkdir -p root/etc/pki/tls/certs root/elsewhere
  mv root/etc/ssl/certs root/elsewhere/hashed
  refuses 77 "rediss://localhost:$TLS" "no trusted CA signed it"
  SSL_CERT_DIR=/elsewhere/hashed works "rediss://localhost:$TLS"
  cp "$PKI/ca.crt" root/etc/pki/tls/certs/ca-bundle.crt
  works "rediss://localhost:$TLS"
  mv root/etc/pki/tls/certs/ca-bundle.crt root/elsewhere
  refuses 77 "rediss://localhost:$TLS" "no trusted CA signed it"
  SSL_CERT_FILE=/elsewhere/ca-bundle.crt works "rediss://localhost:$TLS"
  SSL_CERT_FILE=/nowhere SSL_CERT_DIR=/nowhere refuses 77 "rediss://localhost:$TLS" "no trusted CA signed it"
}
