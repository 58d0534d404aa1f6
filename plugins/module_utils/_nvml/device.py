# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One device of NVML: a GPU or a partition of one."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional, Tuple, TypeVar

from .library import GPU_IS_LOST, SUCCESS, Nvml

Value = TypeVar("Value")
Answer = Tuple[int, Optional[Value]]


class Device:
    """One handle; ``lost`` is set once NVML reports that the GPU is lost. An unknown value is ``None``."""

    def __init__(self, nvml: Nvml, handle: ctypes.c_void_p) -> None:
        self.nvml = nvml
        self.handle = handle
        self.lost = False

    def query(self, query: Callable[[Nvml, Any], Answer[Value]]) -> Value | None:
        """The value, or ``None`` if the GPU has none."""
        code, value = query(self.nvml, self.handle)
        self.lost = self.lost or code == GPU_IS_LOST
        return value

    def read_number(self, *names: str) -> int | None:
        """An unsigned number, of the first of *names* that the library has."""
        return self.query(lambda nvml, handle: nvml.read_number(names, handle))

    def read_text(self, name: str) -> str | None:
        """A text."""
        return self.query(lambda nvml, handle: nvml.read_text(name, handle))

    def fill(self, names: tuple[str, ...], arguments: tuple[Any, ...], *results: Any) -> bool:
        """Whether the first of *names* that the library has filled the *results*, which follow its *arguments*."""

        def query(nvml: Nvml, handle: Any) -> Answer[bool]:
            code = nvml.call(names, handle, *arguments, *(ctypes.byref(result) for result in results))
            return code, code == SUCCESS

        return bool(self.query(query))

    def read_numbers(
        self, name: str, *arguments: Any, count: int = 1, kind: Any = ctypes.c_uint
    ) -> tuple[int | None, ...]:
        """The *count* numbers of *kind* that a function fills after its *arguments*."""
        results = [kind() for _result in range(count)]
        known = self.fill((name,), arguments, *results)
        return tuple(int(result.value) if known else None for result in results)
