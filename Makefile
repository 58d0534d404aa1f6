# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Any Python from 3.11 on will do; the first that runs and has what it takes makes .venv. Distributions build theirs with optimizations, which
# takes a fifth off what Ansible does; pyenv, unless told to, does not.
PYTHON  ?= $(shell for name in {/usr/bin/,}python3.{11,12,13,14} python3; do \
  if "$$name" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then command -v "$$name"; break; fi; done)
VENV    := $(CURDIR)/.venv
PY      := $(VENV)/bin/python
LINK    := .ansible/collections/ansible_collections
REPORTS := build/reports
# Arguments for the tool behind a target: make units ARGS="-k toml"
ARGS    ?=

export PATH := $(VENV)/bin:$(PATH)
export PYTHONPATH := $(CURDIR)/tests
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Where nothing compiled is kept, each of the thousands of starts of Ansible takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

NOX := $(PY) -m nox --no-error-on-missing-interpreters
GATES := lint types contract sanity units schedulers stand-ins nodes toml-suite docs artifact machines molecule

.PHONY: help venv lab lab-down test format changelog clean $(GATES) matrix bench bench-facts bench-gpushare build

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  \033[1m%-12s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.ready ## Make .venv with the pinned tools and link the checkout as gpu.kubernetes

$(VENV)/.ready: requirements-dev.txt
	@test -x $(PY) || { python="$(PYTHON)"; test -n "$$python" || { echo "No Python 3.11 or newer found: install python3 and python3-venv" >&2; exit 1; }; \
	  echo "Making .venv with $$python"; "$$python" -m venv $(VENV); }
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo ".venv has an older Python than 3.11: remove it and set PYTHON=" >&2; exit 1; }
	@echo "Installing the tools of requirements-dev.txt"
	@$(PY) -m pip install --quiet --disable-pip-version-check "$$(sed -n 's/^\(uv\) == /\1==/p' requirements-dev.txt)"
	@$(VENV)/bin/uv pip install --quiet --python $(PY) --requirement requirements-dev.txt
	@mkdir -p $(LINK)/gpu && touch $(LINK)/__init__.py && ln -sfn ../../../.. $(LINK)/gpu/kubernetes
	@touch $@

lab: venv ## Build and start the lab cluster, deploy to it, verify it
	@$(PY) -m lab site $(ARGS)

lab-down: venv ## Remove the lab and all that it left
	@$(PY) -m lab down $(ARGS)

test: export PYTHONUNBUFFERED = 1
test: venv ## Run every gate, three at a time, then tell the result and the seconds of each
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	@$(PY) -m gates.machine || { printf '\n0 passed, 1 failed, 0 skipped\n'; exit 1; }
	@status=0; $(PY) -m gates.lanes || status=$$?; $(PY) -m gates.summary || status=$$?; exit $$status

lint: venv ## yamllint, ansible-lint (profile production), ruff, shellcheck
types: venv ## mypy
contract: venv ## Argument specs = defaults, licences, action groups, floors, changelog
sanity: venv ## ansible-test sanity
units: venv ## Unit tests on this Python
schedulers: venv ## Real kube-schedulers of several versions read what kube_scheduler_manifest writes
stand-ins: venv ## The stand-ins of the lab: go vet, go test, pytest
nodes: venv ## Unit tests of what runs on nodes, on Python 3.8 and 3.9 (ansible-test units)
toml-suite: venv ## The TOML reader and writer against the public test suite
docs: venv ## Guides and reference as HTML in build/docs/html
artifact: venv ## Build the collection, look into it, install it, show its documentation
machines: venv ## Molecule scenarios on machines without Kubernetes
molecule: venv ## Molecule scenarios on a cluster; `default` is the lab end to end (ARGS="NAME ...": these alone)
$(GATES):
	@mkdir -p $(REPORTS)
	@$(NOX) --session $@ $(if $(ARGS),-- $(ARGS))

matrix: venv ## Units and one role scenario under ansible-core 2.18 to 2.21 (ARGS="--core 2.20": this one alone)
	@mkdir -p $(REPORTS)
	@$(PY) -m gates.with_containerd $(PY) -m gates.matrix $(ARGS)

bench: venv ## What a merge keeps and costs, beside nvidia-ctk on the same files
	@PYTHONPATH=$(CURDIR)/.ansible/collections:$(CURDIR)/tests $(PY) -m bench.runtime_configs $(ARGS)

bench-facts: venv ## How long nvml_facts takes for eight GPUs, beside ansible.builtin.ping
	@PYTHONPATH=$(CURDIR)/.ansible/collections:$(CURDIR)/tests $(PY) -m bench.nvml_facts $(ARGS)

bench-gpushare: venv ## Seconds and memory of gpushare_info on 5,000 nodes and 100,000 pods
	@PYTHONPATH=$(CURDIR)/.ansible/collections:$(CURDIR)/tests $(PY) -m bench.gpushare_allocation $(ARGS)

build: venv ## Build the artifact into dist/
	@$(VENV)/bin/ansible-galaxy collection build --force --output-path dist

format: venv ## Let ruff format and mend what it can
	@$(VENV)/bin/ruff check --fix . ; $(VENV)/bin/ruff format .

clean: ## Remove what the gates built (not .venv, not the lab)
	@rm -rf build dist .nox .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
