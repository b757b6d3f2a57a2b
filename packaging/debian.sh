# shellcheck shell=sh
# What the scripts here share: packages of a Debian 12 or 13, and silence about what went well.

step=""
log=$(mktemp)

say() { printf '%s\n' "$*"; }

# quietly WHAT COMMAND…: one line for WHAT; the command's output is shown only when it fails.
quietly() {
  step=$1
  shift
  printf '%s ... ' "$step"
  if "$@" >"$log" 2>&1; then
    say 'done'
  else
    code=$?
    say "FAILED (exit code $code)"
    cat "$log" >&2
    exit 1
  fi
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@"
}

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

install_now() {
  apt update && apt install --yes --no-install-recommends "$@"
}

# install_packages PACKAGE…: installs the missing packages. Does not call apt if none is missing.
install_packages() {
  missing=""
  for package in "$@"; do
    is_installed "$package" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  # Words on purpose: a list of packages.
  # shellcheck disable=SC2086
  quietly "Installing$missing" install_now $missing
}

# install_where_known PACKAGE…: those that the machine's apt sources have.
install_where_known() {
  for package; do
    if is_installed "$package" || apt-cache show "$package" >/dev/null 2>&1; then
      install_packages "$package"
    else
      say "There is no package $package here: its test is skipped"
    fi
  done
}

install_build_packages() {
  install_packages g++ cmake make pkg-config libhiredis-dev libssl-dev libcli11-dev mandoc libtomlplusplus-dev libfmt-dev nlohmann-json3-dev
}

# The package redis-server would start a service on port 6379 that nobody asked for. Debian's server
# program is in redis-tools, under the name of redis-check-rdb, and goes by the name it is called with.
# provide_server FOLDER: redis-server is on PATH, from FOLDER where the machine has none.
provide_server() {
  if command -v redis-server >/dev/null; then
    return
  fi
  install_packages redis-tools
  mkdir -p "$1"
  ln -sf "$(command -v redis-check-rdb)" "$1/redis-server"
  PATH=$1:$PATH
}

# The package valkey-tools has the server program too, and no service. provide_valkey FOLDER: valkey-server is on PATH where the
# machine's apt sources have it: Debian 13 has, Debian 12 only in its backports.
provide_valkey() {
  if command -v valkey-server >/dev/null; then
    return
  fi
  if apt-cache show valkey-tools >/dev/null 2>&1; then
    install_packages valkey-tools
    mkdir -p "$1"
    ln -sf "$(command -v valkey-check-rdb)" "$1/valkey-server"
    PATH=$1:$PATH
  else
    say 'valkey-server was not found, nor valkey-tools to install: the suites run only against Redis'
  fi
}

# Other packages of a test's peers start a service, too, or are not in every Debian. One test is skipped without each: that is no
# reason to fail. unpack_program FOLDER PROGRAM PACKAGE...: PROGRAM is on PATH, unpacked in FOLDER where the machine has none.
unpack_program() {
  folder=$1 program=$2
  shift 2
  if command -v "$program" >/dev/null; then
    return
  fi
  mkdir -p "$folder"
  for package; do
    (cd "$folder" && apt-get download -q "$package" && dpkg -x "$package"_*.deb .) >/dev/null 2>&1 || return 0
  done
  PATH=$folder/usr/bin:$folder/usr/sbin:$folder/bin:$PATH
}
