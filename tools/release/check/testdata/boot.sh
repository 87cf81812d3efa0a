#!/bin/bash
# Boots systemd with the unit, and nothing else, in the namespaces that it is started in.
#
#   boot.sh DIR    which has the program, the unit, and the units of the test
#
# What it mounts is gone when it ends. The system that it runs on keeps its files and its settings,
# and gets an empty control group (init.scope).
set -euo pipefail
dir=$1
mount --make-rprivate /
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
umount --recursive /sys/fs/cgroup || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for own in /run /var/lib /usr/local/bin /etc/systemd/system /usr/lib/systemd/system; do
	mount -t tmpfs tmpfs "$own"
done
for target in sysinit basic shutdown umount network-online multi-user local-fs; do
	printf '[Unit]\nDefaultDependencies=no\n' >"/etc/systemd/system/$target.target"
done
cp "$dir/anykind" /usr/local/bin/
cp "$dir"/*.service /etc/systemd/system/
ip link set lo up
export container=test
exec /usr/lib/systemd/systemd --system --unit=probe.service --log-target=console
