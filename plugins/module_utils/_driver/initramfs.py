# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The initial RAM disks, which have modules and modprobe.d of their own: which there are, and how a host makes them anew."""

from __future__ import annotations

import glob
import os
from typing import Callable

# Each with the command that makes those of all installed kernels, since any of them may be the next to boot. A Debian that uses
# dracut has a command update-initramfs, too.
TOOLS = (
    ["update-initramfs", "-u", "-k", "all"],
    ["dracut", "--force", "--regenerate-all"],
    ["mkinitcpio", "-P"],
)
IMAGES = ("initrd.img-*", "initrd-*", "initramfs-*", "*/*/initrd")


def images(folder: str) -> list[str]:
    """Return the initial RAM disks in *folder*; a container, or a kernel that needs none, has none."""
    return sorted(path for pattern in IMAGES for path in glob.glob(os.path.join(folder, pattern)))


def command(find: Callable[[str], str | None]) -> list[str] | None:
    """Return the command of this host's tool, None if it has none."""
    return next((tool for tool in TOOLS if find(tool[0])), None)
