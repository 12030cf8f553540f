# hpkit: `make up` deploys a whole platform on this machine, and `make test` runs all tests.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STACK  ?= handson-dev

# Shells of CI images often forbid writing bytecode. Then each start would compile the SDKs of Pulumi again: 3 seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install schemas up down lint types check tools unit pages docs pictures prose workflows test generate lock audit release scan lock-scanners bench bench-program clean

install: $(VENV)/.installed

# uv takes 3 seconds, pip 45. To use pip: make install PIP=.venv/bin/pip. Python compiles what it imports on first use,
# which takes less time than to compile everything.
PIP ?= VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip
QUIET := install --quiet --no-compile

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "hpkit needs Python 3.11 or newer, this is %d.%d; choose another with: make PYTHON=python3.11" % sys.version_info[:2])'
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/installer.lock
	@echo "installing $$(sed -n 's/^\(uv==[0-9.]*\).*/\1/p' $(VENV)/installer.lock)"
	@$(BIN)/pip $(QUIET) --disable-pip-version-check --require-hashes -r $(VENV)/installer.lock
	@echo "installing $$(grep -c '^[a-z].*==' requirements.lock) packages of requirements.lock"
	@$(PIP) $(QUIET) --require-hashes -r requirements.lock
	@echo "installing hpkit"
	@$(PIP) $(QUIET) --no-deps --no-build-isolation -e .
	@$(MAKE) --no-print-directory schemas
	@touch $@

# The JSON Schemas with which editors complete and check the files in stacks/.
schemas:
	@$(BIN)/hpkit catalog schema --output stacks/schema.json
	@$(BIN)/hpkit catalog schema --scenario --output stacks/scenarios/schema.json

# The whole platform on this machine: engine, local cloud, `pulumi up`. For another example: STACK=autoscale-dev.
up: install
	$(BIN)/hpkit local up --stack $(STACK)

# Delete the platform and its local cloud without asking, because they only exist on this machine.
down: install
	$(BIN)/hpkit local down --yes --stack $(STACK)

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# The mypy cache for packages is the same in every clone, so it's in the cache for tools.
CACHE ?= $(or $(HPKIT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hpkit)

types: install
	$(BIN)/mypy --cache-dir $(CACHE)/mypy

# Packages whose tests start a process or record whole programs: `make check` skips them unless PACKAGE names one.
LATER := cli local provider policies changes program/iam adopt preflight grafana security

# The tests of one package, such as `make check PACKAGE=checks`, or all tests that need no tools.
check: lint types
	$(BIN)/pytest -n 2 --dist loadfile -q -m "not engine and not cluster and not slow" \
	  $(if $(PACKAGE),tests/$(PACKAGE),$(LATER:%=--ignore tests/%) --ignore-glob 'tests/program/test_*')

# The Pulumi engine, etcd, kube-apiserver, Kueue and CRDs for the tests that need them: downloaded or built once per
# machine into the user's cache.
tools: install
	$(BIN)/hpkit local doctor --fix || { test -z "$$CI" && echo "the tests that need what is missing will be skipped"; }

# One more worker than cores, because workers often wait.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

unit: install tools
	@# Otherwise each worker would compile everything when it starts.
	$(BIN)/python -m compileall -q -j 0 infra local whatif generate policies tests
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 20

# Fails if a generated page doesn't match its sources.
pages: install
	$(BIN)/python -m generate --check

# Checks the style in docs/internals/contributing.md, "English", on pages and in texts of the code. Needs Go once, to build
# Vale.
VALE := $(CACHE)/vale/$(shell cksum < .vale/go.sum | tr -d ' ')/vale

$(VALE):
	cd .vale && GOWORK=off GOFLAGS= go build -mod=readonly -trimpath -o $@ github.com/errata-ai/vale/v3/cmd/vale

prose: install
	@if test -x $(VALE) || { command -v go > /dev/null && $(MAKE) --no-print-directory $(VALE); }; then \
	  $(BIN)/python -m tests.prose .prose && $(VALE) --output line README.md CHANGELOG.md docs .prose; \
	else echo "vale can't be built without Go, so the style isn't checked" && test -z "$$CI"; fi

# Checks the workflows of this repository, which new projects get too. Needs Go once, to build actionlint.
ACTIONLINT := $(CACHE)/actionlint/$(shell cksum < .ci/actionlint/go.sum | tr -d ' ')/actionlint

$(ACTIONLINT):
	cd .ci/actionlint && GOWORK=off GOFLAGS= go build -mod=readonly -trimpath -o $@ github.com/rhysd/actionlint/cmd/actionlint

workflows: install
	@if test -x $(ACTIONLINT) || { command -v go > /dev/null && $(MAKE) --no-print-directory $(ACTIONLINT); }; then \
	  $(ACTIONLINT) -shellcheck $(BIN)/shellcheck .github/workflows/*.yml; \
	else echo "actionlint can't be built without Go, so only zizmor checks the workflows" && test -z "$$CI"; fi
	@$(BIN)/zizmor --offline --quiet .github/workflows

# Builds the pages as a site in site/; fails on dead links.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Draws the pictures in docs/images from the output of commands.
pictures: install tools
	$(BIN)/python -m generate.pictures

# Everything that CI requires; CI runs only this.
test: install
	$(MAKE) --no-print-directory -j 2 audit pages lint types docs prose workflows
	$(MAKE) --no-print-directory unit

# Writes the wheel, its bill of materials and its lock files to dist/; the same commit gives the same bytes.
release: install
	@test -z "$$(git status --porcelain)" || { echo "a release is of a commit; commit or remove these files first:" >&2; git status --short >&2; exit 1; }
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build --target wheel
	$(BIN)/python .ci/bill_of_materials.py dist/hpkit.cdx.json
	wheel=$$(echo dist/*.whl) && $(BIN)/python .ci/release_lock.py $$wheel $${wheel%-py3-none-any.whl}.lock

lock:
	uv pip compile --quiet --generate-hashes --no-emit-index-url --universal \
	  --python-version 3.11 --extra dev --custom-compile-command "make lock" pyproject.toml -o requirements.lock

# Independent scanners in a separate environment, because they need more packages than hpkit. Needs Go and git.
SCANNERS := .venv-scanners
SCANNED  := tests/security/scanners
# A clone of the rules elsewhere works too, because the pinned commit determines the contents.
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

clean:
	rm -rf $(VENV) $(SCANNERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Writes all generated files.
generate: install schemas
	$(BIN)/python -m generate

bench: install
	$(BIN)/python bench/validate.py

# The same for the whole program on the local cloud; takes 15 minutes.
bench-program: install tools
	$(BIN)/python bench/makespan.py
	$(BIN)/python bench/makespan.py handson-dev --factor 0.05 --runs 1
	$(BIN)/python bench/preview.py

# Checks the pinned packages for known vulnerabilities, or reports that the database can't be reached.
audit: install
	@$(BIN)/pip-audit --require-hashes --disable-pip --progress-spinner off --timeout 5 \
	  -r requirements.lock > .audit.log 2>&1 || { cat .audit.log; exit 1; }
	@if grep -q 'could not be audited' .audit.log; then \
	  echo "pip-audit: $$(grep -c 'could not be audited' .audit.log) packages could not be looked up from here"; \
	else tail -n 1 .audit.log; fi
