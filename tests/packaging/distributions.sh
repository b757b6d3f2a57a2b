#!/bin/bash
# distributions.sh RLOCK: what packaging/release.sh leaves for Homebrew, Arch Linux, Alpine, Fedora and Nix is whole, has the version and
# the checksums of the files beside it, and is text that bash, sh, ruby and nix read; their checks pass with the program RLOCK. What it leaves for GitHub and GitLab CI names the version and the
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

rlock=$(realpath "$1")
dist=$(mktemp -d)
unset RLOCK_PROJECT_URL RLOCK_RELEASE_URL
leave() {
  # The servers of checks that failed.
  for state in "$scratch/state" "$scratch/built/state"; do
    [ ! -e "$state" ] || RLOCK_URL=local:$state "$rlock" stop-local >/dev/null 2>&1 || true
  done
  rm -rf --one-file-system "$dist" "$scratch"
}
trap leave EXIT
version=$(source_version)
skipped=()
program=rlock-linux-$(dpkg --print-architecture)

pack_source "$dist/rlock-$version.tar.gz"
echo "the portable program" >"$dist/$program"
fill_in "$dist"
cd "$dist"
recipes=(rlock.rb PKGBUILD SRCINFO APKBUILD APKBUILD.source rlock.spec default.nix package.nix flake.nix)
expect 1 grep -En '@[A-Z_0-9]+[|@]' "${recipes[@]}"
expect 0 ls "${recipes[@]}"
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
# As the build folder of each has it.
mkdir -p "$scratch/built/build/src"
ln -s "$rlock" "$scratch/built/build/src/rlock"
expect 0 bash -euc 'cd "$1"; . "$2/PKGBUILD"; check' bash "$scratch/built" "$dist"
# srcinfo: the fields of the PKGBUILD, in any order.
srcinfo() (
  # shellcheck source=/dev/null
  . ./PKGBUILD
  for name in pkgbase pkgname; do echo "$name = $pkgname"; done
  for name in pkgdesc pkgver pkgrel url; do echo "$name = ${!name}"; done
  for name in arch license checkdepends makedepends depends optdepends backup source sha256sums; do
    declare -n values=$name
    printf "$name = %s\n" "${values[@]}"
  done
)
expect 0 diff <(srcinfo | sort) <(sed 's/^\t//; /^$/d' SRCINFO | sort)
step "Arch Linux: the version and the checksum are those of the source beside it; its package has the licence and the configuration"

expect 0 sh -n APKBUILD.source
expect 0 sh -euc 'dist=$PWD; . ./APKBUILD.source; echo "$sha512sums" | sed /^$/d | sha512sum -c; cd "$1"; . "$dist/APKBUILD.source"; check' sh "$scratch/built"
has "rlock-$version.tar.gz: OK"
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
    ENV.define_singleton_method(:prepend_path) { |name, path| self[name] = "#{path}:#{self[name]}" }
    class Formula
      def self.method_missing(name, *words) = puts("#{name} #{words[0]}")
      def self.[](_name) = Struct.new(:opt_bin).new("/nonexistent")
      def self.test(&block) = @test = block
      def self.run_test = new.instance_exec(&@test)
      def version = ARGV[0]
      def bin = ARGV[1]
      def testpath = ARGV[2]
      def system(*words) = Kernel.system(*words) || abort("failed: #{words}")
      def assert_equal(wanted, found) = wanted == found || abort("#{found} is not #{wanted}")
      def assert_match(wanted, found) = found.include?(wanted) || abort("#{found} is without #{wanted}")
      def shell_output(command, code = 0)
        output = `#{command}`
        $?.exitstatus == code ? output : abort("exit code #{$?.exitstatus}: #{command}")
      end
    end
    class String
      def /(name) = "#{self}/#{name}"
    end
    load "./rlock.rb"
    Rlock.run_test' "$version" "$(dirname "$rlock")" "$scratch"
  has "url file://$dist/rlock-$version.tar.gz"
  has "sha256 $(sha256sum <"rlock-$version.tar.gz" | cut -d ' ' -f 1)"
  step "Homebrew: the formula names the source beside it, and its checksum, and its test passes"
else
  skipped+=("Homebrew, without ruby")
fi

if command -v nix-instantiate >/dev/null; then
  export HOME=$scratch NIX_STORE_DIR=$scratch/store NIX_STATE_DIR=$scratch/state
  for file in default.nix package.nix flake.nix; do expect 0 nix-instantiate --parse $file; done
  # nixpkgs, as far as the expressions use it.
  expect 0 nix-instantiate --store dummy:// --eval --strict -E '
    let
      lib = { getLib = it: it; cmakeBool = name: on: "${name}=${if on then "ON" else "OFF"}"; cmakeFeature = name: text: "${name}=${text}";
        licenses.mit = "MIT"; platforms.linux = "linux"; genAttrs = names: make: builtins.listToAttrs (map (name: { inherit name; value = make name; }) names); };
      pkgs = { inherit lib; fetchurl = given: given; openssl = "openssl"; cmake = 1; ninja = 1; pkg-config = 1; cli11 = 1; fmt = 1; hiredis = 1;
        nlohmann_json = 1; tomlplusplus = 1; versionCheckHook = 1; stdenv.mkDerivation = make: let it = make it; in it;
        callPackage = file: given: let f = import file; in f (builtins.intersectAttrs (builtins.functionArgs f) pkgs // given); };
      here = import ./default.nix { inherit pkgs; };
      there = pkgs.callPackage ./package.nix { };
      flake = ((import ./flake.nix).outputs { nixpkgs = { inherit lib; legacyPackages.x86_64-linux = pkgs; }; }).packages.x86_64-linux.default;
    in "${here.pname} ${flake.version} ${baseNameOf here.src} ${there.src.hash} ${toString here.cmakeFlags}"'
  has "\"rlock $version rlock-$version.tar.gz sha256-$(python3 -c 'import base64, hashlib, sys; print(base64.b64encode(hashlib.sha256(open(sys.argv[1], "rb").read()).digest()).decode())' "rlock-$version.tar.gz") RLOCK_TESTS=OFF "
  step "Nix: the expressions are read, have the version and the checksum, and take the source beside them"
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

export RLOCK_PROJECT_URL='https://example.org/rlock?a&b,c'
export RLOCK_RELEASE_URL='https://files.example.org/rlock?a&b,c/'
fill_in "$dist"
for file in rlock.rb PKGBUILD SRCINFO APKBUILD APKBUILD.source rlock.spec package.nix; do
  grep -qF "${RLOCK_RELEASE_URL}rlock-" "$file" || fail "$file: $(cat "$file")"
  grep -qF "$RLOCK_PROJECT_URL" "$file" || fail "$file: $(cat "$file")"
  expect 1 grep -n file: "$file"
done
expect 0 steps action.yml name=x
expect 0 steps rlock.yml job=x name=x command=x
for file in action.yml rlock.yml; do expect 0 grep -F "default: '${RLOCK_RELEASE_URL%/}'" "$file"; done
step "with RLOCK_RELEASE_URL and RLOCK_PROJECT_URL they name the files there, and a CI job needs no other place"

fill_in_debian "$scratch/debian"
grep -qxF "Homepage: $RLOCK_PROJECT_URL" "$scratch/debian/control" || fail "$(cat "$scratch/debian/control")"
expect 1 grep -rn @PROJECT_URL@ "$scratch/debian"
(unset RLOCK_PROJECT_URL && fill_in_debian "$scratch/debian.without")
expect 1 grep -rEn '@PROJECT_URL@|^(Homepage|Vcs)' "$scratch/debian.without"
[ ! -e "$scratch/debian.without/watch" ]
step "Debian: the source package names the project's address if there is one"
echo "skipped: ${skipped[*]:-nothing}"
[[ ${skipped[*]} != *ruby* ]] || exit 77
