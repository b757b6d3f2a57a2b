# shellcheck shell=bash
# A certificate authority of the test's own: its files in one folder, keys on P-256, which are quick to make.

# authority FOLDER: ca.crt and ca.key.
authority() {
  mkdir -p "$1"
  : >"$1/index"
  cat >"$1/cnf" <<EOF
[ca]
default_ca = own
[own]
database = $1/index
new_certs_dir = $1
certificate = $1/ca.crt
private_key = $1/ca.key
default_md = sha256
default_days = 2
rand_serial = yes
unique_subject = no
policy = any
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
EOF
  self_signed "$1" ca "basicConstraints=critical,CA:TRUE"
}

# self_signed FOLDER NAME EXTENSION: NAME.crt and NAME.key.
self_signed() {
  openssl req -x509 -config "$1/cnf" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
    -subj "/CN=$2" -addext "$3" -keyout "$1/$2.key" -out "$1/$2.crt" 2>/dev/null
}

# serve_tls FOLDER ARG…: as serve, with the certificate `server` of the authority in $PKI. Clients need none.
serve_tls() {
  serve "$@" --tls-cert-file "$PKI/server.crt" --tls-key-file "$PKI/server.key" --tls-ca-cert-file "$PKI/ca.crt" --tls-auth-clients no
}

# issue FOLDER NAME EXTENSION [OPTION…]: NAME.crt, signed by the authority, and NAME.key.
issue() {
  local folder=$1 name=$2
  echo "$3" >"$folder/$name.ext"
  openssl req -new -config "$folder/cnf" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -subj "/CN=$name" -keyout "$folder/$name.key" -out "$folder/$name.csr" 2>/dev/null
  openssl ca -batch -config "$folder/cnf" -extfile "$folder/$name.ext" -notext "${@:4}" \
    -in "$folder/$name.csr" -out "$folder/$name.crt" 2>/dev/null
}
