# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's package manager: what is asked of it, what it is asked with, and what it did.

The modules of ansible-core need python3-apt or python3-dnf on the node, and know neither zypper nor pacman. Here a node
needs nothing but its package manager, and a check needs no repository that is not there yet.
``request`` is what is wanted, ``managers`` has the package managers as data, ``patience`` runs them, ``transaction`` has it done,
``record`` remembers what was done, for the way back, and ``keeping`` is all of it together.
Private to this collection.
"""
