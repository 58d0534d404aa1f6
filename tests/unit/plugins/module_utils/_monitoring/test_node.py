# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a reload of Prometheus is judged on its host, and what promtool is given."""

from __future__ import annotations

import base64
import os

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import node

METRICS = "prometheus_config_last_reload_successful {}\nprometheus_config_last_reload_success_timestamp_seconds {}\n"


def answer(*metrics: str, groups: str = '{"data": {"groups": [{"name": "a", "file": "/x/f.yml"}]}}'):
    found = iter(metrics)

    def get(url: str, method: str = "GET") -> str:
        return "" if method == "POST" else groups if url.endswith("/rules") else next(found)

    return get


@pytest.mark.parametrize(
    ("metrics", "groups", "refusal"),
    [
        ([METRICS.format(1, 10), METRICS.format(1, 10), METRICS.format(1, 11.5)], ["a"], None),
        ([METRICS.format(0, 10), METRICS.format(0, 10), METRICS.format(1, 12)], ["a"], None),
        ([METRICS.format(1, 10), METRICS.format(0, 10)], ["a"], "prometheus_config_last_reload_successful is 0"),
        # A pattern of rule_files that matches nothing loads without an error.
        (
            [METRICS.format(1, 10), METRICS.format(1, 11)],
            ["a", "b"],
            "it has the groups of rules a of f.yml, and not a, b",
        ),
        ([METRICS.format(1, 10), METRICS.format(1, 11)], [], "it has the groups of rules a of f.yml, and not none"),
    ],
)
def test_reload_is_judged_by_the_metrics_and_the_loaded_rules(metrics, groups, refusal) -> None:
    done = node.reload(
        "http", "p", "http://x", "f.yml", groups, get=answer(*metrics), run=lambda _: (1, "", ""), pause=lambda _: None
    )
    assert done == {"refusal": refusal, "log": []}


def test_log_with_errors_has_these() -> None:
    lines = "a\nts=1 level=error msg=bad\nts=2 level=info msg=fine\nts=3 level=warn msg=odd\n"
    assert node.read_log("p", lambda _: (0, lines, "")) == ["ts=1 level=error msg=bad", "ts=3 level=warn msg=odd"]
    assert node.read_log("p", lambda _: (0, "a\nb\nc\nd\n", "")) == ["b", "c", "d"]


def test_promtool_reads_copies_beside_the_files_that_are_removed(tmp_path) -> None:
    (tmp_path / "promtool").touch()
    path, rules = str(tmp_path / "prometheus.yml"), str(tmp_path / "gpu-kubernetes.rules.yml")
    observed = []

    def run(command):
        with open(command[-1], encoding="utf-8") as stream:
            observed.append(
                (command[1:3], os.path.dirname(command[-1]), stream.read(), os.stat(command[-1]).st_mode & 0o777)
            )
        return (
            (1, f"Checking {command[-1]}\n  FAILED: {command[-1]}: line 3: bad\n", "")
            if command[2] == "config"
            else (0, "", "")
        )

    encoded = [base64.b64encode(text).decode() for text in (b"rule_files: [gpu-kubernetes.rules.yml]", b"groups: []")]
    done = node.check(str(tmp_path / "promtool"), path, rules, *encoded, run=run)
    assert done == {"refusal": f"{path}: line 3: bad"}
    assert [each[0] for each in observed] == [["check", "rules"], ["check", "config"]]
    assert {each[1] for each in observed} == {str(tmp_path)}
    assert {each[3] for each in observed} == {0o600}
    # The copy of the configuration reads the copy of the rules.
    assert ".gpu-kubernetes.rules.yml.gpu-kubernetes-" in observed[1][2]
    assert sorted(os.listdir(tmp_path)) == ["promtool"]


def test_missing_promtool_is_reported_with_its_package() -> None:
    with pytest.raises(FilesError, match="install the package prometheus"):
        node.check("promtool-that-does-not-exist", "/x/p.yml", "/x/r.yml", "", None)


def test_prometheus_that_is_away_or_another_program_is_reported() -> None:
    def fail(url: str) -> str:
        raise OSError(f"{url}: refused")

    assert node.probe("http://x/", fail) == {"refusal": "http://x/metrics: refused"}
    assert node.probe("http://x", lambda _url: "up 1") == {
        "refusal": "http://x/metrics has no prometheus_config_last_reload_successful"
    }
    assert node.probe("http://x", lambda _url: METRICS.format(1, 10)) == {"refusal": None}


def test_folder_of_targets_is_removed_when_it_is_empty(tmp_path) -> None:
    folder = tmp_path / "gpu-targets"
    folder.mkdir()
    (folder / "gpu1.json").touch()
    assert node.tidy(str(folder)) == {"removed": False}
    (folder / "gpu1.json").unlink()
    assert node.tidy(str(folder)) == {"removed": True}
    assert node.tidy(str(folder)) == {"removed": False}
