# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of Prometheus change, without a Prometheus."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.controller import build_result
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.redact import MASK
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import config, scrape
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.config import Observed, Params

pytest.importorskip("ruamel.yaml")

from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip

SYNTAX = RoundTrip()
PATH = "/etc/prometheus/prometheus.yml"
CONFIG = b"# Own.\nglobal: {}\nrule_files: []\nscrape_configs:\n- job_name: node\n"
TARGET = scrape.build_target("gpu1", {"address": "10.0.0.11:9835", "exporter": "x"}, "gpu1", 8, {"rack": "a"})


def apply(observed: Observed, plan) -> Observed:
    """The files after the steps of a plan."""
    after = {step.path: step.after for step in plan.steps}
    targets = {
        **observed.targets,
        **{path.rpartition("/")[2]: data for path, data in after.items() if scrape.TARGETS_DIR in path},
    }
    return dataclasses.replace(
        observed,
        config=after.get(observed.path, observed.config),
        rules=after.get(observed.rules_path, observed.rules),
        targets=targets,
    )


def present(observed: Observed, record=None, **options):
    return config.plan_present(Params({"gpu1": TARGET}, **options), observed, record, SYNTAX)


def test_configuration_with_own_lines_keeps_them_and_is_restored() -> None:
    start = Observed(PATH, CONFIG, None)
    plan = present(start)
    assert [step.path.rpartition("/")[2] for step in plan.steps] == [scrape.RULES_FILE, "gpu1.json", "prometheus.yml"]
    assert {step.mode for step in plan.steps} == {0o644}
    written = apply(start, plan)
    assert b"# Own.\nglobal: {}\n" in written.config
    tree = SYNTAX.read(written.config, PATH)
    assert [job["job_name"] for job in tree["scrape_configs"]] == ["node", "gpu"]
    assert tree["rule_files"] == [scrape.RULES_FILE]
    record = config.confirm(plan.record)
    again = present(written, record)
    assert (again.steps, again.facts["needs_reload"]) == ((), False)
    removal = config.plan_absent(["gpu1"], written, record, SYNTAX)
    end = apply(written, removal)
    assert (end.config, end.rules, end.targets["gpu1.json"]) == (CONFIG, None, None)
    assert config.confirm(removal.record) is None


def test_configuration_with_later_lines_of_others_keeps_them() -> None:
    start = Observed(PATH, CONFIG, None)
    plan = present(start)
    edited = dataclasses.replace(
        apply(start, plan), config=apply(start, plan).config.replace(b"global: {}", b"global: {scrape_interval: 30s}")
    )
    assert present(edited, config.confirm(plan.record)).steps == ()
    end = apply(edited, config.plan_absent(["gpu1"], edited, config.confirm(plan.record), SYNTAX))
    tree = SYNTAX.read(end.config, PATH)
    assert tree["global"] == {"scrape_interval": "30s"}
    assert [job["job_name"] for job in tree["scrape_configs"]] == ["node"]
    assert "rule_files" not in tree


@pytest.mark.parametrize(
    ("pattern", "adds"),
    [
        ("*.rules.yml", False),
        ("/etc/prometheus/*.yml", False),
        ("./gpu-kubernetes.rules.yml", False),
        # These match nothing, which Prometheus accepts in silence.
        ("rules/*.yml", True),
        ("/etc/prometheus/*.rules", True),
    ],
)
def test_rule_files_with_a_pattern_have_the_rules_once(pattern: str, adds: bool) -> None:
    text = CONFIG.replace(b"[]", f"['{pattern}']".encode())
    plan = present(Observed(PATH, text, None))
    found = SYNTAX.read(plan.steps[-1].after, PATH)["rule_files"]
    assert found == ([pattern, scrape.RULES_FILE] if adds else [pattern])


def test_run_that_was_killed_before_the_reload_is_resumed_or_rolled_back() -> None:
    start = Observed(PATH, CONFIG, None)
    plan = present(start)
    written = apply(start, plan)
    resumed = present(written, plan.record)
    assert (resumed.steps, resumed.facts["needs_reload"]) == ((), True)
    restored = apply(written, config.plan_restore(written, plan.record))
    assert (restored.config, restored.rules) == (CONFIG, None)
    # The next run changes more, and has to be able to restore what there was before both.
    later = present(written, plan.record, options={"scrape_interval": "5s"})
    assert later.record.former.config == CONFIG
    assert (
        config.Record.decode(json.dumps({"format": 1, "record": later.record.encode()}).encode(), "f") == later.record
    )


def test_targets_of_other_hosts_keep_the_rules() -> None:
    start = Observed(PATH, CONFIG, None)
    plan = present(start)
    both = dataclasses.replace(apply(start, plan), others=("gpu2.json",))
    removal = config.plan_absent(["gpu1"], both, config.confirm(plan.record), SYNTAX)
    assert [step.path.rpartition("/")[2] for step in removal.steps] == ["gpu1.json"]
    assert removal.facts == {"needs_reload": False}


@pytest.mark.parametrize(
    ("observed", "options", "message"),
    [
        (Observed(PATH, None, None), {}, "install Prometheus first"),
        (Observed(PATH, b"scrape_configs: [{job_name: gpu}]\n", None), {}, "has a job gpu"),
        (Observed(PATH, CONFIG, b"groups: []\n"), {}, "is not as this collection has written it"),
        (Observed(PATH, CONFIG, None), {"options": {"job_name": "x"}}, "job_name is set by this collection"),
        (Observed(PATH, b"scrape_configs: {}\n", None), {}, "scrape_configs has to be a list"),
    ],
)
def test_configuration_that_cannot_be_changed_is_refused(observed: Observed, options, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        present(observed, **options)


SECRETS = """\
- job_name: basic
  basic_auth: {username: me, password: hunter-basic}
- job_name: bearer
  authorization: {credentials: hunter-bearer}
- job_name: old
  bearer_token: hunter-old
remote_write:
- url: https://me:hunter-url@metrics.example.com/push
  headers: {X-Scope: hunter-header}
"""


def test_diff_masks_the_credentials_of_all_jobs() -> None:
    """Those of others and that of the own job, on the lines that stay and on those that change."""
    options = {"basic_auth": {"username": "me", "password": "hunter-own"}}
    start = Observed(PATH, CONFIG + SECRETS.encode(), None)
    plan = present(start, options=options)
    assert b"hunter-own" in apply(start, plan).config
    [shown] = [each for each in build_result(plan, [], SYNTAX, diff=True)["diff"] if each["after_header"] == PATH]
    assert "hunter" not in f"{shown}"
    assert [part.count(MASK) for part in (shown["before"], shown["after"])] == [5, 6]
    assert "job_name: old" in shown["before"]


def test_target_with_labels_has_text_alone() -> None:
    assert json.loads(scrape.build_target_file({**TARGET, "scheme": "https"})) == [
        {
            "targets": ["10.0.0.11:9835"],
            "labels": {"node": "gpu1", "exporter": "x", "gpu_expected": "8", "rack": "a", "__scheme__": "https"},
        }
    ]
    assert "gpu_expected" not in scrape.build_target("h", {"address": "[::1]:9835"}, "n", None, {})["labels"]


@pytest.mark.parametrize(
    ("target", "labels", "message"),
    [
        ({}, {}, "is not HOST:PORT"),
        ({"address": "http://10.0.0.1:9835"}, {}, "is not HOST:PORT"),
        ({"address": "10.0.0.1:9835", "scheme": "ftp"}, {}, "it is http or https"),
        ({"address": "10.0.0.1:9835"}, {"bad-name": "x"}, "a label has letters"),
        ({"address": "10.0.0.1:9835"}, {"__address__": "x"}, "a label has letters"),
        ({"address": "10.0.0.1:9835"}, {"rack": ["a"]}, "a label has letters"),
    ],
)
def test_target_that_prometheus_would_refuse_is_refused(target, labels, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        scrape.build_target("gpu1", target, "gpu1", 8, labels)


def test_host_with_a_slash_is_refused() -> None:
    with pytest.raises(ConfigError, match="rename it"):
        scrape.name_target_file("../gpu1")
