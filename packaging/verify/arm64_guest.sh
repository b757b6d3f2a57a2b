#!/bin/sh
# arm64_guest.sh install|build|emulate: a step of packaging/arm64.sh, in a bare Debian 12 for amd64. "install" installs the cross compiler
# and the emulator. "build" builds the portable program from /srv/source.tar.gz into /srv/dist. "emulate" boots /srv/kernel with /srv/initrd,
# which runs arm64_init.sh.
set -eu

program=rlock-linux-arm64

install_compiler() {
  dpkg --add-architecture arm64
  apt-get update -q
  apt-get install -qy --no-install-recommends g++-aarch64-linux-gnu binutils cmake ninja-build pkg-config python3 libcli11-dev mandoc \
    nlohmann-json3-dev libc6-dev:arm64 libhiredis-dev:arm64 libssl-dev:arm64 libtomlplusplus-dev:arm64 libfmt-dev:arm64 qemu-system-arm
}

# The cross compiler's own libc gets no security updates: that of libc6-dev comes before it.
build() {
  mkdir -p /srv/source /srv/dist
  tar -xzf /srv/source.tar.gz -C /srv/source --strip-components=1
  cd /srv/source
  export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig CXXFLAGS=-ffile-prefix-map=/srv/source=.
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DRLOCK_TESTS=OFF -DRLOCK_PORTABLE=ON -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu \
    -DCMAKE_EXE_LINKER_FLAGS=-L/usr/lib/aarch64-linux-gnu
  ninja -C build rlock
  aarch64-linux-gnu-strip -o "/srv/dist/$program" build/src/rlock
  python3 -B packaging/sbom.py build "$program" "/srv/dist/$program.spdx.json"
  python3 -B tests/packaging/hardening.py --static "/srv/dist/$program" build/compile_commands.json
}

emulate() {
  timeout 1200 qemu-system-aarch64 -machine virt -cpu max,pauth-impdef=on -m 1G -nic none -nographic -no-reboot -kernel /srv/kernel \
    -initrd /srv/initrd -append "console=ttyAMA0 rdinit=/init quiet panic=-1" | tr -d '\r'
}

case $1 in
  install) install_compiler ;;
  build) build ;;
  emulate) emulate ;;
esac
