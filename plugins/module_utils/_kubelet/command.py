# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line with which the kubelet starts next, and where each word of it is written.

systemd's unit comes first: what a running kubelet was started with may be older than the files. Sources: systemd.exec(5),
systemd.service(5), spf13/pflag as the kubelet uses it.
"""

from __future__ import annotations

import os
import re
import shlex
import typing as t
from dataclasses import dataclass, field

from .._distributions import DEFAULT
from .._probe.host import Runner
from .._probe.kubelet import Reader

PROGRAM = "kubelet"
# Where packages and administrators add flags.
DEFAULTS = ("/etc/default/kubelet", "/etc/sysconfig/kubelet")
SHOW_UNIT = ("systemctl", "cat", "--no-pager", PROGRAM)

# `systemctl cat` writes the path of each file above its content.
_HEADER = re.compile(r"# (/\S+\.(?:service|conf))")
_VARIABLE = re.compile(r"\$(\w+)\Z")
_WITHIN = re.compile(r"\$\{(\w+)\}|\$\$|%%")


class Word(t.NamedTuple):
    """A word of the command line, and in words where it is written."""

    text: str
    source: str


@dataclass(frozen=True)
class Flag:
    """A flag: its name with hyphens, its value (empty for a switch without one), and where it is written."""

    name: str
    value: str
    source: str


@dataclass
class _Service:
    """What the files of a unit set together: values with the file that they are from."""

    start: list[Word] = field(default_factory=list)
    variables: list[Word] = field(default_factory=list)
    files: list[Word] = field(default_factory=list)

    def add(self, name: str, value: str, file: str) -> None:
        """Add a setting; an empty one removes those before it."""
        known = {"ExecStart": self.start, "Environment": self.variables, "EnvironmentFile": self.files}.get(name)
        if known is None:
            return
        if value:
            known.append(Word(value, file))
        else:
            known.clear()


def find(run: Runner, read: Reader, processes: t.Sequence[t.Sequence[str]]) -> list[Word] | None:
    """Return the words behind the program's name; None on a host without a kubelet."""
    status, unit = run(SHOW_UNIT)
    words = read_unit(unit, read) if status == 0 else None
    if words is None:
        running = next((words for words in processes if words and os.path.basename(words[0]) == PROGRAM), None)
        words = None if running is None else [Word(text, "the running kubelet") for text in running[1:]]
    return _read_files(read) if words is None else words


def read_unit(unit: str, read: Reader) -> list[Word] | None:
    """Return the words behind the program's name as the *unit*, as ``systemctl cat`` prints it, has them; None without a kubelet."""
    service = _parse(unit)
    known = _environment(service, read)
    for line in reversed(service.start):
        words = [word for text in _split(line.text.lstrip("@-:+!")) for word in _expand(text, line.source, known)]
        place = next((at for at, word in enumerate(words) if os.path.basename(word.text) == PROGRAM), None)
        if place is not None:
            return words[place + 1 :]
    return None


def flags(words: t.Iterable[Word]) -> list[Flag]:
    """Return the flags among the words, in their order. The kubelet accepts only flags and their values."""
    found: list[Flag] = []
    for text, source in words:
        if text.startswith("--"):
            name, _sign, value = text[2:].partition("=")
            found.append(Flag(name.replace("_", "-"), value, source))
        elif found and not found[-1].value and not text.startswith("-"):
            found[-1] = Flag(found[-1].name, text, found[-1].source)
    return found


def last(given: t.Sequence[Flag], name: str) -> str | None:
    """Return the value of the flag *name* that counts; None if it is not there, or empty."""
    return next((flag.value for flag in reversed(given) if flag.name == name), None) or None


def _read_files(read: Reader) -> list[Word] | None:
    """Return the words with which the distribution starts the kubelet, None if it wrote nothing."""
    texts = {path: read(path) for path in (DEFAULT.kubelet_flags, *DEFAULTS)}
    if texts[DEFAULT.kubelet_flags] is None and read(DEFAULT.kubelet_config) is None:
        return None
    words = [Word(f"--config={DEFAULT.kubelet_config}", DEFAULT.name)]
    for path, text in texts.items():
        for name, value in _assignments(text or ""):
            words += [Word(word, f"{name} in {path}") for word in _split(value)]
    return words


def _parse(unit: str) -> _Service:
    service, file, section = _Service(), "the unit kubelet.service", ""
    for line in unit.replace("\\\n", " ").splitlines():
        header = _HEADER.fullmatch(line)
        if header:
            file, section = header.group(1), ""
        elif line.startswith("["):
            section = line.strip()
        elif section == "[Service]" and not line.startswith(("#", ";")):
            name, _sign, value = line.partition("=")
            service.add(name.strip(), value.strip(), file)
    return service


def _environment(service: _Service, read: Reader) -> dict[str, Word]:
    """Return each variable with its value and where it is from; files go before the unit, the last one first."""
    known: dict[str, Word] = {}
    for line in service.variables:
        for text in _split(line.text):
            name, _sign, value = text.partition("=")
            known[name] = Word(value.replace("%%", "%"), f"{name} in {line.source}")
    for file in service.files:
        path = file.text.lstrip("-")
        text = read(path)
        if isinstance(text, str):
            known.update({name: Word(value, f"{name} in {path}") for name, value in _assignments(text)})
    return known


def _assignments(text: str) -> t.Iterator[tuple[str, str]]:
    """Read a file with variables as systemd does."""
    for line in text.replace("\\\n", "").splitlines():
        name, sign, value = line.strip().partition("=")
        if sign and not name.startswith(("#", ";")):
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            yield name.strip(), value[1:-1] if quoted else value


def _expand(text: str, source: str, known: t.Mapping[str, Word]) -> list[Word]:
    """Return what becomes of a word: a variable alone may be several, one within a word is a part of it."""
    alone = _VARIABLE.match(text)
    if alone:
        word = known.get(alone.group(1))
        return [Word(part, word.source) for part in _split(word.text)] if word else []
    origins = [known[name].source for name in _WITHIN.findall(text) if name in known]

    def value(found: t.Match[str]) -> str:
        if found.group(1) is None:
            return found.group(0)[0]
        return known[found.group(1)].text if found.group(1) in known else ""

    return [Word(_WITHIN.sub(value, text), (origins or [source])[-1])]


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
