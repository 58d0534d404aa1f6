#!/bin/sh
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
# A stand-in for NVIDIA's CUDA installer, for tests: it takes the installer's options and leaves on the host what that leaves, with a
# compiler that only tells its version.
#   /root/stand-in-executed          it was executed, once a line
#   /root/stand-in-dies              if there, it is killed halfway, with what runs it
#   /root/stand-in-fails             if there, it fails
set -eu
version=@VERSION@
log=/var/log/cuda-installer.log
echo "$version" >> /root/stand-in-executed

fail() {
    echo "[ERROR]: $1" >> $log
    echo "Installation failed. See log at $log for details." >&2
    exit 1
}

: > $log
echo "[INFO]: stand-in of the gpu.kubernetes tests for the installer of CUDA $version" >> $log
silent="" toolkit="" path="" tmpdir=/tmp
for option in "$@"; do
    case $option in
        --silent) silent=1 ;;
        --toolkit) toolkit=1 ;;
        --toolkitpath=/*) path=${option#*=} ;;
        --tmpdir=/*) tmpdir=${option#*=} ;;
        --no-man-page | --no-opengl-libs | --override | --no-drm) ;;
        *) fail "unknown option $option" ;;
    esac
done
# NVIDIA's would open a menu and wait
if [ -z "$silent" ] || [ -z "$toolkit" ] || [ -z "$path" ]; then
    fail "this stand-in needs --silent, --toolkit and --toolkitpath"
fi
[ "$(stat --format %a "$tmpdir")" = 700 ] || fail "others may write into $tmpdir"
[ ! -e /root/stand-in-fails ] || fail "no space left on device"

mkdir -p "$path/bin" "$path/lib64" /var/log/nvidia/.uninstallManifests
cat > "$path/bin/nvcc" <<NVCC
#!/bin/sh
# A stand-in of the gpu.kubernetes tests in the place of NVIDIA's compiler.
echo "nvcc: stand-in of the gpu.kubernetes tests, compiles nothing"
echo "Cuda compilation tools, release $version, V$version.1"
NVCC
chmod 755 "$path/bin/nvcc"
[ ! -e /root/stand-in-dies ] || kill -9 $PPID $$
echo "libcudart of CUDA $version, stand-in" > "$path/lib64/libcudart.so"
# NVIDIA's takes what is in all manifests, or asks
cat > "$path/bin/cuda-uninstaller" <<'UNINSTALLER'
#!/bin/sh
echo "stand-in: removes every toolkit that an installer brought" >&2
rm -rf /usr/local/cuda-* /var/log/nvidia/.uninstallManifests
UNINSTALLER
chmod 755 "$path/bin/cuda-uninstaller"
echo "$path/" > "/var/log/nvidia/.uninstallManifests/uninstallManifest-CUDA_Toolkit_$version"
echo "$path/lib64" > "/etc/ld.so.conf.d/cuda-$(echo "$version" | tr . -).conf"
# NVIDIA's puts a link of its own in the place of the alternatives', with a slash at its end
ln -sfn "$path/" /usr/local/cuda
echo "[INFO]: stand-in installed in $path" >> $log
echo "stand-in: CUDA $version is in $path"
