# Two commands for a newcomer: `make demo` and `make test`. The rest is for those who work on it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# tests wait for a part of their time: one file more at once than the two cores of CI
AT_ONCE := -n 3 --dist loadfile --no-loadscope-reorder

LOWEST := .venv-lowest

.PHONY: demo test test-lowest test-machines check check-types check-style check-page system bench truth fuzz docs clean setup wheel wheels recipes format hooks coverage

setup: $(STAMP)

$(STAMP): pyproject.toml setup.py $(wildcard src/wattribute/_core/*.c src/wattribute/_core/*.h)
	@sh tools/setup-venv.sh $(PYTHON) $(VENV)
	@touch $(STAMP)

demo: $(STAMP)
	@rm -rf demo
	@$(BIN)/wattribute demo -o demo

bench: $(STAMP)
	@for program in $(filter-out benchmarks/truth.py,$(wildcard benchmarks/*.py)); do echo; echo "== $$program"; $(BIN)/python $$program || exit 1; done

# wattribute and its peers against simulated sensors and recorded GPUs; installs the peers in build/truth
truth: $(STAMP)
	@$(BIN)/python benchmarks/truth.py $(if $(PUBLISH),--publish)

docs: $(STAMP)
	$(BIN)/python tools/make_cli_reference.py
	$(BIN)/python tools/make_messages.py
	$(BIN)/python tools/make_dashboards.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/check_site.py build/site

test: $(if $(filter true,$(CI)),system) check
	@status=0; set -x; \
	$(BIN)/python -m pytest -m "not realtime" $(AT_ONCE) || status=1; \
	$(BIN)/python -m pytest -m realtime || status=1; \
	exit $$status

# the oldest versions that pyproject.toml promises
test-lowest:
	@sh tools/setup-venv.sh $(PYTHON) $(LOWEST) lowest
	$(LOWEST)/bin/python -m pytest -m "not realtime" $(AT_ONCE)

# `make test` of a fresh clone on machines that differ: busy, another user, with sensors … (see the script)
test-machines:
	sh tools/test-machines.sh $(MACHINES)

# sdist, and a wheel of it for this machine; installed without a compiler on every Python that is here
wheel: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build -q
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python tools/check_wheel.py dist/*.whl dist/*.tar.gz $(if $(filter true,$(CI)),--require-all)

# the wheels of a release (needs Docker or Podman)
wheels: $(STAMP)
	$(BIN)/cibuildwheel --output-dir dist $(CIBW_OPTIONS)

# version and checksum of dist/*.tar.gz in packaging/
recipes:
	$(BIN)/python tools/make_recipes.py dist/*.tar.gz

check: $(STAMP)
	@$(MAKE) --no-print-directory --output-sync --jobs 2 check-types check-style check-page

check-types: $(STAMP)
	$(BIN)/mypy

check-style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror src/wattribute/_core/*.[ch]
	$(BIN)/lint-imports

check-page: $(STAMP)
	@sh tools/page/check.sh

# what `make check` would complain about, where a program can repair it
format: $(STAMP)
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i src/wattribute/_core/*.[ch]

# the quick checks before every commit
hooks: $(STAMP)
	$(BIN)/pre-commit install

# the tests, and how much of the package they run; fails below the floor in pyproject.toml
coverage: $(STAMP)
	$(BIN)/python -m pytest -m "not realtime" $(AT_ONCE) --cov --cov-report=term --cov-report=html:build/coverage

system:
	sh tools/system-packages.sh

fuzz: $(STAMP)
	$(BIN)/python -m tests._core.fuzzing --files 6000
	$(BIN)/python -m tests.readers.fuzzing --files 500

clean:
	rm -rf $(VENV) $(LOWEST) build dist demo tools/page/node_modules src/wattribute/_core/*.so
