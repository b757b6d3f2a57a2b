#!/bin/bash
# machine_init.sh SYSTEMD: becomes the first process of a machine, in the test's folder; see machine.bash.
set -eu

mount --make-rprivate /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /var/tmp
mkdir -p /run/systemd/system /run/machine
cp machine/units/* /run/systemd/system
cp -r machine/bin machine/etc /run/machine
cd /run
mount -t tmpfs tmpfs /tmp
mount --bind /run/machine/bin /usr/local/bin
# A copy of /etc, so that nothing is left behind in the real one.
mkdir /run/machine/all
cp -a /etc/. /run/machine/all
rm -rf /run/machine/all/rlock
mv /run/machine/etc /run/machine/all/rlock
mount --bind /run/machine/all /etc
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# As on a real machine: systemd mounts credentials in another namespace.
mount --make-rshared /
export container=lxc SYSTEMD_UNIT_PATH=/run/systemd/system PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
exec "$1" --system --unit=basic.target --log-target=console
