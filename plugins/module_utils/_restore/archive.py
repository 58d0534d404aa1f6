# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive that the timer starts: the script, and the files of this collection that it imports."""

from __future__ import annotations

import inspect
import io
import zipfile

from .. import _commands
from .._config import files
from . import script

_MAIN = "import sys\n\nfrom gpu_kubernetes._restore.script import main\n\nsys.exit(main(sys.argv[1:]))\n"


def build_archive() -> bytes:
    """Return a ZIP archive that Python runs; equal for equal sources."""
    package = "gpu_kubernetes"
    sources = {
        "__main__.py": _MAIN,
        f"{package}/__init__.py": "",
        f"{package}/_commands.py": inspect.getsource(_commands),
        f"{package}/_config/__init__.py": "",
        f"{package}/_config/files.py": inspect.getsource(files),
        f"{package}/_restore/__init__.py": "",
        f"{package}/_restore/script.py": inspect.getsource(script),
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in sources.items():
            # With a fixed date.
            archive.writestr(zipfile.ZipInfo(name), text)
    return data.getvalue()
