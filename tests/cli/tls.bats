#!/usr/bin/env bats
# rediss://: a real server, and certificates of the file's own authority.
load helpers/helpers
load helpers/authority

setup_file() {
  command -v openssl >/dev/null || skip "openssl is not installed"
  SERVER=$(mktemp -d)
  PKI=$SERVER/pki
  export SERVER PKI
  authority "$PKI"
  issue "$PKI" server "subjectAltName=DNS:localhost,IP:127.0.0.1"
  issue "$PKI" elsewhere "subjectAltName=DNS:elsewhere.example,IP:192.0.2.1"
  issue "$PKI" localhost "extendedKeyUsage=serverAuth"
  issue "$PKI" expired "subjectAltName=DNS:localhost,IP:127.0.0.1" -startdate 20200101000000Z -enddate 20200201000000Z
  issue "$PKI" client "extendedKeyUsage=clientAuth"
  self_signed "$PKI" alone "subjectAltName=DNS:localhost,IP:127.0.0.1"
  authority "$PKI/other"
  issue "$PKI/other" stranger "extendedKeyUsage=clientAuth"
  issue "$PKI/other" server "subjectAltName=DNS:localhost,IP:127.0.0.1"
  serve_tls "$SERVER"
  PORT=$(open_port "$SERVER" tls-port)
  export PORT RLOCK_URL=rediss://localhost:$PORT RLOCK_CACERT=$PKI/ca.crt
}

# A good certificate, and no client certificate wanted.
setup() {
  begin
  unset RLOCK_CERT RLOCK_KEY RLOCK_SNI RLOCK_INSECURE SSL_CERT_FILE SSL_CERT_DIR
  present server
  redis config set tls-auth-clients no tls-protocols "" tls-ca-cert-file "$PKI/ca.crt" >/dev/null
}

# hashed_folder: the authority in the folder `hashed`, as OpenSSL looks it up.
hashed_folder() {
  mkdir hashed
  cp "$PKI/ca.crt" hashed
  openssl rehash hashed
}

# present NAME: the server's certificate from now on.
present() {
  [ "$(redis config set tls-cert-file "$PKI/$1.crt" tls-key-file "$PKI/$1.key")" = OK ]
}

@test "doctor shows until when the certificate is valid, and warns in its last two weeks" {
  local soon later end
  soon=$(date -u -d '+13 days' +%F)
  later=$(date -u -d '+16 days' +%F)
  for end in "$soon" "$later"; do
    issue "$PKI" "$end" "subjectAltName=DNS:localhost,IP:127.0.0.1" -startdate 20200101000000Z -enddate "${end//-/}000000Z"
  done
  present "$later"
  [[ $(rlock doctor) == *"ok    tls"*"valid until $later"* ]] || fail "$(rlock doctor)"
  present "$soon"
  [[ $(rlock doctor) == *"warn  tls"*"expires on $soon, in "1[12]d* ]] || fail "$(rlock doctor)"
}

@test "doctor names the option that accepts a certificate for another name, or of another authority" {
  present elsewhere
  shows 1 "fail  tls" "elsewhere.example" "-> use --sni NAME" -- rlock doctor --connect-timeout 30s
  present alone
  shows 1 "fail  tls" "self-signed" "-> use --cacert FILE" -- rlock doctor --connect-timeout 30s
  present server
  RLOCK_CACERT=$PKI/other/ca.crt shows 1 "fail  tls" "no trusted CA" "-> use --cacert FILE" -- rlock doctor --connect-timeout 30s
}

@test "a TLS run by name and by address prints nothing and leaves nothing behind" {
  for host in localhost 127.0.0.1 LOCALHOST; do
    RLOCK_URL=rediss://$host:$PORT run -7 --separate-stderr rlock run lock -- sh -c 'exit 7'
    silent
    nothing_left lock
  done
}

@test "exit 77: the certificate is expired, self-signed, of an unknown authority, or for another name or address" {
  present expired
  refuses 77 '"lock"' "localhost:$PORT" "certificate has expired"
  present alone
  refuses 77 '"lock"' "localhost:$PORT" "self-signed"
  present elsewhere
  refuses 77 '"lock"' "localhost:$PORT" "not for localhost but for elsewhere.example, 192.0.2.1" --sni
  RLOCK_URL=rediss://127.0.0.1:$PORT refuses 77 "not for 127.0.0.1"
  present server
  RLOCK_URL=rediss://127.0.0.2:$PORT refuses 77 "not for 127.0.0.2"
  # The common name of one without alternative names.
  present localhost
  refuses 77 "not for localhost"
  present server
  RLOCK_CACERT=$PKI/other/ca.crt refuses 77 "no trusted CA signed it"
  RLOCK_CACERT='' refuses 77 "no trusted CA signed it"
}

@test "a plain port behind rediss:// and a TLS port behind redis:// are reported" {
  own
  PORT=$(open_port "$own_server")
  echo 'connect-timeout = "2s"' >file
  export RLOCK_CONFIG=$here/file
  # A server answers the handshake only if there is a newline in it, as nearly always where OpenSSL has large keys.
  RLOCK_URL=rediss://localhost:$PORT run --separate-stderr rlock run -n lock -- touch started
  [[ $status =~ ^(69|78)$ && ! -e started ]] || fail "$status: $stderr"
  says "localhost:$PORT" "use redis:// for"
  shows 1 "fail  tls" "use redis:// for" "check the URL's scheme" -- rlock doctor --url "rediss://localhost:$PORT"
  serve_tls "$here/tls"
  PORT=$(open_port "$here/tls" tls-port)
  RLOCK_URL=redis://localhost:$PORT refuses 69 "localhost:$PORT" "use rediss:// for a TLS port"
  end_server "$here/tls"
}

@test "exit 77: a required client certificate is missing, or of another authority" {
  redis config set tls-auth-clients yes >/dev/null
  refuses 77 "localhost:$PORT" "requires a client certificate"
  RLOCK_CERT=$PKI/other/stranger.crt RLOCK_KEY=$PKI/other/stranger.key \
    refuses 77 "rejected the client certificate" "unknown ca"
  quietly rlock run --cert "$PKI/client.crt" --key "$PKI/client.key" lock -- true
  cat "$PKI/client.crt" "$PKI/client.key" >both
  RLOCK_CERT=both run -0 rlock run lock -- true
  redis config set tls-protocols TLSv1.2 >/dev/null
  refuses 77 "client certificate"
  run -0 rlock run --cert "$PKI/client.crt" --key "$PKI/client.key" lock -- true
}

@test "--cacert and --sni work from the command line, the environment and a configuration file" {
  unset RLOCK_CACERT
  run -0 rlock run --cacert "$PKI/ca.crt" lock -- true
  cp "$PKI/ca.crt" own.crt
  printf 'cacert = "own.crt"\n' >file
  run -0 rlock run --config "$here/file" lock -- true
  present elsewhere
  export RLOCK_CACERT=$PKI/ca.crt
  refuses 77 "not for localhost"
  run -0 rlock run --sni elsewhere.example lock -- true
  RLOCK_SNI=192.0.2.1 run -0 rlock run lock -- true
  present server
  RLOCK_SNI=wrong.example refuses 77 "not for wrong.example"
}

@test "SSL_CERT_FILE and SSL_CERT_DIR stand for the system's authorities, not for those of an option" {
  hashed_folder
  SSL_CERT_FILE=$PKI/other/ca.crt run -0 rlock run lock -- true
  unset RLOCK_CACERT
  refuses 77 "no trusted CA signed it"
  SSL_CERT_FILE=$PKI/ca.crt run -0 rlock run lock -- true
  SSL_CERT_DIR=hashed run -0 rlock run lock -- true
  SSL_CERT_DIR=/nowhere::hashed run -0 rlock run lock -- true
  SSL_CERT_FILE=$here/missing SSL_CERT_DIR=hashed run -0 rlock run lock -- true
  echo broken >broken
  SSL_CERT_FILE=$here/broken refuses 78 "$here/broken" "no CA certificate"
}

@test "a CA folder named by a relative path serves the process that renews, which works elsewhere" {
  unset RLOCK_CACERT
  hashed_folder
  job
  export SSL_CERT_DIR=hashed
  rlock acquire relative --renew-while "$job" -t 6 >owner
  run -75 rlock run -w 7 relative -- true
  end_job
  run -0 rlock run -w 30 relative -- true
}

@test "a name that every certificate would fit is refused, not taken for no verification" {
  present elsewhere
  for name in . .. .example .elsewhere.example; do
    RLOCK_SNI=$name refuses 78 "--sni \"$name\""
    refuses 78 "--sni \"$name\"" -- rlock run --sni "$name" lock -- touch started
    RLOCK_URL=rediss://$name:$PORT refuses 64 "begin with a dot"
  done
}

@test "rlock sends the host name of the URL as SNI" {
  openssl s_server -accept 127.0.0.1:0 -cert "$PKI/elsewhere.crt" -key "$PKI/elsewhere.key" -servername localhost \
    -cert2 "$PKI/server.crt" -key2 "$PKI/server.key" >said 2>&1 3>&- 4>&- </dev/zero &
  started+=($!)
  eventually grep -q ^ACCEPT said
  port=$(sed -n 's/^ACCEPT .*://p' said)
  # Zeros are no Redis: but they come after the handshake.
  RLOCK_URL=rediss://localhost:$port refuses 69 "localhost:$port"
  RLOCK_URL=rediss://127.0.0.1:$port refuses 77 "not for 127.0.0.1"
}

@test "--insecure accepts any certificate and warns once, from each source of settings" {
  present expired
  run -0 --separate-stderr rlock run --insecure lock -- true
  says "warning" "not verified"
  run -0 --separate-stderr rlock run --insecure --cacert "$PKI/ca.crt" lock -- true
  says "--cacert has no effect"
  run -0 --separate-stderr rlock status -q lock --insecure || [ "$status" -eq 1 ]
  says "not verified"
  [[ $(rlock doctor --insecure 2>&1) == *"warn  tls"*"not verified"* ]]
  RLOCK_INSECURE=1 run -0 --separate-stderr rlock run -q lock -- true
  says "not verified"
  echo 'insecure = true' >file
  run -0 --separate-stderr rlock run --config "$here/file" lock -- true
  says "not verified"
  RLOCK_INSECURE=0 RLOCK_CONFIG=$here/file refuses 77 "expired"
  RLOCK_INSECURE=maybe refuses 64 "RLOCK_INSECURE"
  RLOCK_URL=unix://$SERVER/s quietly rlock run --insecure lock -- true
}

@test "exit 78: a certificate or key that cannot be used is named; nothing of its content is printed" {
  RLOCK_CACERT=none refuses 78 '"none"' "No such file"
  RLOCK_CACERT=$here refuses 78 "not a file"
  RLOCK_CACERT=/dev/zero refuses 78 "not a file"
  RLOCK_CACERT=$PKI/ca.key refuses 78 "no CA certificate"
  RLOCK_KEY=$PKI/client.key refuses 78 "--cert"
  export RLOCK_CERT=$PKI/client.crt
  refuses 78 "no private key"
  RLOCK_KEY=$PKI/server.key refuses 78 "does not match the certificate"
  openssl ec -in "$PKI/client.key" -aes128 -passout pass:canary -out locked 2>/dev/null
  RLOCK_KEY=locked refuses 78 '"locked"' "encrypted"
  echo canary >canary
  RLOCK_KEY=canary refuses 78 '"canary"'
  [[ ${stderr//\"canary\"/} != *canary* ]]
}

@test "a password in a URL is shown nowhere if TLS fails" {
  present expired
  RLOCK_URL=rediss://:canary@localhost:$PORT refuses 77 "expired"
  [[ $stderr != *canary* ]]
}

@test "exit 78: without OpenSSL the message names the package; a plain run does not load it" {
  ldd "$RLOCK" | grep -q libc.so || skip "OpenSSL is a part of this rlock"
  mkdir broken
  echo "no library" >broken/libssl.so.3
  LD_LIBRARY_PATH=broken refuses 78 "libssl3"
  run -1 grep -q libssl <(ldd "$RLOCK")
  RLOCK_URL=unix://$SERVER/s run -0 rlock run lock -- sh -c 'grep -c libssl /proc/$PPID/maps || true'
  [ "$output" = 0 ]
  run -0 rlock run lock -- sh -c 'grep -q libssl /proc/$PPID/maps'
}

@test "no socket reaches the command" {
  RLOCK_URL=unix://$SERVER/s run -0 rlock run lock -- ls -l /proc/self/fd
  local plain=${#lines[@]}
  run -0 rlock run lock -- ls -l /proc/self/fd
  [ "${#lines[@]}" -eq "$plain" ]
  [[ $output != *socket* ]]
}

@test "status, queue, hand-over and force-unlock work over TLS" {
  hold busy
  refuses 75 "is busy" -- rlock run -n busy -- true
  queue_up busy -- touch second
  shows 0 held -- rlock status busy
  hand_over busy
  [ -e second ]
  hold broken
  run -0 rlock force-unlock broken --yes --reason tls
  ends_with 76 "$holder"
  nothing_left broken
}

@test "a command and replies of more than one TLS record arrive whole" {
  reset_server
  redis eval 'for i = 1, 3000 do redis.call("HSET", string.format("rlock:{lock-%04d}:meta", i), "last", 1) end' 0
  [ "$(rlock status --all | wc -l)" -eq 3001 ]
  reset_server
  # The text of a script has more than the 16 KB of one record.
  redis script flush
  run -0 rlock run long -- true
}

# lease_end: when the lease of `renewed` ends.
lease_end() { redis zrange "rlock:{renewed}:holders" 0 0 withscores; }

# renewed_since END: the lease of `renewed` ends at another time than END.
renewed_since() { [ "$(lease_end)" != "$1" ]; }

@test "a lease is renewed over TLS although connections are killed" {
  hold renewed -t 8 -k 200ms
  for _ in {1..5}; do
    before=$(lease_end)
    redis client kill type normal >/dev/null
    eventually renewed_since "$before"
  done
  held renewed
  let_go renewed
  nothing_left renewed
}

@test "exit 76: the server has another certificate when the lease is renewed over a new connection" {
  hold spoilt -t 2 -k 300ms
  present expired
  redis client kill type normal >/dev/null
  ends_with 76 "$holder"
}

# replace FILE SOURCE: no reader ever sees a half.
replace() { cp "$2" "$1.new" && mv "$1.new" "$1"; }

# own_files: the authority, and the client certificate that the server requires, are files of the test.
own_files() {
  redis config set tls-auth-clients yes >/dev/null
  export RLOCK_CACERT=$here/ca RLOCK_CERT=$here/cert RLOCK_KEY=$here/key
  replace ca "$PKI/ca.crt"
  replace cert "$PKI/client.crt"
  replace key "$PKI/client.key"
}

# rotate_all: the server, its clients and their authority have other certificates; all connections end.
rotate_all() {
  redis config set tls-cert-file "$PKI/other/server.crt" tls-key-file "$PKI/other/server.key" tls-ca-cert-file "$PKI/other/ca.crt" >/dev/null
  replace ca "$PKI/other/ca.crt"
  replace cert "$PKI/other/stranger.crt"
  replace key "$PKI/other/stranger.key"
  redis client kill type normal >/dev/null
}

@test "certificates that are rotated in their files cost neither the lease nor the order of the queue" {
  own_files
  hold rotated -t 12 --event-log log
  line_up rotated
  rotate_all
  for _ in 1 2; do one_more renewed; done
  let_go rotated
  in_order
  nothing_left rotated
}

@test "with TLS 1.2 and for --renew-while, too, rotated certificates are read again" {
  own_files
  redis config set tls-protocols TLSv1.2 >/dev/null
  job
  rlock acquire rotated --renew-while "$job" -t 1h --cacert ca --cert cert --key key >owner
  eventually blocked 1
  rotate_all
  eventually blocked 1
  end_job
  eventually free rotated
}

# without_trust COUNT: the server has a certificate that no run accepts, until so many more renewals have failed.
without_trust() {
  local before
  before=$(grep -c '"event":"renew-failed"' log || true)
  present "$1"
  redis client kill type normal >/dev/null
  eventually logged renew-failed $((before + 9))
}

@test "files that cannot be used replace no others, and a missing authority does not mean the system's" {
  own_files
  export SSL_CERT_FILE=$PKI/other/ca.crt
  hold kept -t 90 --event-log log
  rm ca
  without_trust other/server
  present server
  one_more renewed
  replace ca key
  without_trust other/server
  present server
  one_more renewed
  replace ca "$PKI/other/ca.crt"
  replace key "$PKI/other/stranger.key"
  without_trust expired
  present server
  one_more renewed
  let_go kept
}

@test "a certificate that stays wrong is reported once, with -q too, by the holder and by a waiter" {
  hold wrong -q -t 60 2>held.err
  start rlock run -q -w 1h wrong -- true 2>waits.err
  waiter=$!
  eventually waiting 1 wrong
  present expired
  redis client kill type normal >/dev/null
  eventually grep -q 'expired.*unless the server answers$' held.err
  eventually grep -q 'waiting for "wrong", for another .*expired$' waits.err
  present server
  eventually waiting 1 wrong
  let_go wrong
  ends_with 0 "$waiter"
  [ "$(cat held.err waits.err | wc -l)" -eq 2 ] || fail "$(cat held.err waits.err)"
}

@test "with -v a holder and a waiter say that they have connected again" {
  hold again -v -t 60 2>held.err
  start rlock run -v again -- true 2>waits.err
  waiter=$!
  eventually blocked 2
  redis client kill type normal >/dev/null
  eventually grep -q 'again.*: connected to localhost:.* again$' held.err
  eventually grep -q 'again.*: connected to localhost:.* again$' waits.err
  let_go again
  ends_with 0 "$waiter"
}
