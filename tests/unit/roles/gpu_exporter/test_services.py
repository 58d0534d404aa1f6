# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles that change drivers and MIG devices stop the exporter's service."""

from __future__ import annotations

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT


def load(path):
    return yaml.safe_load((ROOT / "roles" / path).read_text(encoding="utf-8"))


def test_service_is_stopped_for_drivers_and_mig():
    unit = load("gpu_exporter/vars/main/main.yml")["__gpu_exporter_unit"]
    assert unit in load("nvidia_driver_upgrade/defaults/main.yml")["nvidia_driver_upgrade_services"]
    assert unit in load("mig/defaults/main.yml")["mig_services"]
    # By the name of its process, which the kernel truncates to 15 characters.
    assert load("nvidia_driver/vars/main.yml")["__nvidia_driver_services"][unit[:15]] == unit


def test_pods_leave_nodes_whose_driver_or_partitions_change():
    text = (ROOT / "roles/k8s_device_plugin/tasks/api_node_absent.yml").read_text(encoding="utf-8")
    labels = load("gpu_exporter/vars/main/daemon_set.yml")["__gpu_exporter_labels"]
    assert all(f"{key}={value}" in text for key, value in labels.items())
