# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them: its own injectors of credentials, its form of survey answers, and ansible-runner's transmit, worker and process.

A fake of AWX's task system. The worker runs the job in the image of an execution environment, as AWX's does, or without one on this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import ansible_runner
from awx_plugins.credentials.plugins import kubernetes_bearer_token
from awx_plugins.interfaces._temporary_private_credential_api import Credential
from awx_plugins.interfaces._temporary_private_inject_api import inject_credential
from gates._common import ROOT
from gates.awx import read_objects

PROJECT = ROOT / "docs" / "examples" / "awx"
#: Where the container of a job has the private folder.
CONTAINER = "/runner"
#: The collections of this checkout, and those of the image.
COLLECTIONS, IMAGE_COLLECTIONS = str(ROOT / ".ansible" / "collections"), "/usr/share/ansible/collections"
#: What AWX sets for each job.
ENVIRONMENT = {
    "ANSIBLE_HOST_KEY_CHECKING": "False",
    "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
    "AWX_HOST": "https://awx.invalid",
}


class Job(NamedTuple):
    """What AWX knows of a job that has ended. Artifacts and changed tasks by host are empty if the playbook did not end regularly."""

    status: str
    output: str
    artifacts: dict[str, Any]
    changed: dict[str, int]


def write_answers(folder: Path, answers: dict[str, Any]) -> None:
    """Write extra variables as AWX does: each text is unsafe."""
    lines = (
        f"!unsafe '{name}': " + (f"!unsafe '{answer}'" if isinstance(answer, str) else json.dumps(answer))
        for name, answer in answers.items()
    )
    (folder / "env" / "extravars").write_text("\n".join(lines) + "\n")


def write_inventory(folder: Path, inventory: dict[str, Any]) -> None:
    """Write an inventory, in the form of ``ansible-inventory --list``, as AWX does: a program that prints it."""
    path = folder / "inventory" / "hosts"
    path.write_text(f"#!/usr/bin/env python3\nprint({json.dumps(json.dumps(inventory))})\n")
    path.chmod(0o700)


def inject(folder: Path, worker: Path | str, credential: str | dict[str, Any]) -> tuple[dict[str, str], str]:
    """Inject a credential: environment and arguments of the job.

    A text is the kubeconfig of the type that configure_awx creates; a mapping has the inputs of AWX's own type for a token.
    """
    environment: dict[str, str] = {}
    safe: dict[str, str] = {}
    arguments: list[str] = []
    if isinstance(credential, str):
        [declared] = read_objects()["controller_credential_types"]
        kind = SimpleNamespace(inputs=declared["inputs"], injectors=declared["injectors"])
        inject_credential(kind, Credential({"kubeconfig": credential}), environment, safe, arguments, str(folder))
        assert credential not in json.dumps([environment, safe, arguments])
    else:
        inject_credential(kubernetes_bearer_token, Credential(credential), environment, safe, arguments, str(folder))
        assert credential["bearer_token"] not in json.dumps([safe, arguments])
    # Without a container, the worker has its folder in another place.
    for path in (folder / "env").iterdir():
        path.chmod(0o600)
        path.write_text(path.read_text().replace(f"{CONTAINER}/", f"{worker}/"))
    moved = {name: value.replace(CONTAINER, str(worker)) for name, value in environment.items()}
    return moved, " ".join(arguments).replace(CONTAINER, str(worker))


def run_job(
    parent: Path,
    playbook: str,
    answers: dict[str, Any],
    credential: str | dict[str, Any],
    inventory: dict[str, Any],
    options: str = "",
    container: dict[str, Any] | None = None,
) -> Job:
    """Run a job of a playbook of the example project, with its files below *parent*.

    *options* are those of ansible-playbook, and *container* has ansible-runner's settings of the job's container.
    """
    folder, worker, results = (parent / name for name in ("private", "worker", "results"))
    for name in ("env", "inventory"):
        (folder / name).mkdir(parents=True)
    results.mkdir()
    shutil.copytree(PROJECT, folder / "project")
    write_answers(folder, answers)
    write_inventory(folder, inventory)
    environment, arguments = inject(folder, CONTAINER if container else worker, credential)
    environment["ANSIBLE_COLLECTIONS_PATH"] = IMAGE_COLLECTIONS if container else COLLECTIONS
    isolation = {"process_isolation": True, "process_isolation_executable": "podman"} if container else {}
    transmitted, processed = parent / "transmitted", parent / "processed"
    with transmitted.open("wb") as stream:
        ansible_runner.run(
            streamer="transmit",
            _output=stream,
            private_data_dir=str(folder),
            playbook=playbook,
            envvars=ENVIRONMENT | environment,
            cmdline=f"{arguments} {options}".strip(),
            ident="1",
            **isolation,
            **(container or {}),
        )
    with transmitted.open("rb") as source, processed.open("wb") as target:
        command = [sys.executable, "-m", "ansible_runner", "worker", "--private-data-dir", worker]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        # It ends with the exit status of the playbook.
        subprocess.run(command, stdin=source, stdout=target, env={**inherited, "PATH": path}, check=False)
    with processed.open("rb") as source:
        job = ansible_runner.run(
            streamer="process", _input=source, private_data_dir=str(results), ident="1", quiet=True
        )
    files = (results / "artifacts" / "1" / "job_events").iterdir()
    events = sorted((json.loads(path.read_text()) for path in files), key=lambda event: event["counter"])
    ends = [event["event_data"] for event in events if event["event"] == "playbook_on_stats"]
    end = ends[-1] if ends else {}
    output = "\n".join(event["stdout"] for event in events)
    return Job(job.status, output, end.get("artifact_data") or {}, end.get("changed") or {})
