# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine for the role cuda: /usr/local, the alternatives, the package manager and the repositories are below one folder.

The roles are those of the checkout, in a collection with another name beside the playbook, with other paths. A package has one file,
the compiler, and registers its toolkit as NVIDIA's packages do.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ansible_collections.gpu.kubernetes.plugins.modules.host_packages import ARGUMENTS

CHECKOUT = Path(__file__).resolve().parents[2]
ROLE = "fake.machine.cuda"
FOLDER = "CUDA_MACHINE"
PLACES = ("/usr/local", "/etc/", "/var/log/")
# The programs of chkconfig, on distributions with dnf, and of dpkg; the group is a JSON file with {path: priority}.
ALTERNATIVES = """#!{python}
import json, os, sys

folder = {folder!r}
dpkg = os.path.exists(folder + "/dpkg")
state, link, current = folder + "/alternatives.json", folder + "/usr/local/cuda", folder + "/etc/alternatives/cuda"
group = json.load(open(state)) if os.path.exists(state) else {{"mode": "auto", "paths": {{}}}}
if dpkg:
    for path in [path for path in group["paths"] if not os.path.isdir(path)]:
        print("update-alternatives: warning: alternative", path, "(part of link group cuda) doesn't exist; removing from list of"
              " alternatives", file=sys.stderr)
        if sys.argv[1] != "--display": del group["paths"][path]
paths = {{path: rank for path, rank in group["paths"].items() if not dpkg or os.path.isdir(path)}}

def put(place, target):
    if os.path.lexists(place): os.unlink(place)
    if target: os.symlink(target, place)
def fail(words): sys.exit(words)

action, *rest = sys.argv[1:]
if action != "--display": open(folder + "/done.log", "a").write(" ".join([action, *rest[-2:]]) + "\\n")
if action == "--display":
    if not os.path.exists(state): sys.exit(2)
    print("cuda - " + ("{{}} mode" if dpkg else "status is {{}}.").format(group["mode"]))
    print("  link currently points to", os.readlink(current))
    for path, rank in paths.items(): print(path, "- priority", rank)
    sys.exit()
if action == "--install": group["paths"][rest[2]] = int(rest[3])
elif action == "--set":
    if rest[1] not in paths: sys.stderr.write(rest[1] + " has not been configured as an alternative for cuda\\n"); sys.exit(2)
    group["mode"], group["chosen"] = "manual", rest[1]
elif action == "--auto": group["mode"] = "auto"
elif rest[1] in group["paths"]: del group["paths"][rest[1]]
elif not dpkg: sys.stderr.write(rest[1] + " has not been configured as an alternative for cuda\\n"); sys.exit(2)
if group.get("chosen") not in group["paths"]: group["mode"] = "auto"
if group["paths"]:
    json.dump(group, open(state, "w"))
    put(current, group["chosen"] if group["mode"] == "manual" else max(group["paths"], key=group["paths"].get))
    put(link, current)
elif os.path.exists(state):
    os.unlink(state); put(current, None); put(link, None)
"""
PACKAGES = """#!/usr/bin/python
import json, os, pathlib, shutil, subprocess
from ansible.module_utils.basic import AnsibleModule
folder = pathlib.Path(os.environ[{folder!r}])
module = AnsibleModule({arguments!r}, supports_check_mode=True)
record = pathlib.Path(module.params["record"])
version = record.stem.replace("packages-cuda-", "").replace("-", ".")
root = folder / "usr/local" / ("cuda-" + version)
absent = module.params["state"] == "absent"
changed = record.exists() == absent and (absent or bool(module.params["unversioned"]))
if changed and not module.check_mode:
    register = not (folder / "unregistered").exists()
    if absent:
        shutil.rmtree(root); record.unlink()
        if register: subprocess.run(["update-alternatives", "--remove", "cuda", str(root)])
    else:
        (root / "bin").mkdir(parents=True, exist_ok=True)
        (root / "bin/nvcc").write_text("#!/bin/sh\\necho Cuda compilation tools, release " + version + ", V1\\n")
        (root / "bin/nvcc").chmod(0o755)
        record.parent.mkdir(parents=True, exist_ok=True); record.write_text("{{}}")
        subprocess.run(["update-alternatives", "--install", str(folder / "usr/local/cuda"), "cuda", str(root), "128"])
module.exit_json(changed=changed, packages=[version] if changed else [])
"""
# It installs into the folder of its options.
INSTALLER = """#!/bin/sh
# installer {number} of CUDA {version}
for option; do case $option in --toolkitpath=*) path=${{option#*=}} ;; esac; done
echo run {number} >> {folder}/done.log
mkdir -p $path/bin
printf '#!/bin/sh\\necho Cuda compilation tools, release {version}, V{version}.{number}\\n' > $path/bin/nvcc
chmod 755 $path/bin/nvcc
[ ! -e {folder}/dies ] || exit 9
echo {number} > $path/whole
"""
PROGRAMS = {
    "ldconfig": "",
    "apt-get": "",
    "dpkg-query": "grep -qxF -- $2 {folder}/owned",
    "rpm": "grep -qxF -- $3 {folder}/owned",
}


class Machine:
    """A machine without CUDA, with dnf and the alternatives of chkconfig, or with apt and those of dpkg."""

    def __init__(self, folder: Path) -> None:
        """Create it below the folder, in which the playbook has to be, too."""
        self.folder = folder
        self.local = folder / "usr" / "local"
        self.sources = folder / "etc" / "apt" / "sources.list.d"
        for path in ("usr/local", "etc/alternatives", "etc/profile.d", "etc/apt/sources.list.d", "var/log", "programs"):
            (folder / path).mkdir(parents=True)
        for name in ("owned", "done.log", "key.asc"):
            (folder / name).touch()
        self._program("update-alternatives", ALTERNATIVES.format(python=sys.executable, folder=str(folder)))
        for name, text in PROGRAMS.items():
            self._program(name, f"#!/bin/sh\n{text}\n".format(folder=folder))
        self._collect(folder / "collections" / "ansible_collections" / "fake" / "machine")

    def _program(self, name: str, text: str) -> None:
        path = self.folder / "programs" / name
        path.write_text(text)
        path.chmod(0o755)

    def _collect(self, collection: Path) -> None:
        modules = collection / "plugins" / "modules"
        modules.mkdir(parents=True)
        (modules / "host_packages.py").write_text(PACKAGES.format(folder=FOLDER, arguments=ARGUMENTS))
        for name in ("cuda", "vendor_packages"):
            role = shutil.copytree(CHECKOUT / "roles" / name, collection / "roles" / name)
            for path in [*(role / "tasks").glob("*.yml"), *(role / "vars").glob("*.yml")]:
                text = path.read_text()
                for place in PLACES:
                    text = text.replace(f" {place}", f" {self.folder}{place}").replace(
                        f"'{place}", f"'{self.folder}{place}"
                    )
                text = text.replace("gpu.kubernetes.vendor_packages", "fake.machine.vendor_packages")
                path.write_text(text.replace("gpu.kubernetes.host_packages", "fake.machine.host_packages"))

    def write_installer(self, number: int, version: str = "12.8", **more: Any) -> dict[str, Any]:
        """Write an installer and return the role's variables for it."""
        path = self.folder / f"{version}-{number}.run"
        path.write_text(INSTALLER.format(number=number, version=version, folder=self.folder))
        checksum = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        return {"version": version, "remote_path": str(path), "checksum": checksum, **more}

    def add_compiler(self, version: str, owned: bool) -> None:
        """Add an unmanaged compiler, of a package or not."""
        path = self.local / f"cuda-{version}" / "bin" / "nvcc"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\necho Cuda compilation tools, release {version}, V1\n")
        path.chmod(0o755)
        (self.folder / "owned").write_text(f"{path}\n" if owned else "")

    def read_actions(self) -> list[str]:
        """The alternatives registered and removed, and the installers run, since the last call."""
        log = self.folder / "done.log"
        actions = log.read_text().replace(f"{self.local}/", "").splitlines()
        log.write_text("")
        return actions

    def list_alternatives(self) -> list[str]:
        """The folders in the alternatives."""
        state = self.folder / "alternatives.json"
        return sorted(Path(path).name for path in json.loads(state.read_text())["paths"]) if state.exists() else []

    def list_toolkits(self) -> list[str]:
        """The entries of /usr/local, hidden ones included."""
        return sorted(os.listdir(self.local))

    def read_default(self) -> str:
        """The toolkit that /usr/local/cuda points to."""
        return (self.local / "cuda").resolve(strict=True).name

    def read_record(self, version: str = "12.8") -> dict[str, Any]:
        """The record of an installer's toolkit."""
        return dict(json.loads((self.folder / "state" / "state" / f"cuda-runfile-{version}.json").read_text()))

    def write_play(self, *parts: str, **variables: Any) -> Path:
        """Write a playbook that sets the role's variables, then runs files of its tasks."""
        dpkg = {"distribution": "Debian", "distribution_version": "12.5", "os_family": "Debian"}
        dnf = {"distribution": "Rocky", "distribution_version": "9.6", "os_family": "RedHat"}
        facts = dpkg if (self.folder / "dpkg").exists() else dnf
        more = {
            "architecture": "x86_64",
            "kernel": "6.1.0",
            "nodename": "node",
            "distribution_release": "bookworm",
            "distribution_major_version": facts["distribution_version"].partition(".")[0],
        }
        files = ("set_vars", *parts)
        roles = [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": file}} for file in files]
        set_facts = {**facts, **more, "cacheable": True}
        path = self.folder / "play.yml"
        play = {
            "hosts": "all",
            "gather_facts": False,
            "environment": {"PATH": f"{self.folder}/programs:{os.environ['PATH']}", FOLDER: str(self.folder)},
            "vars": {"cuda_state_dir": str(self.folder / "state"), **variables},
            "tasks": [{"ansible.builtin.set_fact": set_facts}, *roles],
        }
        path.write_text(json.dumps([play]))
        return path
