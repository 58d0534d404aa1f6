#!/bin/sh
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
# A fake for NVIDIA's CUDA installer, for tests: it takes the installer's options and writes the same files, with a compiler that
# only prints its version.
#   /root/fake-executed          a line for each execution
#   /root/fake-dies              if it exists, the installer and its parent are killed halfway
#   /root/fake-fails             if it exists, the installer fails
set -eu
version=@VERSION@
log=/var/log/cuda-installer.log
echo "$version" >> /root/fake-executed

fail() {
    echo "[ERROR]: $1" >> $log
    echo "Installation failed. See log at $log for details." >&2
    exit 1
}

: > $log
echo "[INFO]: fake of the gpu.kubernetes tests for the installer of CUDA $version" >> $log
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
# NVIDIA's installer would open a menu and wait
if [ -z "$silent" ] || [ -z "$toolkit" ] || [ -z "$path" ]; then
    fail "this fake needs --silent, --toolkit and --toolkitpath"
fi
[ "$(stat --format %a "$tmpdir")" = 700 ] || fail "others may write into $tmpdir"
[ ! -e /root/fake-fails ] || fail "no space left on device"

mkdir -p "$path/bin" "$path/lib64" /var/log/nvidia/.uninstallManifests
cat > "$path/bin/nvcc" <<NVCC
#!/bin/sh
# A fake of the gpu.kubernetes tests in the place of NVIDIA's compiler.
echo "nvcc: fake of the gpu.kubernetes tests, compiles nothing"
echo "Cuda compilation tools, release $version, V$version.1"
NVCC
chmod 755 "$path/bin/nvcc"
[ ! -e /root/fake-dies ] || kill -9 $PPID $$
echo "libcudart of CUDA $version, fake" > "$path/lib64/libcudart.so"
# NVIDIA's uninstaller removes what is in all manifests, or opens a menu
cat > "$path/bin/cuda-uninstaller" <<'UNINSTALLER'
#!/bin/sh
echo "fake: removes every toolkit that an installer brought" >&2
rm -rf /usr/local/cuda-* /var/log/nvidia/.uninstallManifests
UNINSTALLER
chmod 755 "$path/bin/cuda-uninstaller"
echo "$path/" > "/var/log/nvidia/.uninstallManifests/uninstallManifest-CUDA_Toolkit_$version"
echo "$path/lib64" > "/etc/ld.so.conf.d/cuda-$(echo "$version" | tr . -).conf"
# NVIDIA's installer replaces the link of the alternatives with one that ends in a slash
ln -sfn "$path/" /usr/local/cuda
echo "[INFO]: fake installed in $path" >> $log
echo "fake: CUDA $version is in $path"
