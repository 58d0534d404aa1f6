# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the daemon itself whether it accepts a configuration, before it is put in place.  Private to this collection."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import typing as t
from dataclasses import dataclass

from .._toml import Document, TomlError, loads
from .errors import ConfigError
from .formats import JSON
from .imports import absolute_patterns
from .masking import hide, secret_words
from .schema import Release, is_version, parse_release, schema
from .trees import MISSING, Tree, get

if t.TYPE_CHECKING:
    from .._document import Document as AnyDocument
    from .containerd import Request

#: Where distributions and manual installs put daemons, besides PATH.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: Seconds; `containerd config dump` takes some 0.05 s.
TIMEOUT = 60

#: How CRI-O logs what it ends with.
_LOGGED = re.compile(r'\blevel=(?:error|fatal) msg=("(?:[^"\\]|\\.)*")')

Run = t.Callable[[t.Sequence[str]], t.Tuple[int, str, str]]


def run(command: t.Sequence[str]) -> tuple[int, str, str]:
    """Run *command*; return its exit status, output and errors.  Raises ConfigError if it cannot be run."""
    try:
        # This floor has no AnsibleModule to run a command with, and run_command has no time limit.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            list(command),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ConfigError(
            f"Cannot run {command[0]}: {exc}; give the path of the right program or correct the installation."
        ) from exc
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def find_binary(given: str | None, name: str = "containerd") -> str | None:
    """Return the path of the daemon *name*: the one given, else one in PATH or the usual places, else None."""
    if given:
        return given
    return shutil.which(name) or shutil.which(name, path=SEARCH_PATH)


def ask_release(binary: str, execute: Run = run) -> Release | None:
    """Return the release that `containerd --version` states, None if it states none."""
    status, output, _errors = execute([binary, "--version"])
    return parse_release(output) if status == 0 else None


@dataclass(frozen=True)
class Verdict:
    """What a daemon says of a configuration: its own words if it refuses it, else what it makes of it, if it tells."""

    refusal: str | None
    effective: Tree


def judge(binary: str, path: str, data: bytes, workdir: str | None = None, execute: Run = run) -> Verdict:
    """Let containerd load *data* as if it were the content of *path*, without a daemon.

    Imports are looked up beside *path*.
    """
    document = Document.from_bytes(data)
    tree = document.tree
    patterns = absolute_patterns(tree, os.path.dirname(os.path.abspath(path)))
    if patterns and patterns != tree.get("imports"):
        document.set(("imports",), patterns)
    refusal, output = _let_read(
        lambda candidate: [binary, "--config", candidate, "config", "dump"], path, document, workdir, execute
    )
    return _verdict(refusal, output)


def judge_drop_in(
    binary: str,
    path: str,
    root: str,
    document: AnyDocument,
    files: t.Sequence[str],
    data: bytes,
    workdir: str | None = None,
    execute: Run = run,
) -> Verdict:
    """Let containerd load *data* as if it were the content of the drop-in *path*.

    *document* is the file *root*, which imports *files*, *path* among them, in that order.
    """

    def command(candidate: str) -> list[str]:
        real = os.path.realpath(path)
        document.set(("imports",), [candidate if os.path.realpath(name) == real else name for name in files])
        importing = os.path.join(os.path.dirname(os.path.dirname(candidate)), os.path.basename(root))
        _write_private(importing, document.to_bytes())
        return [binary, "--config", importing, "config", "dump"]

    name = os.path.join("conf.d", os.path.basename(path))
    refusal, output = _let_read(command, path, Document.from_bytes(data), workdir, execute, name)
    if refusal is not None:
        beside = os.path.join(os.path.dirname(os.path.dirname(path)), os.path.basename(root))
        refusal = hide(refusal.replace(beside, root), secret_words(document.tree))
    return _verdict(refusal, output)


def judge_docker(binary: str, path: str, data: bytes, workdir: str | None = None, execute: Run = run) -> Verdict:
    """Let dockerd validate *data* as if it were the content of *path*; releases before 23.0 cannot, and refuse nothing."""
    refusal, _output = _let_read(
        lambda candidate: [binary, "--validate", f"--config-file={candidate}"],
        path,
        JSON.from_bytes(data),
        workdir,
        execute,
    )
    return Verdict(refusal, {})


def judge_crio(
    binary: str,
    path: str,
    main: str,
    others: t.Iterable[str],
    data: bytes,
    workdir: str | None = None,
    execute: Run = run,
) -> Verdict:
    """Let CRI-O load *data* as if it were the content of the drop-in *path*, with the *main* file and all *other* drop-ins.

    They lie as they do in `crio.conf.d` beside *main*, as links, for CRI-O reads a whole folder.
    """
    real = os.path.join(os.path.dirname(os.path.abspath(main)), "crio.conf.d")

    def command(candidate: str) -> list[str]:
        folder = candidate[: -len(name) - 1]
        for other in others:
            link = os.path.join(folder, os.path.relpath(other, real))
            os.makedirs(os.path.dirname(link), exist_ok=True)
            os.symlink(other, link)
        return [binary, "--config", main if os.path.exists(main) else "", "--config-dir", folder, "config"]

    name = os.path.relpath(os.path.abspath(path), real)
    refusal, output = _let_read(command, path, Document.from_bytes(data), workdir, execute, name)
    return _verdict(refusal, output)


def _write_private(path: str, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(data)


def _verdict(refusal: str | None, output: str) -> Verdict:
    """Return the refusal, or what the daemon prints of the configuration that it accepts, as TOML."""
    if refusal is not None:
        return Verdict(refusal, {})
    try:
        return Verdict(None, loads(output))
    except TomlError:
        return Verdict(None, {})


def _let_read(
    command: t.Callable[[str], list[str]],
    path: str,
    document: AnyDocument,
    workdir: str | None,
    execute: Run,
    name: str = "",
) -> tuple[str | None, str]:
    """Run *command* on a candidate for *path*; return why the daemon refuses it (None: it does not), and what it prints.

    The candidate lies in a private directory below *workdir*, by *name* or that of *path*, while the daemon reads it.
    """
    folder = tempfile.mkdtemp(prefix="gpu-kubernetes-", dir=workdir)
    try:
        candidate = os.path.join(folder, name or os.path.basename(path))
        os.makedirs(os.path.dirname(candidate), exist_ok=True)
        _write_private(candidate, document.to_bytes())
        status, output, errors = execute(command(candidate))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if status == 0 or "unknown flag: --validate" in errors:
        return None, output
    words = _last_words(errors).replace(candidate, path).replace(folder, os.path.dirname(path))
    words = hide(words, secret_words(document.tree))
    return words or f"exit status {status}", output


def check_effect(verdict: Verdict, request: Request) -> None:
    """Raise ConfigError if what containerd makes of the file is not what was asked for."""
    section = _cri_section(verdict.effective)
    if section is None:
        return
    name, runtimes = request.runtime_name, section.get("runtimes", {})
    if get(runtimes, (name, "options", "BinaryName")) != request.runtime_path:
        raise ConfigError(
            f"containerd does not see runtime {name} with {request.runtime_path} after reading {request.path} and its"
            " imports: look for an imported file that replaces it (`containerd config dump`)."
        )
    default = section.get("default_runtime_name", MISSING)
    if request.set_default is not None and (default == name) is not request.set_default:
        raise ConfigError(
            f"containerd takes {default} as the default runtime after reading {request.path} and its imports: look"
            " for an imported file that sets default_runtime_name."
        )
    check_default(verdict, request.path)


def check_default(verdict: Verdict, path: str) -> None:
    """Raise ConfigError if the default runtime is none of the runtimes: containerd would start without CRI."""
    section = _cri_section(verdict.effective)
    default = (section or {}).get("default_runtime_name")
    if section is not None and default and default not in section.get("runtimes", {}):
        raise ConfigError(
            f"{path} makes {default} the default runtime, but there is no such runtime and the CRI plugin would not"
            " load: add it or set set_default."
        )


def _cri_section(effective: Tree) -> Tree | None:
    version = effective.get("version", MISSING)
    if not is_version(version, 2):
        return None
    section = get(effective, schema(version).containerd)
    return section if isinstance(section, dict) else None


def _last_words(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip() and "level=warning" not in line]
    last = lines[-1] if lines else ""
    last = last[len("containerd: ") :] if last.startswith("containerd: ") else last
    logged = _LOGGED.search(last)
    if logged:
        with contextlib.suppress(ValueError):
            last = str(json.loads(logged.group(1)))
    return last.rstrip(".")
