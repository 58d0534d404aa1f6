# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt goes by for one installation (apt_preferences(5)).

It takes what packages depend on in the version that it prefers, and fails where they need that in the version that they are asked
for in.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Iterator

from .._config import files as _files
from .request import PackageError, Request

OWN = "/etc/apt/preferences"


@contextmanager
def preferring(request: Request, own: str = OWN) -> Iterator[Request]:
    """Yield the request with preferences for its version, of whatever package has it, before those in the host's *own* file.

    Raises PackageError where they cannot be written.
    """
    version = request.version or ""
    # A plain * for the packages would come after what other files prefer of packages by name.
    pin = version if "-" in version else f"{version}-*"
    text = f"Package: /./\nPin: version {pin}\nPin-Priority: 1002\n\n".encode("ascii")
    with ExitStack() as stack:
        try:
            path = os.path.join(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-kubernetes-")), "preferences"
            )
            _files.write_atomic(path, text + (_files.read_bytes(own) or b""), mode=0o644)
        except (OSError, _files.FilesError) as error:
            raise PackageError(
                f"Cannot have apt prefer {version} ({str(error).rstrip('.')}): put that right, and run again"
            ) from error
        yield replace(request, preferences=path)
