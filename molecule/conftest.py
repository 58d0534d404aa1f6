# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of all scenarios: playbooks as a user runs them, and the cluster's API without a role in between."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import testinfra
import yaml
from kubernetes import client
from kubernetes import config as kubeconfig
from kubernetes.client.exceptions import ApiException

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))  # Molecule without the gates has no PYTHONPATH

from lab import fingerprint as prints  # noqa: E402
from lab import nodes  # noqa: E402
from lab.settings import Settings, from_environment  # noqa: E402
from lab.wait import until  # noqa: E402

# No image of the lab has a shell: pods use the machine's programs.
LIBRARIES = "/host/usr/lib/x86_64-linux-gnu"
SLEEP = [f"{LIBRARIES}/ld-linux-x86-64.so.2", "--library-path", LIBRARIES, "/host/usr/bin/sleep", "1000"]
LAB = ROOT / ".lab" / os.environ.get("LAB_NAME", "molecule")
Recap = dict[str, dict[str, int]]
Act = Callable[[subprocess.Popen[str]], object]


def _is_thorough() -> bool:
    return os.environ.get("GATES_TIER") != "merge"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the JUnit file of a run of the verifier, build/reports/$GATES_REPORT-N.xml, before pytest's own plugin reads the option."""
    name, folder = os.environ.get("GATES_REPORT"), ROOT / "build" / "reports"
    if name and not config.option.xmlpath:
        folder.mkdir(parents=True, exist_ok=True)
        config.option.xmlpath = str(folder / f"{name}-{len(list(folder.glob(f'{name}-*.xml'))) + 1}.xml")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are marked thorough, in `make test`."""
    deselected = [item for item in items if not _is_thorough() and item.get_closest_marker("thorough")]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in deselected]


@pytest.fixture(scope="session")
def is_thorough() -> bool:
    """Whether the tests that are marked thorough run, too."""
    return _is_thorough()


@pytest.fixture(scope="session")
def settings() -> Settings:
    """The lab of the scenario."""
    return from_environment()


@pytest.fixture(scope="session")
def api() -> client.CoreV1Api:
    """The core API as the cluster's administrator."""
    return client.CoreV1Api(kubeconfig.new_client_from_config(str(LAB / "kubeconfig")))


@pytest.fixture(scope="session")
def apps(api: client.CoreV1Api) -> client.AppsV1Api:
    """The apps API of the same cluster."""
    return client.AppsV1Api(api.api_client)


@pytest.fixture(scope="session")
def inventory() -> dict[str, Any]:
    """The scenario's inventory as data."""
    return yaml.safe_load((LAB / "inventory.yml").read_text())


@pytest.fixture(scope="session")
def get_machine() -> Callable[[str], Any]:
    """Return a machine of the scenario by its name, for tests with another host."""
    return lambda name: testinfra.get_host(f"ansible://{name}?ansible_inventory={LAB / 'inventory.yml'}")


@pytest.fixture
def count_simulated_gpus(host: Any) -> Callable[[], int]:
    """Count the GPU device nodes on the machine itself."""

    def count() -> int:
        return sum(bool(re.fullmatch(r"nvidia\d+", name)) for name in host.file("/dev").listdir())

    return count


def _delete_pods(api: client.CoreV1Api, names: list[str]) -> None:
    """Delete pods of the namespace default, and wait until they are gone."""
    for name in names:
        try:
            api.delete_namespaced_pod(name, "default", grace_period_seconds=0)
        except ApiException as error:
            if error.status != 404:
                raise
    until(
        lambda: [pod.metadata.name for pod in api.list_namespaced_pod("default").items if pod.metadata.name in names],
        lambda left: not left,
    )


@contextlib.contextmanager
def _open_gpu_pods(api: client.CoreV1Api, inventory: dict[str, Any]) -> Iterator[Callable[..., client.V1Pod]]:
    created: list[str] = []
    # If it is the default, gpushare's extender may be one that binds no pod with a runtime class.
    default = inventory["all"]["vars"].get("containerd_nvidia_set_default", False)
    runtime = {} if default else {"runtimeClassName": "nvidia"}

    def read_status(name: str) -> tuple[str, list[str]]:
        status = api.read_namespaced_pod(name, "default").status
        return status.phase, [
            each.message for each in status.conditions or [] if each.status == "False" and each.message
        ]

    def start(amount: int, resource: str, node: str, pending_reason: str = "") -> client.V1Pod:
        container = {
            "name": "gpu",
            "image": "lab.local/fake/cuda-sample:vectoradd",
            "command": SLEEP,
            "resources": {"limits": {resource: str(amount)}},
            "volumeMounts": [{"name": "host", "mountPath": "/host", "readOnly": True}],
        }
        spec = {
            **runtime,
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [container],
            "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
        }
        name = api.create_namespaced_pod("default", {"metadata": {"generateName": "job-"}, "spec": spec}).metadata.name
        created.append(name)
        if pending_reason:
            until(lambda: read_status(name), lambda found: any(pending_reason in reason for reason in found[1]))
        else:
            until(lambda: read_status(name), lambda found: found[0] == "Running")
        pod = api.read_namespaced_pod(name, "default")
        assert (pod.spec.node_name is None) is bool(pending_reason)
        return pod

    try:
        yield start
    finally:
        _delete_pods(api, created)


@pytest.fixture
def start_gpu_pod(api: client.CoreV1Api, inventory: dict[str, Any]) -> Iterator[Callable[..., client.V1Pod]]:
    """Start a pod that requests an amount of a resource on a node, and wait until it runs or is pending for *pending_reason*.

    All pods are deleted after the test.
    """
    with _open_gpu_pods(api, inventory) as start:
        yield start


@pytest.fixture(scope="module")
def start_lasting_gpu_pod(api: client.CoreV1Api, inventory: dict[str, Any]) -> Iterator[Callable[..., client.V1Pod]]:
    """Start pods that several tests of a file use; all are deleted after the last test."""
    with _open_gpu_pods(api, inventory) as start:
        yield start


@pytest.fixture
def read_allocatable(api: client.CoreV1Api) -> Callable[[str], dict[str, str]]:
    """Read the allocatable GPU resources of a node: resource -> amount."""

    def read(name: str) -> dict[str, str]:
        allocatable = api.read_node(name).status.allocatable
        return {
            key: amount for key, amount in allocatable.items() if key.startswith(prints.GPU_RESOURCES) and amount != "0"
        }

    return read


@pytest.fixture
def watch_owners(api: client.CoreV1Api) -> Callable[[str], contextlib.AbstractContextManager[None]]:
    """Watch in a block which pods on a node run and use the kubelet's folder of device plugins: at no time more than one."""

    def is_owner(pod: client.V1Pod) -> bool:
        folders = [volume.host_path.path for volume in pod.spec.volumes or [] if volume.host_path]
        running = [each for each in pod.status.container_statuses or [] if each.state.running]
        return bool(running) and any(folder.startswith("/var/lib/kubelet/device-plugins") for folder in folders)

    @contextlib.contextmanager
    def watch(node: str) -> Iterator[None]:
        ended, observed, errors = threading.Event(), set(), []

        def look() -> None:
            while not ended.wait(0.5):
                try:
                    pods = api.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={node}").items
                except Exception as error:
                    errors.append(error)
                else:
                    observed.add(tuple(sorted(pod.metadata.name for pod in pods if is_owner(pod))))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        assert observed, f"nothing was observed: {errors[:1]}"
        assert [names for names in observed if len(names) > 1] == []

    return watch


def _recap(output: str) -> Recap:
    """Host -> counts, from the recap that ansible-playbook prints last."""
    lines = output.partition("PLAY RECAP")[2].splitlines()
    found = (re.match(r"^(\S+)\s+: (ok=.*)$", line) for line in lines)
    return {
        match[1]: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", match[2])} for match in found if match
    }


def _find_process_tree(pid: int) -> list[int]:
    """A process and all its descendants, also those in other sessions, such as Ansible's workers."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    pids = [pid]
    for each in pids:  # the loop appends to the list
        pids += [child for child, parent in parents.items() if parent == each]
    return pids


def _kill_process_tree(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGSTOP)  # it starts no further process
    for each in _find_process_tree(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@pytest.fixture(scope="session")
def playbook() -> Callable[..., tuple[int, Recap, str]]:
    """Run a playbook of the collection, or any by its path, as a user would: exit code, recap, output.

    *at* maps regular expressions to functions of the process. Each is called at the first line that matches; each has to match.
    """

    def run(name: str, *words: str, at: Mapping[str, Act] | None = None) -> tuple[int, Recap, str]:
        path = name if name.endswith(".yml") else f"playbooks/{name}.yml"
        waiting, lines = dict(at or {}), []
        with subprocess.Popen(
            ["ansible-playbook", "-i", str(LAB / "inventory.yml"), path, *words],
            cwd=ROOT,
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_FORCE_COLOR": "0",
                "PYTHONUNBUFFERED": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                for line in process.stdout or ():
                    lines.append(line)
                    for pattern in [each for each in waiting if re.search(each, line)]:
                        waiting.pop(pattern)(process)
            except BaseException:
                _kill_process_tree(process)
                raise
        printed = "".join(lines)
        assert not waiting, f"no line matched {' or '.join(waiting)}:\n{''.join(lines[-40:])}"
        return process.returncode, _recap(printed), printed

    return run


@pytest.fixture
def run_doctor(
    playbook: Callable[..., tuple[int, Recap, str]], tmp_path: Path
) -> Callable[..., tuple[list[tuple[str, str, list[str]]], dict[str, Any]]]:
    """Run the doctor with further variables: id, verdict and hosts of each cause, and the report. The run fails as the report's exit code says."""
    file = tmp_path / "doctor.json"

    def run(**variables: Any) -> tuple[list[tuple[str, str, list[str]]], dict[str, Any]]:
        file.unlink(missing_ok=True)
        extra = {**variables, "gpu_doctor_outputs": {"json": str(file)}}
        code, _recap, printed = playbook("diagnose_gpu_nodes", "-e", json.dumps(extra))
        assert file.exists(), printed
        report = json.loads(file.read_text(encoding="utf-8"))
        assert (code != 0) == (report["exit_code"] != 0), printed
        return [(each["id"], each["verdict"], each["hosts"]) for each in report["causes"]], report

    return run


@pytest.fixture
def kill_run_at(playbook: Callable[..., tuple[int, Recap, str]]) -> Callable[..., None]:
    """Run a playbook, and kill it and its descendants when it begins a task of that name. The task has to wait for something.

    With *condition*, kill it when the condition holds, in the task or later.
    """

    def run(name: str, task: str, *words: str, condition: Callable[[], object] | None = None) -> None:
        def act(process: subprocess.Popen[str]) -> None:
            if condition:
                until(lambda: condition() or process.poll() is not None)
            _kill_process_tree(process)

        code, _recap, printed = playbook(name, *words, at={rf"^TASK \[.*{re.escape(task)}": act})
        assert code == -signal.SIGKILL, printed

    return run


@pytest.fixture
def wait_without_ssh(settings: Settings) -> Callable[[list[str], str, str], None]:
    """Stop ssh of nodes, require that a command succeeds in each, wait until another one does, and start ssh again."""

    def run(names: list[str], changed: str, restored: str) -> None:
        chosen = [node for node in settings.nodes if node.name in names]

        def run_in(command: str) -> list[str]:
            return [nodes.execute(node, "sh", "-c", command, check=False).strip() for node in chosen]

        run_in("systemctl stop ssh.socket ssh")
        try:
            assert run_in(f"{changed} && echo yes") == ["yes"] * len(names)
            until(lambda: run_in(f"{restored} && echo yes"), lambda found: found == ["yes"] * len(names), seconds=300)
        finally:
            run_in("systemctl start ssh.socket ssh")

    return run


@pytest.fixture
def api_server_outage(
    settings: Settings, api: client.CoreV1Api
) -> Iterator[tuple[Callable[..., object], Callable[..., object]]]:
    """Two functions, of which the first takes the API server away, and the second brings it back and waits until it answers."""
    manifest, away, node = (
        "/etc/kubernetes/manifests/kube-apiserver.yaml",
        "/root/kube-apiserver.yaml",
        settings.nodes[0],
    )

    def answers() -> bool:
        try:
            return bool(api.list_node().items)
        except Exception:  # each layer of the client has its own
            return False

    def end(*_process: object) -> None:
        nodes.execute(node, "sh", "-c", f"test ! -e {away} || mv {away} {manifest}")
        until(answers, bool)

    def begin(*_process: object) -> None:
        nodes.execute(node, "mv", manifest, away)
        until(answers, lambda found: not found)

    yield begin, end
    end()


@pytest.fixture
def fingerprint(settings: Settings, api: client.CoreV1Api) -> Callable[[], dict[str, str]]:
    """All that the collection can change, with containerd's process, the kernel modules and the versions of objects."""
    show = "systemctl show containerd --property=ExecMainPID; cut -d' ' -f1 /proc/modules | sort"
    classes = client.NodeV1Api(api.api_client)

    def versions(items: list[Any]) -> str:
        found = (item.metadata for item in items)
        return "\n".join(sorted(f"{each.namespace}/{each.name} {each.resource_version}" for each in found))

    def take() -> dict[str, str]:
        return {
            **prints.take(settings),
            **{f"{node.name} runs": nodes.execute(node, "sh", "-c", show) for node in settings.nodes},
            "versions of config maps": versions(api.list_config_map_for_all_namespaces().items),
            "versions of runtime classes": versions(classes.list_runtime_class().items),
        }

    return take


def _read_failures(printed: str) -> list[str]:
    """The messages of the failed tasks of a run, one string a host."""
    flat = " ".join(printed.split())
    return re.findall(r"(?:fatal|failed): \[\S+?\].*?\"msg\": \"(.*?)\"(?:,|\}| \})", flat) or re.findall(
        r"\[ERROR\]: Task failed: (?:Module failed: |Action failed: )?(.*?)(?= Origin: | Task failed|$)", flat
    )


@pytest.fixture
def expect_refusal(
    playbook: Callable[..., tuple[int, Recap, str]], fingerprint: Callable[[], dict[str, str]]
) -> Callable[..., None]:
    """Run site, and require that it fails without a change and that one message has all the words."""

    def run(options: list[str], *words: str) -> None:
        before = fingerprint()
        code, _recap, printed = playbook("site", *options)
        assert code != 0, printed
        found = _read_failures(printed)
        assert any(all(word in sentence for word in words) for sentence in found), printed
        assert "Traceback" not in printed
        assert prints.compare(before, fingerprint()) == []

    return run
