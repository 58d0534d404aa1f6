# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import jinja2
import pytest
import tomllib
from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter.kubespray_missing import kubespray_missing
from ansible_collections.gpu.kubernetes.plugins.filter.kubespray_vars import kubespray_vars

#: What the installer makes of a runtime in containerd's file.
TEMPLATE = """\
{% for runtime in runtimes %}
[{{ runtime.name }}]
runtime_type = "{{ runtime.type }}"
[{{ runtime.name }}.options]
{% for key, value in runtime.options.items() %}
{{ key }} = {{ value if value | string in ("true", "false") else '"%s"' % value }}
{% endfor %}
{% endfor %}
"""


def test_runtime_is_valid_toml_in_a_template_of_that_kind() -> None:
    text = jinja2.Template(TEMPLATE).render(runtimes=kubespray_vars({})["containerd_additional_runtimes"])
    assert tomllib.loads(text)["nvidia"]["options"] == {
        "BinaryName": "/usr/bin/nvidia-container-runtime",
        "SystemdCgroup": True,
    }


def test_filters_name_what_an_inventory_lacks() -> None:
    needed = kubespray_vars({"containerd_nvidia_set_default": True})
    assert kubespray_missing(needed, needed) == []
    assert kubespray_missing(needed, {})[1] == "containerd_default_runtime is not set, and has to be nvidia."


def test_filter_refuses_what_the_installer_cannot_keep() -> None:
    with pytest.raises(AnsibleFilterError, match="no variable for oom_score"):
        kubespray_vars({"containerd_nvidia_settings": {"oom_score": 1}})


@pytest.mark.parametrize("value", [None, "text", [{}]])
def test_filters_refuse_what_is_not_a_dictionary(value: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match="needs a dictionary"):
        kubespray_vars(value)
    with pytest.raises(AnsibleFilterError, match="needs two dictionaries"):
        kubespray_missing({}, value)
