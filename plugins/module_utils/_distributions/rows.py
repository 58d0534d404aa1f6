# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of Kubernetes distributions: how a node shows which one it has, whose files its daemons read, and what to do there.

A distribution is a row of DISTRIBUTIONS, and no other code names one. One that renders a daemon's file at each start has a hint, and edits
of that file are refused with it. One that overwrites the file with each of its runs has variables, and edits are made with a warning.
One that brings its own containerd says in `own_containerd` how that gets the NVIDIA runtime, and so on for `own_kubelet` and `own_scheduler`.
Sources: docs.k3s.io, docs.rke2.io, docs.k0sproject.io, microk8s.io/docs, and the roles of kubernetes-sigs/kubespray.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OwnContainerd:
    """The containerd that a distribution brings, and how the distribution lets others configure it.

    ``way`` is `automatic` (it adds the runtime by itself when it starts), `drop_in` (files in a folder) or `template` (a file from which
    ``config`` is rendered).
    """

    way: str
    #: What containerd reads. The distribution renders it, so that it is never edited.
    config: str
    socket: str
    #: containerd's program, of which the first that exists counts; a pattern may be in it.
    programs: tuple[str, ...]
    #: Systemd units that run it, each with a path that only hosts with this unit have; the last one is for all others.
    units: tuple[tuple[str, str], ...]
    #: The runtime that the distribution declares itself; empty for any name.
    handler: str = ""
    #: What is edited instead: the drop-in or the template.
    edited: str = ""
    #: Variables of the template with the values that it gives them by default.
    variables: tuple[tuple[str, str], ...] = ()
    #: Whether it reads changed drop-ins by itself, so that no unit has to be restarted.
    reloads: bool = False
    #: The distribution's own configuration: the folder of its drop-ins, and the key for the default runtime.
    settings_folder: str = ""
    default_key: str = ""
    #: Where it searches for the runtime's program before the PATH of its unit.
    program_folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnScheduler:
    """The kube-scheduler that a distribution starts itself, and how it gets arguments.

    ``way`` is `settings` (a drop-in of the distribution's own configuration) or `arguments` (a file with one argument on each line).
    """

    way: str
    #: Where the argument is written, and the key of the list of arguments in `settings`.
    file: str
    #: The configuration that is written, and the kubeconfig in it.
    config: str
    kubeconfig: str
    #: The systemd unit that runs it, which is restarted.
    unit: str
    key: str = ""


@dataclass(frozen=True)
class OwnKubelet:
    """The kubelet that a distribution starts itself with a folder of drop-ins, by the unit that runs the distribution's containerd."""

    #: What is written, and what releases that read the folder have in it.
    drop_in: str
    defaults: str
    #: The folder of drop-ins of the distribution's own configuration, and the key of the kubelet's flags in it.
    settings_folder: str
    key: str


@dataclass(frozen=True)
class Distribution:
    """One Kubernetes distribution. An empty field does not apply to it.

    ``containerd_path`` and ``containerd_mark`` are regular expressions for the path and the text of a file. Hints and variables complete
    sentences of the code that reads them.
    """

    name: str
    #: A path that only its nodes have.
    marker: str = ""
    #: containerd's files: rendered ones by their path, and its own by a comment in them, or by the file name of a runtime spec.
    containerd_path: str = ""
    containerd_mark: str = ""
    containerd_spec: str = ""
    #: What to do instead of editing such a file, or the variables that have to say the same.
    containerd_hint: str = ""
    containerd_variables: str = ""
    #: The containerd that it brings, None if the host has its own.
    own_containerd: OwnContainerd | None = None
    #: The kubelet's flags and configuration, where the kubelet does not run, and the folder of static pods.
    kubelet_flags: str = ""
    kubelet_config: str = ""
    static_pods: str = ""
    #: The kubelet that it starts itself, None if no drop-in is written.
    own_kubelet: OwnKubelet | None = None
    #: Where it takes the kubelet's settings from, instead of a file, and in which form: `arguments`, `flags` or `profile`.
    kubelet_hint: str = ""
    kubelet_form: str = ""
    kubelet_variables: str = ""
    #: The systemd units of which one runs the kubelet.
    kubelet_units: tuple[str, ...] = ("kubelet",)
    #: The kube-scheduler that it starts itself, None if that is a static pod of which the manifest is edited.
    own_scheduler: OwnScheduler | None = None
    #: Why kube-scheduler's manifest is not edited, and what to do instead.
    scheduler_hint: str = ""
    scheduler_variables: str = ""


_SECOND_SCHEDULER = "run a second scheduler with a schedulerName of its own"


def _rancher(
    name: str, marker: str, programs: tuple[str, ...], units: tuple[str, str], scheduler_hint: str
) -> Distribution:
    config, data = f"/etc/rancher/{name}/config.yaml", f"/var/lib/rancher/{name}"
    server, agent = units
    return Distribution(
        name,
        marker=marker,
        containerd_path=rf"\A/var/lib/rancher/{name}/agent/etc/containerd/config(-v3)?\.toml(\.tmpl)?\Z",
        containerd_mark=rf"(?im)^#.*File generated by {name}",
        containerd_hint=f"leave path out, so that {name} adds the runtime by itself when it starts, and put other settings into"
        ' config-v3.toml.tmpl (containerd 2; config.toml.tmpl for 1.x) below a first line {{ template "base" . }}',
        own_containerd=OwnContainerd(
            "automatic",
            config=f"{data}/agent/etc/containerd/config.toml",
            # The same for both.
            socket="/run/k3s/containerd/containerd.sock",
            programs=programs,
            units=((server, f"{data}/server/tls"), (agent, "")),
            handler="nvidia",
            settings_folder=f"{config}.d",
            default_key="default-runtime",
            program_folders=("/usr/local/nvidia/toolkit",),
        ),
        own_kubelet=OwnKubelet(
            # After 10-cli-config.conf and 20-cli-config-dir, the copies of what the arguments config and config-dir name.
            drop_in=f"{data}/agent/etc/kubelet.conf.d/50-gpu-kubernetes.conf",
            defaults=f"{data}/agent/etc/kubelet.conf.d/00-{name}-defaults.conf",
            settings_folder=f"{config}.d",
            key="kubelet-arg",
        ),
        kubelet_hint=f"kubelet-arg+ in a file of {config}.d",
        kubelet_form="arguments",
        kubelet_units=units,
        own_scheduler=OwnScheduler(
            "settings",
            file=f"{config}.d/50-gpu-kubernetes-scheduler.yaml",
            config=f"/etc/rancher/{name}/gpu-kubernetes/scheduler.yaml",
            kubeconfig=f"{data}/server/cred/scheduler.kubeconfig",
            unit=server,
            key="kube-scheduler-arg",
        ),
        scheduler_hint=f"{scheduler_hint} in {config}",
    )


#: What a node is taken for where nothing else is found.
DEFAULT = Distribution(
    "kubeadm",
    marker="/var/lib/kubelet/kubeadm-flags.env",
    kubelet_flags="/var/lib/kubelet/kubeadm-flags.env",
    kubelet_config="/var/lib/kubelet/config.yaml",
    static_pods="/etc/kubernetes/manifests",
)

#: A control plane of which nodes show nothing.
HIDDEN = Distribution("managed", scheduler_hint=f"{_SECOND_SCHEDULER} if the control plane is managed by others")

#: A node has the first one whose marker is there.
DISTRIBUTIONS: tuple[Distribution, ...] = (
    _rancher(
        "k3s",
        "/var/lib/rancher/k3s/agent",
        ("/var/lib/rancher/k3s/data/current/bin/containerd", "/var/lib/rancher/k3s/data/*/bin/containerd"),
        ("k3s", "k3s-agent"),
        f"kube-scheduler is a part of k3s: {_SECOND_SCHEDULER}, or give k3s its configuration with kube-scheduler-arg",
    ),
    _rancher(
        "rke2",
        "/etc/rancher/rke2",
        ("/var/lib/rancher/rke2/bin/containerd", "/var/lib/rancher/rke2/data/*/bin/containerd"),
        ("rke2-server", "rke2-agent"),
        f"RKE2 overwrites the manifest at each start: {_SECOND_SCHEDULER}, or give RKE2 its configuration with kube-scheduler-arg and"
        " kube-scheduler-extra-mount",
    ),
    Distribution(
        "k0s",
        marker="/etc/k0s",
        containerd_mark=r"(?i)\A\s*#\s*k0s_managed\s*=\s*true",
        containerd_hint="k0s rewrites a file with the first line k0s_managed=true, so leave path out for a drop-in in /etc/k0s/containerd.d, a"
        " folder that k0s imports",
        own_containerd=OwnContainerd(
            "drop_in",
            config="/etc/k0s/containerd.toml",
            socket="/run/k0s/containerd.sock",
            programs=("/var/lib/k0s/bin/containerd",),
            units=(("k0sworker", "/etc/systemd/system/k0sworker.service"), ("k0scontroller", "")),
            edited="/etc/k0s/containerd.d/50-gpu-kubernetes.toml",
            reloads=True,
        ),
        kubelet_hint="a profile among spec.workerProfiles of k0s.yaml, with which the worker is installed (--profile)",
        kubelet_form="profile",
        kubelet_units=("k0sworker", "k0scontroller"),
        scheduler_hint=f"kube-scheduler is run by k0s: {_SECOND_SCHEDULER}, or write a configuration with the extenders and"
        " clientConnection.kubeconfig: /var/lib/k0s/pki/scheduler.conf, without leaderElection, to a file that the user kube-scheduler can read,"
        " add `spec: {scheduler: {extraArgs: {config: FILE}}}` to k0s.yaml on each controller, and restart them one after another; without kube-proxy"
        " on the controllers, the extender needs the address of a node or of a load balancer",
    ),
    Distribution(
        "MicroK8s",
        marker="/var/snap/microk8s",
        containerd_path=r"/microk8s/.*/containerd\.toml\Z",
        containerd_hint="leave path out for its template, containerd-template.toml, which declares the runtime nvidia-container-runtime",
        own_containerd=OwnContainerd(
            "template",
            config="/var/snap/microk8s/current/args/containerd.toml",
            socket="/var/snap/microk8s/common/run/containerd.sock",
            programs=("/snap/microk8s/current/bin/containerd",),
            # As `snap restart microk8s.daemon-containerd`, which restarts this unit.
            units=(("snap.microk8s.daemon-containerd", ""),),
            handler="nvidia-container-runtime",
            edited="/var/snap/microk8s/current/args/containerd-template.toml",
            variables=(("${RUNTIME}", "runc"), ("${RUNTIME_TYPE}", "io.containerd.runc.v2")),
        ),
        own_scheduler=OwnScheduler(
            "arguments",
            file="/var/snap/microk8s/current/args/kube-scheduler",
            config="/var/snap/microk8s/current/args/gpu-kubernetes-scheduler.yaml",
            kubeconfig="/var/snap/microk8s/current/credentials/scheduler.config",
            unit="snap.microk8s.daemon-kubelite",
        ),
        kubelet_units=("snap.microk8s.daemon-kubelite",),
        kubelet_hint="lines in /var/snap/microk8s/current/args/kubelet",
        kubelet_form="flags",
        scheduler_hint=f"kube-scheduler is a part of MicroK8s: {_SECOND_SCHEDULER}, or give it its configuration in"
        " /var/snap/microk8s/current/args/kube-scheduler",
    ),
    Distribution(
        "kubespray",
        marker="/etc/kubernetes/kubelet-config.yaml",
        containerd_mark=r"(?im)^\s*#.*kubespray",
        containerd_spec="cri-base.json",
        containerd_variables="containerd_additional_runtimes (the runtime), containerd_default_runtime (the default) and enable_cdi",
        kubelet_config="/etc/kubernetes/kubelet-config.yaml",
        kubelet_variables="kube_reserved with kube_cpu_reserved, kube_memory_reserved …, system_reserved with its like, eviction_hard",
        scheduler_variables="kube_scheduler_extenders",
    ),
    DEFAULT,
    HIDDEN,
)
