# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt goes by for one installation (apt_preferences(5)).

It takes what packages depend on in the version that it prefers, and fails where they need that in the version that they are asked
for in.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Iterator

from .request import Request

OWN = "/etc/apt/preferences"


@contextmanager
def preferring(request: Request, own: str = OWN) -> Iterator[Request]:
    """Yield the request with preferences for its version, of whatever package has it, before those in the host's *own* file."""
    version = request.version or ""
    text = ""
    with suppress(FileNotFoundError), open(own, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape", suffix=".pref") as made:
        # A plain * for the packages would come after what other files prefer of packages by name.
        pin = version if "-" in version else f"{version}-*"
        made.write(f"Package: /./\nPin: version {pin}\nPin-Priority: 1002\n\n{text}")
        made.flush()
        yield replace(request, preferences=made.name)
