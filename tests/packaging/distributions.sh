#!/bin/bash
# distributions.sh: what packaging/release.sh leaves for Homebrew, Arch Linux, Alpine and Nix is whole, has the version and the checksums
# of the files beside it, and is text that bash, sh, ruby and nix read. What it leaves for GitHub and GitLab CI names the version and the
# place of its files. Installs Alpine's package, which compiles nothing. The last line
# says what was skipped: Nix's without nix, which not every Debian has. Without ruby, which packaging/check.sh installs, it exits with 77.
# shellcheck disable=SC2016,SC2154 # for the inner shells; set by the PKGBUILD
set -euo pipefail

here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
# shellcheck source=../../packaging/source.sh
. "$top/packaging/source.sh"
# shellcheck source=../../packaging/verify/steps.sh
. "$top/packaging/verify/steps.sh"

dist=$(mktemp -d)
trap 'rm -rf --one-file-system "$dist" "$scratch"' EXIT
version=$(source_version)
skipped=()
program=rlock-linux-$(dpkg --print-architecture)

pack_source "$dist/rlock-$version.tar.gz"
echo "the portable program" >"$dist/$program"
fill_in "$dist"
cd "$dist"
expect 1 grep -En '@[A-Z_0-9]+[|@]' rlock.rb PKGBUILD APKBUILD default.nix
step "nothing is left to fill in"

# What they and our own packages set: options, other values, and the results of checks.
grep -oh -e '-DRLOCK_[A-Z_]*' ./* "$top/packaging/debian/rules" "$top/packaging/rlock.spec" | sort -u >"$scratch/variables"
while read -r word; do
  grep -Eq "^ *(option\(|set\(|check_linker_flag\(.* )${word#-D}[ )]" "$top/CMakeLists.txt" "$top"/{src,man}/CMakeLists.txt || fail "cmake does not read ${word#-D}"
done <"$scratch/variables"
[ "$(wc -l <"$scratch/variables")" -ge 4 ]
step "cmake reads each variable that the packages set"

# arrays: the sources of the PKGBUILD with their sums, as makepkg pairs them.
arrays() (
  # shellcheck source=/dev/null
  . ./PKGBUILD
  [ "$pkgver ${#source[@]}" = "$version ${#sha256sums[@]}" ] || fail "PKGBUILD: $pkgver, ${source[*]}, ${sha256sums[*]}"
  for i in "${!source[@]}"; do echo "${sha256sums[i]}  ${source[i]}"; done
)
expect 0 bash -n PKGBUILD
expect 0 sha256sum -c <(arrays)
has "rlock-$version.tar.gz: OK"
mkdir "$scratch/src" "$scratch/package"
tar -xzf "rlock-$version.tar.gz" -C "$scratch/src"
# What cmake installs is that of every package.
expect 0 bash -euc 'cmake() { [ "$DESTDIR $*" = "$pkgdir --install build" ]; }; . ./PKGBUILD; cd "$1/src"; pkgdir=$1/arch; package' bash "$scratch"
cmp "$top/packaging/rlock.toml.example" "$scratch/arch/etc/rlock/rlock.toml"
cmp "$top/LICENSE" "$scratch/arch/usr/share/licenses/rlock/LICENSE"
step "Arch Linux: the version and the checksum are those of the source beside it; its package has the licence and the configuration"

expect 0 sh -n APKBUILD
# abuild, as far as it takes the sources and calls package().
expect 0 sh -euc '
  . ./APKBUILD
  for file in $source; do cp "$file" "$1/src"; done
  echo "$sha512sums" | sed /^$/d >"$1/sums"
  (cd "$1/src" && sha512sum -c "$1/sums")
  srcdir=$1/src pkgdir=$1/package
  package' sh "$scratch"
has "$program: OK"
cmp "$program" "$scratch/package/usr/bin/rlock"
[ -x "$scratch/package/usr/bin/rlock" ]
(cd "$top" && find man completions -name 'rlock*' -o -name _rlock) | grep -v '\.in$' | while read -r file; do
  find "$scratch/package/usr/share" -type f -exec cmp -s "$top/$file" {} \; -print | grep -q . || fail "Alpine's package is without $file"
done
step "Alpine: the checksums are those of the files beside it, and its package has the program, the pages and the completions"

if command -v ruby >/dev/null; then
  expect 0 ruby -c rlock.rb
  # Homebrew's own words, as far as the release is meant.
  expect 0 ruby -e '
    class Formula
      def self.method_missing(name, *words) = puts("#{name} #{words[0]}")
      def self.test = nil
    end
    load "./rlock.rb"'
  has "url file://$dist/rlock-$version.tar.gz"
  has "sha256 $(sha256sum <"rlock-$version.tar.gz" | cut -d ' ' -f 1)"
  step "Homebrew: the formula names the source beside it, and its checksum"
else
  skipped+=("Homebrew, without ruby")
fi

if command -v nix-instantiate >/dev/null; then
  export HOME=$scratch NIX_STORE_DIR=$scratch/store NIX_STATE_DIR=$scratch/state
  expect 0 nix-instantiate --parse default.nix
  expect 0 nix-instantiate --store dummy:// --eval -E '
    let it = import ./default.nix { pkgs = { stdenv.mkDerivation = words: words; }; }; in "${it.pname} ${it.version}"'
  has "\"rlock $version\""
  step "Nix: the expression is read, and has the version"
else
  skipped+=("Nix, without nix-instantiate")
fi

# steps FILE NAME=VALUE…: those of a CI job with these inputs.
steps() { /usr/bin/python3 "$top/tests/recipes/runner.py" --script "$@"; }
expect 0 grep -F "rlock@$version" rlock.yml
for file in action.yml rlock.yml; do expect 0 grep -F "https://files.example.org/rlock/$version" "$file"; done
expect 0 steps action.yml name=x release=.
expect 1 steps action.yml name=x
has "missing inputs: ['release']"
step "GitHub and GitLab CI: the examples name the version, and a job has to name the place of the release"

export RLOCK_RELEASE_URL='https://files.example.org/rlock?a&b,c/'
fill_in "$dist"
for file in rlock.rb PKGBUILD APKBUILD default.nix; do
  grep -qF "${RLOCK_RELEASE_URL}rlock-" "$file" || fail "$file: $(cat "$file")"
  expect 1 grep -n file: "$file"
done
expect 0 steps action.yml name=x
expect 0 steps rlock.yml job=x name=x command=x
for file in action.yml rlock.yml; do expect 0 grep -F "default: '${RLOCK_RELEASE_URL%/}'" "$file"; done
step "with RLOCK_RELEASE_URL they name the files there, and a CI job needs no other place"
echo "skipped: ${skipped[*]:-nothing}"
[[ ${skipped[*]} != *ruby* ]] || exit 77
