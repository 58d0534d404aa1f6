# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpushare and nano_gpu require of the container toolkit of a host."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import task_of

SETTING = "accept-nvidia-visible-devices-envvar-when-unprivileged"
#: The toolkit's settings, how GPUs reach containers, and whether that is refused.
TOOLKITS = {
    "heeds": (f"{SETTING} = true\n", True, False),
    "says-nothing": ("", True, False),
    "does-not": (f"{SETTING} = false\n", True, True),
    "is-not-asked": (f"{SETTING} = false\n", False, False),
}


def test_a_toolkit_that_does_not_heed_the_plugin_is_refused(made):
    task = task_of("gpu_sharing", "gpus", "Require that the container toolkit accepts")
    hosts = {
        name: {
            "__gpu_sharing_way": "gpushare",
            "__gpu_sharing_by_environment": asked,
            "__gpu_sharing_toolkit_read": {"content": "{{ text | b64encode }}"},
            "text": text,
        }
        for name, (text, asked, _refused) in TOOLKITS.items()
    }
    told = made("gpu_sharing", hosts, "''", task)
    assert {name for name, why in told.items() if why} == {"does-not"}
    assert f"Host does-not: {SETTING} is false" in told["does-not"]
    assert "gpushare assigns GPUs to containers by that variable" in told["does-not"]
