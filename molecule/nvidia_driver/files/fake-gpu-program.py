#!/usr/bin/python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake for a program that keeps a GPU open in the background, as NVIDIA's daemons do. Its process has the name of its file."""

import os
import signal
import sys

for device in ("/dev/nvidiactl", "/dev/nvidia0"):
    os.open(device, os.O_PATH)  # without a driver, other modes fail
if os.fork():
    sys.exit()
signal.pause()
