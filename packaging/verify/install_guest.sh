#!/bin/sh
# In a bare guest: what README.md says about the files of a release, in /srv/release. /srv/other.sig is the signature of a key that nobody allows.
set -eu
# shellcheck source=steps.sh
. /srv/steps.sh

# type_line LINE: as a user would, who answers yes.
type_line() {
  echo "    $1"
  expect 0 sh -c "$1"
}

refused() {
  expect 1 sh -c "$verify"
  has "$1"
}

# without FILE TEXT: the file cannot be verified, and TEXT says why.
without() {
  mv "$1" /srv/away
  refused "$2"
  mv /srv/away "$1"
}

refuses_others() {
  package=$(echo rlock_*.deb)
  cp "$package" /srv/whole
  printf 'x' | dd of="$package" bs=1 seek=4000 conv=notrunc status=none
  refused "is not the file that was released"
  mv /srv/whole "$package"
  cp SHA256SUMS /srv/whole
  sed -i '1s/^./x/' SHA256SUMS
  refused "is not what a key of"
  mv /srv/whole SHA256SUMS
  cp SHA256SUMS.sig /srv/whole
  cp /srv/other.sig SHA256SUMS.sig
  refused "is not what a key of"
  mv /srv/whole SHA256SUMS.sig
  without SHA256SUMS "there is no ./SHA256SUMS; fetch it"
  without SHA256SUMS.sig "there is no ./SHA256SUMS.sig; fetch it"
  without "$package" "cannot read rlock_*.deb"
  expect 0 sh -c "$verify"
  step "a damaged file, changed checksums, the signature of another key and a missing file are refused"
}

verifies() {
  refused "apt install openssh-client"
  expect 0 apt install openssh-client
  type_line "$verify"
  has ": as released in rlock "
  for line in 'ssh-keygen -Y' sha256sum; do type_line "$(grep "^    $line" rlock/docs/INSTALL.md)"; done
  step "verified, after ssh-keygen was installed as the message says"
  refuses_others
}

# The packages that dnf and its database need.
prepare_dnf() {
  expect 0 apt install --no-install-recommends dnf rpm
  expect 0 sh -c 'echo assumeyes=True >>/etc/dnf/dnf.conf'
  expect 0 dnf install /srv/base.rpm
  mkdir -p /usr/share/fish/vendor_completions.d /usr/share/zsh/site-functions /usr/share/licenses
}

# installs LINE: and undoes it.
installs() {
  command=$(printf '%s\n' "$1" | sed 's/ *#.*//') undo=$(printf '%s\n' "$1" | sed -n 's/.*remove with: //p')
  grep -qF "\`$command\`" rlock/docs/INSTALL.md || fail "docs/INSTALL.md does not have: $command"
  files >"$scratch/before"
  type_line "$1"
  # The shell remembers where the program was.
  hash -r
  run_main_job
  type_line "${undo:?}"
  expect 127 sh -c 'rlock --version'
  expect_left '^/etc/dnf'
  step "$command: installed, used and removed again"
}

cd /srv/release
echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/yes
expect 0 apt-get update -q
expect 0 apt-get install -q --no-install-recommends redis-server ca-certificates  # the package recommends it
start_server
sed -n '/^## Install$/,/^##/s/^    //p' rlock/README.md >"$scratch/lines"
verify=$(grep 'verify\.sh' "$scratch/lines")
verifies
tried=0
while read -r line <&9; do
  case $line in
    *verify.sh*) continue ;;
    dnf*) prepare_dnf ;;
  esac
  installs "$line"
  tried=$((tried + 1))
done 9<"$scratch/lines"
[ "$tried" -eq 3 ] || fail "$tried lines install something, not 3"
