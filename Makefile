# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Any Python from 3.11 on will do; the first that runs and has ensurepip makes .venv. The distribution's, which is built with optimizations, goes first.
PYTHON  ?= $(shell for name in {/usr/bin/,}python3.{11,12,13} python3; do \
  if "$$name" -c 'import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then command -v "$$name"; break; fi; done)
VENV    := $(CURDIR)/.venv
PY      := $(VENV)/bin/python
LINK    := .ansible/collections/ansible_collections
# Arguments for what is behind a target: make units ARGS="-k toml"
ARGS    ?=

export PATH := $(VENV)/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/tests
export PYTHONUNBUFFERED = 1
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Without compiled files, each of the hundreds of starts of Ansible takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

GATES := cluster scenarios lint types contract docs artifact galaxy nodes roles units toml-suite browser fakes rulebook

.PHONY: help venv pythons lab lab-down test test-all quick gates $(GATES) bench bench-facts bench-fleet bench-fuzz bench-gpushare build release format clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.ready ## Make .venv with the pinned tools and link the checkout as gpu.kubernetes

$(VENV)/.ready: requirements-dev.txt
	@test -x $(PY) || { python="$(PYTHON)"; test -n "$$python" || { echo "No Python 3.11 to 3.13 found: install python3 and python3-venv" >&2; exit 1; }; \
	  echo "Making .venv with $$python"; "$$python" -m venv $(VENV); }
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo ".venv has an older Python than 3.11: remove it and set PYTHON=" >&2; exit 1; }
	@echo "Installing the tools of requirements-dev.txt"
	@retry() { "$$@" || { sleep 10; "$$@"; } || { sleep 30; "$$@"; }; }; \
	  retry $(PY) -m pip install --quiet --disable-pip-version-check "$$(sed -n 's/^\(uv\) == /\1==/p' requirements-dev.txt)"; \
	  retry $(VENV)/bin/uv pip install --quiet --python $(PY) --requirement requirements-dev.txt
	@mkdir -p $(LINK)/gpu && touch $(LINK)/__init__.py && ln -sfn ../../../.. $(LINK)/gpu/kubernetes
	@touch $@

pythons: venv ## Let uv install the Pythons that the gates need and the machine lacks
	@$(PY) -m gates pythons

lab: venv ## Build and start the lab cluster, deploy to it, verify it
	@$(PY) -m lab site $(ARGS)

lab-down: venv ## Remove the lab and all that it left
	@$(PY) -m lab down $(ARGS)

test: venv ## What every change must pass: the lab end to end, and what the change concerns
	@$(PY) -m gates test $(ARGS)

test-all: venv ## Everything: all scenarios with faults, all ansible-cores and Pythons (ARGS="GATE ...", or lab, machines, cores, roles, code: a part)
	@$(PY) -m gates test-all $(ARGS)

quick: venv ## For the edit loop: ruff, mypy, contract, unit tests of changed packages
	@$(PY) -m gates quick

gates: venv ## List the gates; each is a target of its own too: make units ARGS="-k toml"
	@$(PY) -m gates list

$(GATES): venv
	@$(PY) -m gates $@ $(ARGS)

core-% sanity-% machine-%: venv
	@$(PY) -m gates $@ $(ARGS)

bench: venv ## What a merge keeps and costs, beside nvidia-ctk on the same files
	@PYTHONPATH=$(CURDIR)/.ansible/collections:$(CURDIR)/tests $(PY) -m bench.runtime_configs $(ARGS)

bench-facts: venv ## How long nvml_facts takes for eight GPUs, beside ansible.builtin.ping
	@PYTHONPATH=$(CURDIR)/.ansible/collections:$(CURDIR)/tests $(PY) -m bench.nvml_facts $(ARGS)

bench-fuzz: venv ## Random changes of files and annotations: what is refused, and what does not hold
	@PYTHONPATH=$(CURDIR)/.ansible/collections:$(CURDIR)/tests $(PY) -m bench.fuzz $(ARGS)

bench-gpushare: venv ## Seconds and memory of gpushare_info on 5,000 nodes and 100,000 pods
	@PYTHONPATH=$(CURDIR)/.ansible/collections:$(CURDIR)/tests $(PY) -m bench.gpushare_allocation $(ARGS)

bench-fleet: venv ## Seconds, memory and requests of the controller for 50 to 500 fake nodes, and 5,000 for functions
	@PYTHONPATH=$(CURDIR)/.ansible/collections:$(CURDIR)/tests $(PY) -m bench.fleet $(ARGS)

build: venv ## Build the artifact into dist/
	@$(VENV)/bin/ansible-galaxy collection build --force --output-path dist

release: venv ## Make the release of HEAD in dist/: archive, checksums, SBOM (ARGS="--key KEY" signs, ARGS=notes writes the changelog)
	@$(PY) -m gates.release $(ARGS)

format: venv ## Let ruff format the code and fix what it can
	@$(VENV)/bin/ruff check --fix . ; $(VENV)/bin/ruff format .

clean: ## Remove what the gates built (not .venv, not the lab)
	@rm -rf build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
