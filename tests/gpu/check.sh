#!/bin/sh
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# On a machine with a real NVIDIA GPU: compare what nvml_facts gathers, field by field, with what nvidia-smi tells.
# Wants Python 3.8 or newer and the driver, and nothing else. Nothing should run on the GPUs meanwhile: clocks, power and use may
# differ by a part of their range alone. Root alone is told of GPU instances.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v nvidia-smi >/dev/null || { echo "There is no nvidia-smi: run this where an NVIDIA driver is." >&2; exit 2; }
exec env PYTHONPATH="${here%/gpu}" "${PYTHON:-python3}" -m gpu.compare "$@"
