# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of modprobe.d(5): modules that must not be loaded, and parameters of those that are. Initial RAM disks have a copy of it."""

from __future__ import annotations

import glob
import os
import re
import shlex
from typing import Any, Callable, Mapping, Sequence

HEADER = "# Written by Ansible (gpu.kubernetes.modprobe_config); a change by hand is lost with its next run.\n"
_NAME = re.compile(r"[A-Za-z0-9_-]+")

# Each command rebuilds those of all installed kernels, because any of them may be the next to boot. A Debian with dracut also has
# a command update-initramfs.
INITRAMFS_TOOLS = (
    ["update-initramfs", "-u", "-k", "all"],
    ["dracut", "--force", "--regenerate-all"],
    ["mkinitcpio", "-P"],
)
INITRAMFS_IMAGES = ("initrd.img-*", "initrd-*", "initramfs-*", "*/*/initrd")


class ModprobeError(Exception):
    """The parameters cannot be written; the message is a sentence without a full stop."""


def render_file(blacklist: Sequence[str], options: Mapping[str, Mapping[str, Any]]) -> bytes | None:
    """Return the content of the file, or None if it would be empty.

    A module on the blacklist is loaded neither by its alias nor by its name: the kernel's mode setting requests nouveau by name.
    Raises ModprobeError for a name or value that modprobe could misread.
    """
    lines = [f"blacklist {_check_name(name)}\ninstall {_check_name(name)} /bin/false\n" for name in blacklist]
    lines += [
        f"options {_check_name(module)} {' '.join(f'{_check_name(key)}={_format_value(key, value)}' for key, value in sorted(values.items()))}\n"
        for module, values in sorted(options.items())
        if values
    ]
    return "".join([HEADER, *lines]).encode("utf-8") if lines else None


def parse_parameters(data: bytes | None) -> dict[str, dict[str, str]]:
    """Return {module: {name: value}} of the options in such a file; other lines are ignored."""
    found: dict[str, dict[str, str]] = {}
    for line in (data or b"").decode("utf-8", "replace").splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if words[:1] == ["options"] and len(words) > 1:
            pairs = (word.partition("=") for word in words[2:])
            found.setdefault(words[1], {}).update({name: value for name, _equals, value in pairs})
    return found


def find_dropped(
    before: bytes | None, after: bytes | None, earlier: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Return {module: {name: value}} of the options in *before* or *earlier* that are not in *after*."""
    given, kept = parse_parameters(before), parse_parameters(after)
    merged = {module: {**earlier.get(module, {}), **given.get(module, {})} for module in {*earlier, *given}}
    left = {
        module: {name: value for name, value in sorted(values.items()) if name not in kept.get(module, {})}
        for module, values in sorted(merged.items())
    }
    return {module: values for module, values in left.items() if values}


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ModprobeError(f"{name!r} is not a name of a kernel module or parameter: use letters, digits, - and _")
    return name


def _format_value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    text = str(value)
    if not text or any(mark in text for mark in '"\\#\n'):
        raise ModprobeError(
            f"The value {text!r} of {key} cannot be written for modprobe: use no quotes, backslashes, # or line ends"
        )
    return f'"{text}"' if re.search(r"\s", text) else text


# -- initial RAM disks, which contain modules and modprobe.d


def list_initramfs_images(folder: str) -> list[str]:
    """Return the initial RAM disks in *folder*; a container has none."""
    return sorted(path for pattern in INITRAMFS_IMAGES for path in glob.glob(os.path.join(folder, pattern)))


def find_initramfs_command(find: Callable[[str], str | None]) -> list[str] | None:
    """Return the command of this host's tool, None if it has none."""
    return next((tool for tool in INITRAMFS_TOOLS if find(tool[0])), None)
