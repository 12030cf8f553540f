# hpkit: `make up` tries the whole kit on this machine, `make test` proves it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STACK  ?= handson-dev

.PHONY: install schemas up down lint types check tools unit pages docs pictures prose test generate lock audit release scan lock-scanners hyperpod-cli lock-hyperpod-cli torch lock-torch bench bench-program clean

install: $(VENV)/.installed

# Most modules of these packages are never imported: Python compiles the others when it imports them.
LAZY := /site-packages/(pulumi_aws|pulumi_kubernetes|kubernetes|sympy)/

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "hpkit needs Python 3.11 or newer, this is %d.%d; choose another with: make PYTHON=python3.11" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	$(BIN)/python -m compileall -qq -j 0 -x '$(LAZY)' $(VENV)/lib || :  # on all cores, where pip takes one
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(MAKE) --no-print-directory schemas
	touch $@

# What editors complete and check the files in stacks/ with.
schemas:
	$(BIN)/hpkit catalog schema --output stacks/schema.json
	$(BIN)/hpkit catalog schema --scenario --output stacks/scenarios/schema.json

# The whole platform on this machine: engine, local cloud, `pulumi up`. STACK=autoscale-dev takes another example.
up: install
	$(BIN)/hpkit local up --stack $(STACK)

# Take it down again with its instance, without asking: it is on this machine alone.
down: install
	$(BIN)/hpkit local down --yes --stack $(STACK)

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# What it found out of packages is the same in every clone: kept where tools are.
CACHE ?= $(or $(HPKIT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hpkit)

types: install
	$(BIN)/mypy --cache-dir $(CACHE)/mypy

# Packages whose tests start a process or record whole programs: `make check` leaves them out unless PACKAGE names one.
LATER := cli local provider policies changes program/iam adopt preflight grafana security

# The tests of one package, as in `make check PACKAGE=checks`, or of all that need no tools.
check: lint types
	$(BIN)/pytest -n 2 --dist loadfile -q -m "not engine and not cluster and not slow" \
	  $(if $(PACKAGE),tests/$(PACKAGE),$(LATER:%=--ignore tests/%) --ignore-glob 'tests/program/test_*')

# The Pulumi engine, etcd, kube-apiserver, Kueue and CRDs, for the tests that need them: downloaded or built once per machine, in the user's cache.
tools: install
	$(BIN)/hpkit local doctor --fix || echo "the tests that need what is missing will be skipped"

# One worker more than there are cores: much of the time they wait.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

unit: install tools
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 20

# Written pages are as their sources say.
pages: install
	$(BIN)/python -m generate --check

# The style of docs/guides/contributing.md, "English", on pages and on the texts in the code. Needs Go once, to build Vale.
VALE := $(CACHE)/vale/$(shell cksum < .vale/go.sum | tr -d ' ')/vale

$(VALE):
	cd .vale && GOWORK=off GOFLAGS= go build -mod=readonly -trimpath -o $@ github.com/errata-ai/vale/v3/cmd/vale

prose: install
	@if test -x $(VALE) || { command -v go > /dev/null && $(MAKE) --no-print-directory $(VALE); }; then \
	  $(BIN)/python -m tests.prose .prose && $(VALE) --output line README.md CHANGELOG.md docs .prose; \
	else echo "vale: it can't be built here, so only the word lists are checked" && HPKIT_NIGHTLY=1 $(BIN)/pytest -n 0 -q tests/test_prose.py; fi

# The pages as a site, in site/; a dead link fails.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Pictures in docs/images, from what the commands print; needs Chromium.
pictures: install tools
	$(BIN)/python -m generate.pictures

# Everything that decides whether a change may land; CI runs this and nothing else.
test: install
	$(MAKE) --no-print-directory -j 2 audit pages lint types docs prose
	$(MAKE) --no-print-directory unit

# The wheel, its bill of materials and the template for `pulumi new`, in dist/; the same commit gives the same bytes.
release: install
	@test -z "$$(git status --porcelain)" || { echo "a release is of a commit; commit or remove these files first:" >&2; git status --short >&2; exit 1; }
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build --target wheel
	$(BIN)/python .ci/bill_of_materials.py dist/hpkit.cdx.json
	wheel=$$(echo dist/*.whl) && $(BIN)/python .ci/release_lock.py $$wheel $${wheel%-py3-none-any.whl}.lock
	$(BIN)/python .ci/pulumi_template.py dist/*.whl dist/hpkit-pulumi-template.zip

lock:
	uv pip compile --quiet --generate-hashes --no-emit-index-url --universal \
	  --python-version 3.11 --extra dev --custom-compile-command "make lock" pyproject.toml -o requirements.lock

# Independent scanners, with an environment of their own: they bring more packages than hpkit has. Needs Go and git.
SCANNERS := .venv-scanners
SCANNED  := tests/security/scanners
# A clone of it elsewhere does as well: the commit is pinned, and names every byte.
SEMGREP_RULES ?= https://github.com/semgrep/semgrep-rules.git

$(SCANNERS)/.installed: $(SCANNED)/requirements.lock $(SCANNED)/kube-score/go.sum $(SCANNED)/semgrep-rules.commit
	$(PYTHON) -m venv $(SCANNERS)
	$(SCANNERS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	cd $(SCANNED)/kube-score && GOWORK=off GOFLAGS= GOTOOLCHAIN=local CGO_ENABLED=0 \
	  go build -mod=readonly -trimpath -o $(abspath $(SCANNERS))/bin/kube-score github.com/zegl/kube-score/cmd/kube-score
	git init --quiet $(SCANNERS)/semgrep-rules
	git -C $(SCANNERS)/semgrep-rules fetch --quiet --depth 1 $(SEMGREP_RULES) $$(cat $(SCANNED)/semgrep-rules.commit)
	git -C $(SCANNERS)/semgrep-rules checkout --quiet --detach --force FETCH_HEAD
	touch $@

scan: install $(SCANNERS)/.installed
	PYTHONPATH=. $(BIN)/python -m tests.security.scanners.scan $(SCANNERS)/bin

lock-scanners:
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --universal \
	  --python-version 3.11 --custom-compile-command "make lock-scanners" \
	  tests/security/scanners/requirements.in -o tests/security/scanners/requirements.lock

# The HyperPod CLI, which tests run as members of teams do, with an environment of its own: it pins packages of hpkit.
HYP     := .venv-hyperpod-cli
HYP_CLI := tests/articles/hyperpod_cli

hyperpod-cli: $(HYP)/.installed

$(HYP)/.installed: $(HYP_CLI)/requirements.lock
	$(PYTHON) -m venv $(HYP)
	$(HYP)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

lock-hyperpod-cli:
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --universal \
	  --python-version 3.11 --custom-compile-command "make lock-hyperpod-cli" \
	  $(HYP_CLI)/requirements.in -o $(HYP_CLI)/requirements.lock

# torch, with which a test trains by docs/examples/fsdp/train.py on this machine's CPUs: 5 GB with CUDA's libraries.
TORCH  := .venv-torch
FSDP   := tests/articles/fsdp

torch: $(TORCH)/.installed

$(TORCH)/.installed: $(FSDP)/requirements.lock
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r $<
	touch $@

lock-torch:
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --universal \
	  --python-version 3.11 --custom-compile-command "make lock-torch" $(FSDP)/requirements.in -o $(FSDP)/requirements.lock

clean:
	rm -rf $(VENV) $(SCANNERS) $(HYP) $(TORCH) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The files that are made of others.
generate: install schemas
	$(BIN)/python -m generate

bench: install
	$(BIN)/python bench/validate.py
	$(BIN)/python bench/quotas.py
	$(BIN)/python bench/review.py
	$(BIN)/python bench/organizations.py
	$(BIN)/python bench/lines.py

# The same for the whole program on the local cloud; takes a quarter of an hour.
bench-program: install tools
	$(BIN)/python bench/makespan.py
	$(BIN)/python bench/makespan.py handson-dev --factor 0.05 --runs 1
	$(BIN)/python bench/preview.py

# Known vulnerabilities in the pinned packages, where the database can be reached; where it cannot, it says so.
audit: install
	@$(BIN)/pip-audit --require-hashes --disable-pip --progress-spinner off --timeout 5 \
	  -r requirements.lock > .audit.log 2>&1 || { cat .audit.log; exit 1; }
	@if grep -q 'could not be audited' .audit.log; then \
	  echo "pip-audit: $$(grep -c 'could not be audited' .audit.log) packages could not be looked up from here"; \
	else tail -n 1 .audit.log; fi
