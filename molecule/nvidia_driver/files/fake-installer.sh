#!/bin/sh
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A fake for NVIDIA's driver installer. Options, refusals, files and exit statuses are those of NVIDIA's installer; it installs the
# lab's simulated NVML library, and texts in place of kernel modules. The next line has the driver's version.
version=@VERSION@
branch=${version%%.*}
log=/var/log/nvidia-installer.log
libraries=/usr/lib/x86_64-linux-gnu
kernel=/lib/modules/$(uname -r)
touch /root/fake-installer-ran

fail() {
    echo "ERROR: $1" >> "$log"
    echo "ERROR: $1" >&2
    exit 1
}

check_kernel() {
    # NVIDIA's installer first tries to unload it; here the role has to do that.
    [ ! -e /sys/module/nvidia ] || fail "An NVIDIA kernel module 'nvidia' appears to be already loaded in your kernel."
    for tool in cc make; do
        command -v "$tool" > /dev/null || fail "Unable to find the development tool \`$tool\` in your path."
    done
    [ ! -e /sys/module/nouveau ] || fail "The Nouveau kernel driver is currently in use by your system."
    [ -d "$kernel/build" ] || fail "Unable to find the kernel source tree for the currently running kernel."
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
        --no-kernel-modules) [ "$branch" -ge 515 ] || fail "unrecognized option: $option"; modules= ;;
        --kernel-module-type=*) [ "$branch" -ge 555 ] || fail "unrecognized option: $option"; flavor=${option#*=} ;;
        --kernel-module-build-directory=kernel-open) flavor=open ;;
        --dkms | --no-x-check | --no-install-compat32-libs | --no-opengl-files | --kernel-module-build-directory=* | --kernel-name=*) ;;
        *) fail "unrecognized option: $option" ;;
    esac
done
[ -n "$silent" ] || fail "this would ask questions"
if [ -n "$uninstall" ]; then
    rm -f "$libraries"/libnvidia-ml.so* "$kernel"/updates/dkms/nvidia*.ko /usr/bin/nvidia-uninstall
    ldconfig
    exit 0
fi
[ ! -e /usr/lib/nvidia/alternate-install-present ] || fail "another installation of the driver is present"
[ -z "$modules" ] || check_kernel
# A test can let it wait here, before it replaces anything.
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
# NVIDIA's installer leaves this module loaded.
modprobe nvidia-drm || fail "Installation has failed."
