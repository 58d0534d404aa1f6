# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the lines of a report in the colours of Ansible's configuration."""

from __future__ import annotations

from collections.abc import Iterable

from ansible import constants
from ansible.utils.display import Display

from ansible_collections.gpu.kubernetes.plugins.module_utils._lines import Line
from ansible_collections.gpu.kubernetes.plugins.module_utils._text import make_printable

display = Display()

SETTINGS = {"strong": "COLOR_HIGHLIGHT", "good": "COLOR_OK", "bad": "COLOR_ERROR", "weak": "COLOR_VERBOSE"}


def show_lines(lines: Iterable[Line]) -> None:
    """Print lines with tones; no control character of a text reaches the terminal."""
    for text, tone in lines:
        display.display(make_printable(text), color=getattr(constants, SETTINGS[tone]) if tone in SETTINGS else None)
