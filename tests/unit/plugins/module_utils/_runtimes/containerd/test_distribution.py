# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containerd of each distribution: what is written beside its rendered file, and that an undo restores each byte."""

from __future__ import annotations

import typing as t
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.apply import Host, build_result
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.validate import run
from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions import named
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import distribution, unit
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.daemon import (
    read_release,
    validate_file,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.plan import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import Release
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import distribution_files as rendered
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.containerd.test_real import PROGRAMS
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import load_file

V2, V3 = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
CRUN = {"plugins": {V3: {"containerd": {"runtimes": {"crun": {"runtime_type": "x"}}}}}}
NVIDIA = {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"}}
SHOWN = "Environment=\nExecStart={ path=/usr/local/bin/k3s ; argv[]=/usr/local/bin/k3s agent ; ignore_errors=no }\n"


class Machine:
    """A host of a distribution in a directory, with a fake of its containerd and of systemctl."""

    def __init__(self, root: Path, name: str, content: str, release: str = "2.2.3", shown: str = SHOWN) -> None:
        own = named(name).own_containerd
        assert own is not None
        program = root / "bin" / "containerd"
        program.parent.mkdir()
        program.write_text("", encoding="utf-8")

        def move(path: str) -> str:
            return f"{root}{path}" if path else ""

        self.place = unit.Place(
            name,
            replace(
                own,
                config=move(own.config),
                edited=move(own.edited),
                settings_folder=move(own.settings_folder),
                programs=(str(program),),
            ),
        )
        self.config, self.edited = Path(self.place.own.config), Path(self.place.own.edited)
        self.settings = Path(self.place.own.settings_folder) / "50-gpu-kubernetes.yaml"
        self.root, self.release, self.shown, self.validate = root, release, shown, False
        self.config.parent.mkdir(parents=True)
        self.config.write_text(content.replace("{folder}", str(self.edited.parent)), encoding="utf-8")

    def execute(self, command: t.Sequence[str]) -> tuple[int, str, str]:
        if command[0] == "systemctl":
            return 0, self.shown, ""
        assert list(command[1:]) == ["--version"]
        return 0, f"containerd github.com/containerd/containerd v{self.release} abc\n", ""

    def use(self, program: str) -> None:
        """Use a real containerd."""
        self.place = replace(self.place, own=replace(self.place.own, programs=(program,)))
        self.validate = True

    def run(self, state: str, check: bool = False, **requested: t.Any) -> dict[str, t.Any]:
        host = Host(
            state_dir=str(self.root / "state"),
            lock_dirs=(str(self.root / "lock"),),
            check_mode=check,
            validate=self.validate,
            workdir=str(self.root) if self.validate else None,
            execute=run if self.validate else self.execute,
        )
        done = list(
            distribution.apply(self.place, Request(path="/etc/containerd/config.toml", **requested), state, host)
        )
        warnings = [warning for _daemon, outcome in done for warning in outcome.warnings]
        return {**build_result(done, True), "warnings": warnings}

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and path.relative_to(self.root).parts[0] not in ("state", "lock")
        }

    def try_quartet(self, **requested: t.Any) -> dict[str, t.Any]:
        """Check, apply, check and apply again, and undo; return the first result."""
        before = self.files()
        predicted = self.run("present", check=True, **requested)
        assert predicted["changed"]
        assert self.files() == before
        done = self.run("present", **requested)
        assert (done["changed"], done["reasons"]) == (True, predicted["reasons"])
        assert not self.run("present", check=True, **requested)["changed"]
        assert not self.run("present", **requested)["changed"]
        self.written = self.files()
        name = {"runtime_name": requested["runtime_name"]} if "runtime_name" in requested else {}
        assert self.run("absent", check=True, **name)["changed"]
        assert self.run("absent", **name)["changed"]
        assert self.files() == before
        assert not self.run("absent", **name)["changed"]
        return done


class TestAutomatic:
    @pytest.mark.parametrize("content", [rendered.RANCHER_V2, rendered.RANCHER_V3, rendered.RANCHER_V3_IMPORTS])
    @pytest.mark.parametrize("name", ["k3s", "rke2"])
    def test_default_runtime_is_a_drop_in_of_the_distribution(self, tmp_path: Path, name: str, content: str) -> None:
        machine = Machine(tmp_path, name, content)
        done = machine.try_quartet(set_default=True)
        text = machine.written[str(machine.settings.relative_to(tmp_path))].decode()
        assert yaml.safe_load(text) == {"default-runtime": "nvidia"}
        assert "\t" not in text
        assert (done["files"], done["default_runtime_name"]) == ([str(machine.settings)], "nvidia")
        assert done["config_version"] == (2 if content == rendered.RANCHER_V2 else 3)
        assert done["restart_required"]

    def test_without_a_default_nothing_is_written(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V2)
        before = machine.files()
        done = machine.run("present")
        assert (done["changed"], done["systemd_cgroup"], machine.files()) == (False, True, before)

    def test_default_is_kept_unless_it_is_requested_otherwise(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V3)
        machine.run("present", set_default=True)
        assert not machine.run("present")["changed"]
        assert machine.run("present", set_default=False)["changed"]
        assert not machine.settings.exists()

    @pytest.mark.parametrize(
        ("requested", "words"),
        [
            ({"runtime_name": "gpu"}, "declares the NVIDIA runtime as nvidia"),
            (
                {"settings": {"oom_score": 1}},
                r"settings\.oom_score cannot be set here, since k3s renders .*config-v3\.toml\.tmpl",
            ),
            ({"enable_cdi": True, "systemd_cgroup": True}, "enable_cdi and systemd_cgroup cannot be set here"),
            (
                {"runtime_path": "/opt/nvidia/nvidia-container-runtime"},
                "none of the folders of .*add /opt/nvidia to PATH",
            ),
        ],
    )
    def test_impossible_request_is_refused(self, tmp_path: Path, requested: dict[str, t.Any], words: str) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V3)
        with pytest.raises(ConfigError, match=words):
            machine.run("present", **requested)

    def test_later_file_and_flag_of_another_default_are_refused(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V3)
        machine.settings.parent.mkdir(parents=True)
        later = machine.settings.with_name("60-site.yaml")
        later.write_text("default-runtime: crun # site\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"60-site\.yaml sets default-runtime to crun"):
            machine.run("present", set_default=True)
        later.rename(machine.settings.with_name("10-site.yaml"))
        assert machine.run("present", set_default=True)["changed"]
        machine.shown = SHOWN.replace("k3s agent", "k3s agent --default-runtime=crun")
        with pytest.raises(ConfigError, match="is started with --default-runtime=crun"):
            machine.run("present", set_default=True)

    @pytest.mark.parametrize(
        ("content", "file"),
        [
            (rendered.RANCHER_V2, "config.toml.tmpl"),
            (rendered.RANCHER_V3, "config-v3.toml.tmpl"),
            (rendered.RANCHER_V3_IMPORTS, "config-v3.toml.d/50-gpu-kubernetes.toml"),
        ],
    )
    def test_further_settings_are_in_a_drop_in_or_a_template(self, tmp_path: Path, content: str, file: str) -> None:
        folder = tmp_path / named("k3s").own_containerd.config[1:]  # type: ignore[union-attr]
        machine = Machine(tmp_path, "k3s", content.replace("{folder}", f"{folder.parent}/config-v3.toml.d"))
        machine.try_quartet(settings=CRUN, set_default=True)
        written = machine.written[str((machine.config.parent / file).relative_to(tmp_path))].decode()
        assert written.startswith('{{ template "base" . }}\n\n# BEGIN managed') == file.endswith(".tmpl")
        body = "".join(line for line in written.splitlines(keepends=True) if "{{" not in line)
        assert loads(body)["plugins"][V3]["containerd"]["runtimes"] == {"crun": {"runtime_type": "x"}}

    def test_template_of_others_keeps_its_lines(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V3)
        template = machine.config.with_name("config-v3.toml.tmpl")
        template.write_text('{{ template "base" . }}\n[debug]\nlevel = "debug"\n', encoding="utf-8")
        machine.try_quartet(settings=CRUN)
        machine.run("present", settings=CRUN)
        template.write_text(template.read_text(encoding="utf-8") + "# later\n", encoding="utf-8")
        machine.run("absent")
        assert template.read_text(encoding="utf-8") == '{{ template "base" . }}\n[debug]\nlevel = "debug"\n# later\n'

    def test_template_without_a_last_line_break_is_refused(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V3)
        machine.config.with_name("config-v3.toml.tmpl").write_text("# ours", encoding="utf-8")
        with pytest.raises(ConfigError, match="its last line has no end"):
            machine.run("present", settings=CRUN)

    @pytest.mark.parametrize(
        "settings",
        [
            {"enable_selinux": True},
            {"containerd": {"runtimes": {"runc": {"pod_annotations": ["x"]}}}},
        ],
    )
    def test_table_that_is_rendered_is_not_restated(self, tmp_path: Path, settings: dict[str, t.Any]) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V3)
        before = machine.files()
        with pytest.raises(ConfigError, match="would have a table or setting twice"):
            machine.run("present", settings={"plugins": {V3: settings}})
        assert machine.files() == before

    def test_second_run_compares_with_the_rendered_block(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V3)
        machine.run("present", settings=CRUN)
        template = machine.config.with_name("config-v3.toml.tmpl").read_text(encoding="utf-8")
        # As it is after the restart.
        machine.config.write_text(template.replace('{{ template "base" . }}\n', rendered.RANCHER_V3), encoding="utf-8")
        assert not machine.run("present", settings=CRUN)["changed"]
        more = {"plugins": {V3: {"containerd": {"runtimes": {"crun": {"runtime_type": "y"}}}}}}
        assert machine.run("present", settings=more)["changed"]

    def test_containerd_not_unpacked_yet_is_refused(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k3s", rendered.RANCHER_V3)
        (tmp_path / "bin" / "containerd").unlink()
        with pytest.raises(ConfigError, match=r"has not unpacked its containerd yet .*: start k3s"):
            machine.run("present")


class TestDropIn:
    def test_version_3_has_only_the_runtime(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k0s", rendered.K0S_V3)
        done = machine.try_quartet(set_default=True)
        assert done["files"] == [str(machine.edited), str(machine.config)]
        machine.run("present")
        assert load_file(machine.edited) == {
            "version": 3,
            "plugins": {V3: {"containerd": {"runtimes": {"nvidia": NVIDIA}}}},
        }

    def test_version_2_restates_runc(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k0s", rendered.K0S_V2, "1.7.29")
        machine.try_quartet()
        machine.run("present", set_default=True)
        assert load_file(machine.edited) == {
            "version": 2,
            "plugins": {
                V2: {
                    "containerd": {
                        "default_runtime_name": "nvidia",
                        "runtimes": {"runc": {"runtime_type": "io.containerd.runc.v2"}, "nvidia": NVIDIA},
                    }
                }
            },
        }

    def test_version_2_has_the_cgroup_driver_of_other_drop_ins(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k0s", rendered.K0S_V2, "1.7.29")
        machine.edited.parent.mkdir()
        machine.edited.with_name("10-cgroup.toml").write_text(rendered.K0S_SYSTEMD, encoding="utf-8")
        machine.try_quartet()
        machine.run("present")
        runtimes = load_file(machine.edited)["plugins"][V2]["containerd"]["runtimes"]
        assert {name: runtime["options"]["SystemdCgroup"] for name, runtime in runtimes.items()} == {
            "runc": True,
            "nvidia": True,
        }

    def test_drop_in_that_stops_containerd_is_refused(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "k0s", rendered.K0S_V3)
        machine.edited.parent.mkdir()
        machine.edited.with_name("10-cgroup.toml").write_text(rendered.K0S_SYSTEMD, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"10-cgroup\.toml is of a version other than 3"):
            machine.run("present")
        assert not machine.edited.exists()

    def test_file_of_the_administrator_is_edited_with_its_import(self, tmp_path: Path) -> None:
        content = rendered.K0S_V3.replace("# k0s_managed=true\n", "").replace('imports = ["{folder}/*.toml"]\n', "")
        machine = Machine(tmp_path, "k0s", content)
        machine.try_quartet()
        assert f"imports = ['{machine.edited}']".encode() in machine.written[str(machine.config.relative_to(tmp_path))]


@pytest.mark.parametrize(
    ("tree", "release", "is_accepted"),
    [
        ({}, Release(2, 2), True),
        ({"version": 3}, Release(2, 2), True),
        ({"version": 2}, Release(2, 2), False),
        ({"version": 4}, Release(2, 3), False),
        ({"plugins": {V2: {}}}, Release(2, 2), False),
        ({"version": 3, "plugins": {V2: {"stream_server_port": "0"}}}, Release(2, 2), False),
        ({"version": 2, "plugins": {V2: {}}}, Release(1, 7), True),
    ],
)
def test_check_drop_ins_accepts_what_the_distribution_starts_with(
    tree: dict[str, t.Any], release: Release, is_accepted: bool
) -> None:
    if is_accepted:
        distribution.check_drop_ins({"/d/x.toml": tree}, release, "k0s")
    else:
        with pytest.raises(ConfigError, match=r"/d/x\.toml is of a version other than 3"):
            distribution.check_drop_ins({"/d/x.toml": tree}, release, "k0s")


class TestTemplate:
    def machine(self, root: Path) -> Machine:
        machine = Machine(root, "MicroK8s", "# rendered\n", "1.7.29")
        machine.edited.write_text(rendered.MICROK8S, encoding="utf-8")
        return machine

    def test_template_gets_the_absolute_path(self, tmp_path: Path) -> None:
        machine = self.machine(tmp_path)
        done = machine.try_quartet(runtime_name="nvidia-container-runtime")
        after = machine.written[str(machine.edited.relative_to(tmp_path))].decode()
        assert after == rendered.MICROK8S.replace('= "nvidia-container', '= "/usr/bin/nvidia-container')
        assert done["files"] == [str(machine.edited)]
        assert not [warning for warning in done["warnings"] if "runtime_type" in warning]

    def test_default_runtime_replaces_the_variable(self, tmp_path: Path) -> None:
        machine = self.machine(tmp_path)
        machine.try_quartet(runtime_name="nvidia-container-runtime", set_default=True)
        after = machine.written[str(machine.edited.relative_to(tmp_path))].decode()
        assert 'default_runtime_name = "nvidia-container-runtime"' in after

    def test_another_name_is_refused_with_the_variable(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"containerd_nvidia_runtime_name.* to nvidia-container-runtime"):
            self.machine(tmp_path).run("present")

    def test_missing_template_is_refused(self, tmp_path: Path) -> None:
        machine = self.machine(tmp_path)
        machine.edited.unlink()
        with pytest.raises(ConfigError, match="has no template"):
            machine.run("present", runtime_name="nvidia-container-runtime")


@pytest.mark.skipif(not PROGRAMS, reason="no containerd is installed")
@pytest.mark.parametrize("program", PROGRAMS or [""], ids=lambda path: Path(path).parent.name)
class TestRealContainerd:
    def dump(self, machine: Machine, program: str, file: Path) -> dict[str, t.Any]:
        verdict = validate_file(program, str(file), file.read_bytes(), str(machine.root))
        assert verdict.refusal is None
        plugins = verdict.effective["plugins"]
        section: dict[str, t.Any] = (plugins.get(V3) or plugins[V2])["containerd"]
        return section

    def test_drop_in_keeps_runc_and_adds_the_runtime(self, tmp_path: Path, program: str) -> None:
        release = read_release(program)
        assert release is not None
        is_second = release.merges_imports
        machine = Machine(tmp_path, "k0s", rendered.K0S_V3 if is_second else rendered.K0S_V2)
        machine.use(program)
        machine.try_quartet(set_default=True)
        machine.run("present", set_default=True)
        section = self.dump(machine, program, machine.config if is_second else machine.edited)
        assert section["default_runtime_name"] == "nvidia"
        assert sorted(section["runtimes"]) == ["nvidia", "runc"]
        assert section["runtimes"]["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"

    def test_template_is_accepted_with_its_variables(self, tmp_path: Path, program: str) -> None:
        machine = Machine(tmp_path, "MicroK8s", "# rendered\n")
        machine.edited.write_text(rendered.MICROK8S, encoding="utf-8")
        machine.use(program)
        machine.try_quartet(runtime_name="nvidia-container-runtime")
        machine.run("present", runtime_name="nvidia-container-runtime")
        runtimes = self.dump(machine, program, machine.edited)["runtimes"]
        assert sorted(runtimes) == ["nvidia-container-runtime", "runc"]
        assert [bool(each["options"].get("SystemdCgroup")) for each in runtimes.values()] == [False, False]

    def test_further_settings_are_accepted_in_drop_in_and_template(self, tmp_path: Path, program: str) -> None:
        release = read_release(program)
        assert release is not None
        content = rendered.RANCHER_V3 if release.merges_imports else rendered.RANCHER_V2
        machine = Machine(tmp_path, "k3s", content)
        machine.use(program)
        plugin = V3 if release.merges_imports else V2
        runtime = {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/crun"}}
        settings = {"plugins": {plugin: {"containerd": {"runtimes": {"crun": runtime}}}}}
        machine.try_quartet(settings=settings)
        if release.merges_imports:
            folder = machine.config.parent / "config-v3.toml.d"
            machine.config.write_text(rendered.RANCHER_V3_IMPORTS.replace("{folder}", str(folder)), encoding="utf-8")
            machine.try_quartet(settings=settings)
            machine.run("present", settings=settings)
            assert sorted(self.dump(machine, program, machine.config)["runtimes"]) == ["crun", "runc"]
