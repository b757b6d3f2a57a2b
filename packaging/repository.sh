#!/bin/sh
# repository.sh FOLDER URL KEY PACKAGE…: makes a signed repository for apt (FOLDER/apt) of the .deb files, and for dnf (FOLDER/rpm) of
# the .rpm files. KEY is a gpg key; GNUPGHOME says where it is. Serve FOLDER as it is from URL.
#
# FOLDER also gets the public key, rlock.asc, and the files with which a machine installs from URL: rlock.sources for apt, rlock.repo
# for dnf. Packages of an earlier call stay. Needs root or sudo only to install missing tools.
set -eu

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=debian.sh
. "$top/packaging/debian.sh"
trap 'rm -f "$log"' EXIT

[ $# -ge 4 ] || { say "usage: $0 FOLDER URL KEY PACKAGE..." >&2 && exit 64; }
folder=$1 url=$2 key=$3
shift 3
umask 022

sign() {
  gpg --batch --yes --local-user "$key" --armor --output "$1" "$2" "$3"
}

# index FILE ARCHITECTURE: the fields of the packages in pool, and the same compressed.
index() {
  mkdir -p "$(dirname "$1")" &&
    apt-ftparchive --arch "$2" packages pool >"$1" &&
    xz -9 --keep --force "$1"
}

make_apt() {
  cd "$folder/apt" || return
  rm -rf dists
  architectures=$(for package in pool/*.deb; do dpkg-deb --field "$package" Architecture; done | sort -u)
  for architecture in $architectures; do
    index "dists/stable/main/binary-$architecture/Packages" "$architecture" || return
  done
  release=$(apt-ftparchive -o APT::FTPArchive::Release::Origin=rlock -o APT::FTPArchive::Release::Label=rlock \
    -o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Codename=stable \
    -o APT::FTPArchive::Release::Components=main \
    -o APT::FTPArchive::Release::Architectures="$(echo "$architectures" | tr '\n' ' ')" release dists/stable) &&
    echo "$release" >dists/stable/Release &&
    sign dists/stable/InRelease --clearsign dists/stable/Release
}

make_rpm() {
  cd "$folder/rpm" || return
  rpmsign --define "_gpg_name $key" --define "__gpg $(command -v gpg)" --addsign ./*.rpm &&
    createrepo_c --quiet . &&
    sign repodata/repomd.xml.asc --detach-sign repodata/repomd.xml
}

describe() {
  cat >"$folder/rlock.sources" <<SOURCES
# apt: copy it to /etc/apt/sources.list.d, and rlock.asc to /etc/apt/keyrings.
Types: deb
URIs: $url/apt
Suites: stable
Components: main
Signed-By: /etc/apt/keyrings/rlock.asc
SOURCES
  cat >"$folder/rlock.repo" <<REPO
# dnf: copy it to /etc/yum.repos.d.
[rlock]
name=rlock
baseurl=$url/rpm
gpgkey=$url/rlock.asc
gpgcheck=1
repo_gpgcheck=1
REPO
}

install_packages gnupg apt-utils dpkg-dev xz-utils
mkdir -p "$folder"
folder=$(CDPATH='' cd -- "$folder" && pwd)
gpg --batch --armor --export "$key" >"$folder/rlock.asc"
[ -s "$folder/rlock.asc" ] || { say "$0: gpg has no key $key; create one, or set GNUPGHOME" >&2 && exit 66; }
describe
for package; do
  case $package in
    *.deb) mkdir -p "$folder/apt/pool" && cp "$package" "$folder/apt/pool" ;;
    *.rpm) mkdir -p "$folder/rpm" && cp "$package" "$folder/rpm" ;;
    *) say "$0: $package is neither a .deb nor an .rpm" >&2 && exit 64 ;;
  esac
done
if [ -d "$folder/apt" ]; then
  quietly "Making $folder/apt" make_apt
fi
if [ -d "$folder/rpm" ]; then
  install_packages rpm createrepo-c
  quietly "Making $folder/rpm" make_rpm
fi
