# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The initial RAM disks, which contain modules and modprobe.d: their files, and the command that rebuilds them."""

from __future__ import annotations

import glob
import os
from typing import Callable

# Each command rebuilds those of all installed kernels, because any of them may be the next to boot. A Debian with dracut also has
# a command update-initramfs.
TOOLS = (
    ["update-initramfs", "-u", "-k", "all"],
    ["dracut", "--force", "--regenerate-all"],
    ["mkinitcpio", "-P"],
)
IMAGES = ("initrd.img-*", "initrd-*", "initramfs-*", "*/*/initrd")


def list_images(folder: str) -> list[str]:
    """Return the initial RAM disks in *folder*; a container has none."""
    return sorted(path for pattern in IMAGES for path in glob.glob(os.path.join(folder, pattern)))


def find_command(find: Callable[[str], str | None]) -> list[str] | None:
    """Return the command of this host's tool, None if it has none."""
    return next((tool for tool in TOOLS if find(tool[0])), None)
