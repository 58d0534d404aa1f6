# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program of this collection for a node, in an archive that Python runs there without Ansible."""

from __future__ import annotations

import inspect
import io
import posixpath
import types
import typing as t
import zipfile

_PACKAGE = "gpu_kubernetes"
_MAIN = "import sys\n\nfrom {package}.{name} import main\n\nsys.exit(main(sys.argv[1:]))\n"


def build_archive(script: types.ModuleType, imports: t.Iterable[types.ModuleType]) -> bytes:
    """Return a ZIP archive that Python runs: ``main`` of *script*, with the files that it imports. Equal for equal sources."""
    name = _name(script)
    sources = {"__main__.py": _MAIN.format(package=_PACKAGE, name=name), f"{_PACKAGE}/__init__.py": ""}
    for module in (script, *imports):
        path = f"{_PACKAGE}/{_name(module).replace('.', '/')}.py"
        sources[path] = inspect.getsource(module)
        sources.setdefault(posixpath.join(posixpath.dirname(path), "__init__.py"), "")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path in sorted(sources):
            # With a fixed date.
            archive.writestr(zipfile.ZipInfo(path), sources[path])
    return data.getvalue()


def _name(module: types.ModuleType) -> str:
    """Return the name of the module below this folder."""
    return module.__name__[len(__name__.rpartition(".")[0]) + 1 :]
