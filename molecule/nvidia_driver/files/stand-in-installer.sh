#!/bin/sh
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A stand-in for NVIDIA's driver installer. What it knows of options, refusals, files and exit statuses is theirs; what it installs
# is the lab's simulated NVML library. The driver's version is in the line that follows.
version=@VERSION@
branch=${version%%.*}
log=/var/log/nvidia-installer.log
libraries=/usr/lib/x86_64-linux-gnu
touch /root/stand-in-installer-ran

give_up() {
    echo "ERROR: $1" >> "$log"
    echo "ERROR: $1" >&2
    exit 1
}

case "$0" in *nvidia-uninstall) uninstall=yes log=/var/log/nvidia-uninstall.log ;; *) uninstall= ;; esac
silent=
modules=yes
echo "stand-in for nvidia-installer $version: $*" > "$log"
for option; do
    case "$option" in
        -s | --silent) silent=yes ;;
        --uninstall) uninstall=yes ;;
        --no-kernel-module) modules= ;;
        --no-kernel-modules) [ "$branch" -ge 515 ] || give_up "unrecognized option: $option"; modules= ;;
        --kernel-module-type=*) [ "$branch" -ge 555 ] || give_up "unrecognized option: $option" ;;
        --dkms | --no-x-check | --no-install-compat32-libs | --no-opengl-files | --kernel-module-build-directory=* | --kernel-name=*) ;;
        *) give_up "unrecognized option: $option" ;;
    esac
done
[ -n "$silent" ] || give_up "this would ask questions"
if [ -n "$uninstall" ]; then
    rm -f "$libraries"/libnvidia-ml.so* /usr/bin/nvidia-uninstall
    ldconfig
    exit 0
fi
[ ! -e /usr/lib/nvidia/alternate-install-present ] || give_up "another installation of the driver is present"
[ -z "$modules" ] || give_up "the kernel source could not be found"
[ ! -x /usr/bin/nvidia-uninstall ] || /usr/bin/nvidia-uninstall --silent
sed "s/570\.124\.06/$version/g" /root/simulated/libnvidia-ml.so.570.124.06 > "$libraries/libnvidia-ml.so.$version"
[ ! -e /root/stand-in-installer-is-killed ] || { rm /root/stand-in-installer-is-killed; exit 137; }
cp "$0" /usr/bin/nvidia-uninstall
chmod 755 /usr/bin/nvidia-uninstall
ldconfig
