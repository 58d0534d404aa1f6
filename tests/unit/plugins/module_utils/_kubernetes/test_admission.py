# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission policies of accounts: their objects, and the changes that their expressions allow.

The scenario ``sharing`` tests the same cases on an API server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from fakes.admission_cases import AGENT, CASES, EXTENDER, NODE, PLUGIN, POD, SCHEDULER, Case, apply_patch

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.admission import (
    NODE_CLAIM,
    Account,
    build_policies,
    read_accounts,
)

ACCOUNTS = {
    PLUGIN: Account(PLUGIN, ["ALIYUN_COM_GPU_MEM_"], own_node=True),
    EXTENDER: Account(EXTENDER, ["ALIYUN_COM_GPU_MEM_"]),
    AGENT: Account(AGENT, own_node=True),
    SCHEDULER: Account(SCHEDULER, ["nano-gpu/", "elasticgpu.io/"], labels=True),
}


def build(account: Account) -> tuple[dict[str, Any], dict[str, Any]]:
    policy, binding = build_policies([account], "gpus", {"app": "x"})
    return policy, binding


def test_each_account_has_a_policy_that_its_binding_enforces() -> None:
    policy, binding = build(ACCOUNTS[PLUGIN])
    assert policy["metadata"] == binding["metadata"] == {"name": f"gpu-kubernetes-{PLUGIN}", "labels": {"app": "x"}}
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    assert policy["spec"]["failurePolicy"] == "Fail"
    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["UPDATE"], ["pods", "nodes/status"])
    assert len(build_policies(list(ACCOUNTS.values()), "gpus", {})) == 2 * len(ACCOUNTS)


def test_account_with_an_unknown_key_is_rejected() -> None:
    with pytest.raises(TypeError):
        read_accounts([{"name": "x", "prefix": "y"}])


def request(case: Case, user: str) -> dict[str, Any]:
    extra = {"extra": {NODE_CLAIM: [case.token]}} if case.token else {}
    return {"resource": {"resource": case.resource.partition("/")[0]}, "userInfo": {"username": user, **extra}}


@lru_cache
def compile_expression(expression: str) -> Any:
    """A program of a CEL expression."""
    environment = pytest.importorskip("celpy").Environment()
    return environment.program(environment.compile(expression))


def evaluate(expression: str, values: dict[str, Any]) -> Any:
    """The value of a CEL expression."""
    program = compile_expression(expression)
    celpy = pytest.importorskip("celpy")
    return program.evaluate({name: celpy.json_to_cel(value) for name, value in values.items()})


@pytest.mark.parametrize("name", CASES)
def test_expressions_allow_only_changes_of_the_programs(name: str) -> None:
    case = CASES[name]
    spec = build(ACCOUNTS[case.account])[0]["spec"]
    old = POD if case.resource == "pods" else NODE
    values: dict[str, Any] = {
        "object": apply_patch(old, case.patch),
        "oldObject": old,
        "request": request(case, f"system:serviceaccount:gpus:{case.account}"),
    }
    assert all(evaluate(each["expression"], values) for each in spec["matchConditions"])
    variables: dict[str, Any] = {}
    for each in spec["variables"]:
        variables[each["name"]] = evaluate(each["expression"], values)
    values["variables"] = variables
    refusals = [each["message"] for each in spec["validations"] if not evaluate(each["expression"], values)]
    assert bool(refusals) is not case.allowed, refusals


def test_policy_of_another_account_does_not_match() -> None:
    [condition] = build(ACCOUNTS[PLUGIN])[0]["spec"]["matchConditions"]
    others = [f"system:serviceaccount:other:{PLUGIN}", f"system:serviceaccount:gpus:{EXTENDER}", "system:node:own"]
    values = [{"request": request(CASES["own-annotation"], user)} for user in others]
    assert not any(evaluate(condition["expression"], each) for each in values)
