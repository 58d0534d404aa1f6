# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of an image's name, as roles have them in variables: the repository, and the tag, the digest or both."""

from __future__ import annotations


def split_tag(text: str) -> tuple[str, str]:
    """Return tag and digest of ``tag``, ``sha256:…`` or ``tag@sha256:…``; a missing one is empty."""
    if text.startswith("sha256:"):
        return "", text
    tag, _at, digest = text.partition("@")
    return tag, digest


def may_be_image(repository: str, tag: str, published: str) -> bool:
    """Return whether the repository and the tag or digest may be those of the published image ``repository:tag``.

    An empty text stands for the published one. The tag decides. Without a tag, the end of the repository's name does: a mirror has other folders.
    """
    known_repository, _colon, known_tag = published.rpartition(":")
    name, _digest = split_tag(tag or known_tag)
    if name:
        return name == known_tag
    return not repository or _get_name(repository) == _get_name(known_repository)


def _get_name(repository: str) -> str:
    return repository.strip("/ ").rpartition("/")[2]
