# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission policies for accounts that may update pods because upstream's programs write annotations there.

RBAC knows no fields: the right to update pods includes the images of all pods, and the right to patch ``nodes/status`` includes the labels of
all nodes. The policies are evaluated by the API server (ValidatingAdmissionPolicy, Kubernetes 1.30), their expressions are CEL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from .objects import Object

API_VERSION = "admissionregistration.k8s.io/v1"
#: The node of the pod to which a token is bound. API servers from 1.32 on report it for every such token.
NODE_CLAIM = "authentication.kubernetes.io/node-name"
IS_POD = "request.resource.resource == 'pods'"
#: Fields of metadata with their empty values, and those of them that none of the programs writes.
FIELDS = {"annotations": "{}", "labels": "{}", "ownerReferences": "[]", "finalizers": "[]"}
KEPT = ("ownerReferences", "finalizers")


@dataclass(frozen=True)
class Account:
    """A service account, the prefixes of the annotations that it may change on pods, and whether of its labels as well.

    With ``own_node`` it changes only its own node and the pods on it.
    """

    name: str
    prefixes: Sequence[str] = ()
    labels: bool = False
    own_node: bool = False


def build_policies(accounts: Sequence[Account], namespace: str, labels: Mapping[str, str]) -> list[Object]:
    """Return the policy and its binding for each account of the namespace."""
    return [item for account in accounts for item in _build_policy(account, namespace, labels)]


def _build_policy(account: Account, namespace: str, labels: Mapping[str, str]) -> list[Object]:
    name = f"gpu-kubernetes-{account.name}"
    metadata = {"name": name, "labels": dict(labels)}
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["pods", "nodes/status"],
        # The default, which the API server writes: the object is as desired then.
        "scope": "*",
    }
    user = f"system:serviceaccount:{namespace}:{account.name}"
    policy = {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "account", "expression": f"request.userInfo.username == '{user}'"}],
            "variables": _build_variables(),
            "validations": _build_validations(account),
        },
    }
    binding = {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return [policy, binding]


def _build_variables() -> list[dict[str, str]]:
    """Return the metadata of both objects with empty values for missing fields, the token's node, and the node that the object belongs to."""
    extra = f"request.userInfo.extra['{NODE_CLAIM}']"
    has_claim = f"has(request.userInfo.extra) && '{NODE_CLAIM}' in request.userInfo.extra && size({extra}) > 0"
    pods_node = "has(oldObject.spec.nodeName) ? oldObject.spec.nodeName : ''"
    fields = [
        (f"{prefix}{field}", f"has({name}.metadata.{field}) ? {name}.metadata.{field} : {empty}")
        for field, empty in FIELDS.items()
        for prefix, name in (("", "object"), ("old_", "oldObject"))
    ]
    nodes = [
        ("token_node", f"{has_claim} ? {extra}[0] : ''"),
        ("node", f"{IS_POD} ? ({pods_node}) : oldObject.metadata.name"),
    ]
    return [{"name": name, "expression": expression} for name, expression in [*fields, *nodes]]


def _build_validations(account: Account) -> list[dict[str, str]]:
    kept = ("object.spec == oldObject.spec", *(f"variables.{field} == variables.old_{field}" for field in KEPT))
    validations = [
        (" && ".join(kept), f"{account.name} may change only annotations of pods and the status of nodes."),
        _restrict_keys(account.name, "annotations", account.prefixes),
        _restrict_keys(account.name, "labels", account.prefixes if account.labels else ()),
    ]
    if account.own_node:
        validations.append(
            (
                "variables.token_node == '' || variables.token_node == variables.node",
                f"{account.name} may change only its own node and the pods on it.",
            )
        )
    return [
        {"expression": expression, "message": message, "reason": "Forbidden"} for expression, message in validations
    ]


def _restrict_keys(account: str, field: str, prefixes: Sequence[str]) -> tuple[str, str]:
    """Return the expression that keys without one of the prefixes have not changed, and its message; those of nodes never change."""
    new, old = f"variables.{field}", f"variables.old_{field}"
    if not prefixes:
        return f"{new} == {old}", f"{account} may change no {field}."
    managed = " || ".join(f"key.startsWith('{prefix}')" for prefix in prefixes)
    free = f"({IS_POD} && ({managed}))"
    kept = f"{new}.all(key, {free} || (key in {old} && {old}[key] == {new}[key]))"
    message = f"{account} may change only {field} of pods that begin with {' or '.join(prefixes)}."
    return f"{kept} && {old}.all(key, {free} || key in {new})", message


def read_accounts(accounts: Sequence[Mapping[str, Any]]) -> list[Account]:
    """Return accounts from their variables; other keys raise TypeError."""
    return [Account(**account) for account in accounts]
