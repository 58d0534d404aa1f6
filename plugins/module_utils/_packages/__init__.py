# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the host: requests, transactions, records for the undo, and holds.

The modules of ansible-core need python3-apt or python3-dnf on the node, and support neither zypper nor pacman. Here a node needs only its
package manager, and check mode works before the repository is set up.
``request`` has the requests, ``managers`` the commands of the package managers, ``runner`` runs them, ``transaction`` installs and
removes, ``record`` stores what changed, and ``desired_state`` combines all of them.
"""
