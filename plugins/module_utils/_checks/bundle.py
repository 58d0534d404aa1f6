# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The support bundle: the report and what it was made from, in one archive without credentials."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from typing import Any, Mapping, Sequence

from .._config.redact import mask_tree
from .model import Observation

#: Bytes of one file of the archive, of which the rest is left out.
MAX_BYTES = 4 * 1024 * 1024
#: Files of an archive that are read.
MAX_FILES = 100_000
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def build_bundle(
    texts: Mapping[str, str],
    observations: Sequence[Observation],
    cluster: Mapping[str, Any] | None,
    name: str = "gpu-doctor",
) -> bytes:
    """Return a tar.gz of *texts* by file name and of the observations, masked; the same input gives the same bytes."""
    files = {file: text.encode("utf-8", "replace") for file, text in texts.items()}
    for number, observation in enumerate(observations):
        # A number, because the names of two hosts may differ in unsafe characters only.
        host = _UNSAFE.sub("_", str(observation.get("host")))[:100]
        files[f"hosts/{number:04d}-{host}.json"] = _dump(observation)
    files["cluster.json"] = _dump(cluster)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed, tarfile.open(
        fileobj=compressed, mode="w"
    ) as archive:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size, member.mode = min(len(data), MAX_BYTES), 0o600
            archive.addfile(member, io.BytesIO(data[:MAX_BYTES]))
    return packed.getvalue()


class BundleError(ValueError):
    """A file is not a support bundle; the message is one sentence."""


def read_bundle(path: str) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the observations of a bundle, and that of the cluster or None. Raises BundleError. Nothing is unpacked."""
    hosts: dict[str, dict[str, Any]] = {}
    cluster = None
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member, _number in zip(archive, range(MAX_FILES)):
                file = archive.extractfile(member) if member.name.endswith(".json") else None
                name = member.name.partition("/")[2]
                if file and name.startswith("hosts/"):
                    hosts[name] = dict(json.loads(file.read(MAX_BYTES)))
                elif file and name == "cluster.json":
                    cluster = json.loads(file.read(MAX_BYTES))
    except (OSError, EOFError, tarfile.TarError, ValueError, TypeError, RecursionError) as error:
        raise BundleError(
            f"{path} cannot be read as a support bundle ({error}); use one of gpu_doctor_bundle."
        ) from error
    if not hosts and not cluster:
        raise BundleError(f"{path} has no observation; use a support bundle of gpu_doctor_bundle.")
    return [hosts[name] for name in sorted(hosts)], cluster if isinstance(cluster, dict) else None


def _dump(data: Any) -> bytes:
    return json.dumps(mask_tree(data), indent=2, sort_keys=True, default=str).encode("utf-8")
