# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preferences of apt for one installation (apt_preferences(5)).

apt installs dependencies in the version that it prefers, and fails if the packages need them in the requested version.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Iterator

from .._config import files as _files
from .request import PackageError, Request

HOST_PREFERENCES = "/etc/apt/preferences"


@contextmanager
def prefer_version(request: Request, host_preferences: str = HOST_PREFERENCES) -> Iterator[Request]:
    """Yield the request with preferences for its version, for all packages, before the ones in the host's file.

    Raises PackageError if they cannot be written.
    """
    version = request.version or ""
    # Preferences for * would have a lower priority than those of other files for package names.
    pin = version if "-" in version else f"{version}-*"
    text = f"Package: /./\nPin: version {pin}\nPin-Priority: 1002\n\n".encode("ascii")
    with ExitStack() as stack:
        try:
            path = os.path.join(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="gpu-kubernetes-")), "preferences"
            )
            _files.write_atomic(path, text + (_files.read_bytes(host_preferences) or b""), mode=0o644)
        except (OSError, _files.FilesError) as error:
            raise PackageError(
                f"Cannot write apt preferences for {version} ({str(error).rstrip('.')}): correct that, and run again"
            ) from error
        yield replace(request, preferences=path)
