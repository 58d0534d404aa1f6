# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import host


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A kernel with overlay loaded, ext4 known, nf_conntrack built in, and the bridge filter built in without a module name."""
    files = {
        "proc/modules": "overlay 151552 5 - Live 0x0\nip_tables 32768 2 - Live 0x0\n",
        "proc/filesystems": "nodev\tsysfs\n\text4\n",
        "lib/modules/6.1.0/modules.builtin": "kernel/net/netfilter/nf-conntrack.ko\nkernel/fs/fuse/fuse.ko\n",
        "proc/sys/net/bridge/bridge-nf-call-iptables": "1\n",
        "proc/sys/net/ipv4/ip_forward": "0\n",
        "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
        "proc/sys/net/ipv4/conf/eth0.1/forwarding": "1\n",
        "sys/module/zfs/version": "2\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("overlay", False),
        ("br_netfilter", False),
        ("nf_conntrack", False),
        ("ip-tables", False),
        ("fuse", False),
        ("ext4", False),
        ("zfs", False),
        ("vfio_pci", True),
    ],
)
def test_find_missing_modules_of_each_kind(root: Path, name: str, missing: bool) -> None:
    assert host.find_missing_modules([name], "6.1.0", str(root)) == ([name] if missing else [])


def test_find_missing_modules_without_proc_lists_all(tmp_path: Path) -> None:
    assert host.find_missing_modules(["overlay", "br_netfilter"], "6.1.0", str(tmp_path)) == [
        "overlay",
        "br_netfilter",
    ]


def test_find_differing_sysctls_compares_values(root: Path) -> None:
    desired = {
        "net.ipv4.ip_forward": "1",
        "net.bridge.bridge-nf-call-iptables": "1",
        "net.ipv4.ip_local_port_range": "32768 60999",
        "net/ipv4/conf/eth0.1/forwarding": "0",
        "net.ipv4.conf.eth0/1.forwarding": "1",
        "vm.no_such": "1",
    }
    assert host.find_differing_sysctls(desired, str(root)) == {
        "net.ipv4.ip_forward": "0",
        "net/ipv4/conf/eth0.1/forwarding": "1",
        "vm.no_such": None,
    }


def test_write_sysctl_sets_value(root: Path) -> None:
    host.write_sysctl("net.ipv4.ip_forward", "1", str(root))
    assert host.find_differing_sysctls({"net.ipv4.ip_forward": "1"}, str(root)) == {}
    with pytest.raises(OSError, match="No such file"):
        host.write_sysctl("no.such.name", "1", str(root))
