#!/bin/sh
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A fake for NVIDIA's driver installer. What it knows of options, refusals, files and exit statuses is theirs; what it installs
# is the lab's simulated NVML library, and texts in place of kernel modules. The driver's version is in the line that follows.
version=@VERSION@
branch=${version%%.*}
log=/var/log/nvidia-installer.log
libraries=/usr/lib/x86_64-linux-gnu
kernel=/lib/modules/$(uname -r)
touch /root/fake-installer-ran

give_up() {
    echo "ERROR: $1" >> "$log"
    echo "ERROR: $1" >&2
    exit 1
}

look_at_kernel() {
    # Theirs first tries to unload it, which is the role's to do.
    [ ! -e /sys/module/nvidia ] || give_up "An NVIDIA kernel module 'nvidia' appears to be already loaded in your kernel."
    for tool in cc make; do
        command -v "$tool" > /dev/null || give_up "Unable to find the development tool \`$tool\` in your path."
    done
    [ ! -e /sys/module/nouveau ] || give_up "The Nouveau kernel driver is currently in use by your system."
    [ -d "$kernel/build" ] || give_up "Unable to find the kernel source tree for the currently running kernel."
}

install_module() {
    cat > "$kernel/updates/dkms/$1.ko" << END
version=$version
license=$license
srcversion=$(echo "$1 $version $flavor" | md5sum | cut -c -24)
depends=$2
parm=NVreg_EnableStreamMemOPs:int
parm=NVreg_EnablePCIeGen3:int
END
}

case "$0" in *nvidia-uninstall) uninstall=yes log=/var/log/nvidia-uninstall.log ;; *) uninstall= ;; esac
silent=
modules=yes
flavor=proprietary license=NVIDIA
echo "fake for nvidia-installer $version: $*" > "$log"
for option; do
    case "$option" in
        -s | --silent) silent=yes ;;
        --uninstall) uninstall=yes ;;
        --no-kernel-module) modules= ;;
        --no-kernel-modules) [ "$branch" -ge 515 ] || give_up "unrecognized option: $option"; modules= ;;
        --kernel-module-type=*) [ "$branch" -ge 555 ] || give_up "unrecognized option: $option"; flavor=${option#*=} ;;
        --kernel-module-build-directory=kernel-open) flavor=open ;;
        --dkms | --no-x-check | --no-install-compat32-libs | --no-opengl-files | --kernel-module-build-directory=* | --kernel-name=*) ;;
        *) give_up "unrecognized option: $option" ;;
    esac
done
[ -n "$silent" ] || give_up "this would ask questions"
if [ -n "$uninstall" ]; then
    rm -f "$libraries"/libnvidia-ml.so* "$kernel"/updates/dkms/nvidia*.ko /usr/bin/nvidia-uninstall
    ldconfig
    exit 0
fi
[ ! -e /usr/lib/nvidia/alternate-install-present ] || give_up "another installation of the driver is present"
[ -z "$modules" ] || look_at_kernel
# A test may have it wait here, before it replaces anything.
if [ -e "/root/fake-installer-$version-waits" ]; then
    touch "/root/fake-installer-$version-waiting"
    while [ -e "/root/fake-installer-$version-waits" ]; do sleep 1; done
fi
[ ! -x /usr/bin/nvidia-uninstall ] || /usr/bin/nvidia-uninstall --silent
sed "s/570\.124\.06/$version/g" /root/simulated/libnvidia-ml.so.570.124.06 > "$libraries/libnvidia-ml.so.$version"
[ ! -e /root/fake-installer-is-killed ] || { rm /root/fake-installer-is-killed; exit 137; }
cp "$0" /usr/bin/nvidia-uninstall
chmod 755 /usr/bin/nvidia-uninstall
ldconfig
[ -n "$modules" ] || exit 0
[ "$flavor" = proprietary ] || license="Dual MIT/GPL"
mkdir -p "$kernel/updates/dkms"
install_module nvidia
install_module nvidia-uvm nvidia
install_module nvidia-modeset nvidia
install_module nvidia-drm nvidia-modeset
# Theirs leaves this one loaded.
modprobe nvidia-drm || give_up "Installation has failed."
