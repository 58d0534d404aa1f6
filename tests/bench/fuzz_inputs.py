# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The random inputs of ``bench.fuzz``: files of the unit tests with changed lines and bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import CRI_V2, CRI_V3
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.plan import CONFIG_PATH
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._config.test_apply import SPELLINGS
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import docker_files, samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler import control_plane as plane


class Violation(Exception):
    """Something does not hold; the text says what, and where."""


class LostComment(Violation):
    """A comment is gone."""


class UndoDifference(Violation):
    """The undo restores something else than there was."""


@dataclass
class Case:
    """One input: its random numbers, an empty folder, and what ``--number`` prints."""

    random: Random
    folder: Path
    shown: list[Any] = field(default_factory=list)

    def show(self, part: Any) -> Any:
        """Return a part of the input, which is kept for ``--number``."""
        self.shown.append(part)
        return part

    def happens(self, percent: int) -> bool:
        """True in that many of 100 cases."""
        return self.random.randrange(100) < percent


NOISE = (b"\xff", b"\x00", b"\r", b'"', b"'", b"[", b"}", b"#", b"&a ", b"\xc2\x85", b"\x0c")


def change_line(random: Random, line: str) -> str:
    """What replaces a line: none, two, or one with another comment, indentation, space or quote."""
    note, text = f"# note {random.randrange(1000)}: \u00fc", line.rstrip("\n")
    wide = re.sub(r" *([=:,]) ", r" \1  ", text)
    space = random.choice(("  ", "\t", " ", "\n"))
    changed = ("", line + line, f"{note}\n{line}", f"{text}  {note}\n", space + line, f"{wide} \t\n")
    return random.choice((*changed, line.replace('"', "'"), line.replace("'", '"')))


def mutate(case: Case, text: str, more: Sequence[str], most: int = 6) -> bytes:
    """The text after at most *most* changes of lines, and seldom of line ends and bytes; *more* are lines to add."""
    lines, random = text.splitlines(keepends=True), case.random
    for _step in range(min(most, random.choice((0, 1, 1, 2, 2, 3, 6)))):
        at = random.randrange(len(lines) + 1)
        if case.happens(80):
            lines[at : at + 1] = [change_line(random, lines[at] if at < len(lines) else "")]
        else:
            lines.insert(at, random.choice(more) + "\n")
    data = "".join(lines).encode("utf-8", "surrogateescape")
    if case.happens(8):
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if case.happens(3):
        data = b"\xef\xbb\xbf" + data
    at = random.randrange(len(data) + 1)
    if case.happens(8):
        data = data[:at] + random.choice(NOISE) + data[at:]
    return case.show(data[:at] if case.happens(2) else data)


#: Texts with containerd's release.
SAMPLES = [*samples.FILES.values(), *((text, "2.1") for text in SPELLINGS.values())]
MORE_TOML = [
    "[proxy_plugins.nydus]  # another snapshotter",
    "[[unknown.array]]",
    "timeouts = { 'io.containerd.timeout.bolt.open' = \"0s\" }\ndebug.level = 'info'",
    f"plugins.'{CRI_V3}'.containerd.default_runtime_name = \"nvidia\"",
    f"plugins.'{CRI_V2}'.containerd.runtimes.crun = {{ runtime_type = 'io.containerd.runc.v2', options = {{}} }}",
    f"[plugins.'{CRI_V3}'.containerd.runtimes.nvidia.options]",
    f"[plugins.'{CRI_V2}'.containerd.runtimes.nvidia]\nruntime_type = 'io.containerd.runc.v2'",
    'disabled_plugins = [\n  # no kubelet here\n  "cri",\n]',
    "text = '''\n# in a text\n[plugins]\n'''",
    "when = 1979-05-27 07:32:00Z\nhuge = 0xdead_beef\nnone = nan",
]
MORE_JSON = [
    '"debug": true,',
    '"default-runtime": "nvidia",',
    '"features": {},',
    '"runtimes": {"nvidia": {"path": "/opt/nvidia", "runtimeArgs": []}},',
    '"\\u006bey": 1e400, "\\ud83d\\ude00": -0.0,',
    '"deep": ' + '{"a": [' * 60 + "1" + "]}" * 60 + ",",
    '"deeper": ' + "[" * 990 + "]" * 990 + ",",
]


def make_toml(case: Case) -> tuple[bytes, str]:
    """A config.toml, and the release of containerd."""
    text, release = case.random.choice(SAMPLES)
    return mutate(case, text, MORE_TOML), case.show(release)


def make_json(case: Case) -> bytes:
    """A daemon.json."""
    text = case.random.choice([*docker_files.FILES.values()])
    if case.happens(20) and text.strip():
        text = json.dumps(json.loads(text), indent=case.random.choice((None, 0, 1, 2, 4, "\t")))
    if case.happens(40):
        text = text.replace("{", "{" + case.random.choice(("", "\n  ")) + case.random.choice(MORE_JSON), 1)
    return mutate(case, text, MORE_JSON, case.random.choice((0, 1)))


MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
CONFIGS = ("/etc/kubernetes/sched/config.yaml", "/etc/kubernetes/s.yaml", CONFIG_PATH)
MORE_YAML = [
    "    - --config=/etc/kubernetes/s.yaml",
    "    - --port=0",
    "    args: [--v=2]  # flow",
    "  annotations:\n    a: 'y'  # why",
    "    env: [{name: A, value: 10:20}]",
    "    volumeMounts: []\n  volumes:",
    "x: &a [1, 2]\ny: *a",
    "text: |\n  # in a text\n  - a",
    "---",
    "extenders:\n- urlPrefix: http://10.0.0.9/other # no verb",
    "healthzBindAddress: 0.0.0.0:10251",
    "profiles: [{schedulerName: a, plugins: {filter: {enabled: [{name: EBSLimits}]}}}]",
]


def make_scheduler_files(case: Case) -> dict[str, bytes | None]:
    """The files of a control plane, by path; None is no file."""
    random = case.random
    text = (plane.FIXTURES / random.choice(plane.MANIFESTS)).read_text(encoding="utf-8")
    files = {**dict.fromkeys(CONFIGS), MANIFEST: mutate(case, text, MORE_YAML, 2)}
    if case.happens(60):
        text = plane.CONFIG.format(version=random.choice(("v1", "v1", "v1beta3")))
        text = random.choice((text, text, "", *(broken for broken, _words in plane.BROKEN.values())))
        text += random.choice(("", plane.OWN_EXTENDER))
        files[case.show(random.choice(CONFIGS))] = mutate(case, text, MORE_YAML, 2)
    return files
