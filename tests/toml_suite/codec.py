# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two programs that the toml-test suite talks to: TOML in and tagged JSON out, or the other way round.

    python codec.py decode [1.0|1.1] <document.toml
    python codec.py encode <tagged.json

It exits with 1 and says why on standard error where the input is not valid.
"""

from __future__ import annotations

import json
import sys
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import TomlError, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable


def tag(value: Any) -> Any:
    """Plain data to what the suite expects."""
    if isinstance(value, dict):
        return {name: tag(child) for name, child in value.items()}
    if isinstance(value, list):
        return [tag(child) for child in value]
    kind, text = tag_scalar(value)
    return {"type": kind, "value": text}


def tag_scalar(value: Any) -> tuple[str, str]:
    """The suite's name of a type, and the value as text."""
    if isinstance(value, bool):
        return "bool", "true" if value else "false"
    if isinstance(value, datetime):
        return "datetime" if value.tzinfo else "datetime-local", value.isoformat()
    if isinstance(value, date):
        return "date-local", value.isoformat()
    if isinstance(value, time):
        return "time-local", value.isoformat()
    return {str: "string", int: "integer", float: "float"}[type(value)], str(value)


READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "integer": int,
    "float": float,
    "bool": lambda text: text == "true",
    "datetime": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00")),
    "datetime-local": datetime.fromisoformat,
    "date-local": date.fromisoformat,
    "time-local": time.fromisoformat,
}


def untag(value: Any) -> Any:
    """What the suite gives to plain data."""
    if isinstance(value, list):
        return [untag(child) for child in value]
    if set(value) == {"type", "value"} and isinstance(value["value"], str):
        return READERS[value["type"]](value["value"])
    return {name: untag(child) for name, child in value.items()}


def main(action: str, version: str = "1.0") -> int:
    """Convert standard input."""
    data = sys.stdin.buffer.read()
    try:
        if action == "decode":
            sys.stdout.write(json.dumps(tag(loads(data.decode("utf-8"), version))))
        else:
            sys.stdout.buffer.write(dumps(untag(json.loads(data))).encode("utf-8"))
    except (TomlError, UnicodeDecodeError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
