# Two commands for a newcomer: `make demo` and `make test`. The rest is for those who work on it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# tests wait half of their time: two files at once
PAIR   := -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo test check system bench fuzz docs clean setup

setup: $(STAMP)

$(STAMP): pyproject.toml setup.py $(wildcard src/wattribute/_core/*.c src/wattribute/_core/*.h)
	@sh tools/setup-venv.sh $(PYTHON) $(VENV)
	@touch $(STAMP)

demo: $(STAMP)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

bench: $(STAMP)
	@for program in benchmarks/*.py; do echo; echo "== $$program"; $(BIN)/python $$program || exit 1; done

docs: $(STAMP)
	$(BIN)/python tools/make_cli_reference.py
	$(BIN)/python tools/make_dashboards.py

test: $(if $(filter true,$(CI)),system) check
	$(BIN)/python -m pytest -m "not realtime" --reruns 2 $(PAIR)  # programs are run for real: a busy machine may stall one
	$(BIN)/python -m pytest -m realtime --reruns 4  # real seconds on a busy machine: once in five has to be right

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

system:
	sh tools/system-packages.sh

fuzz: $(STAMP)
	$(BIN)/python -m tests._core.fuzzing --files 6000

clean:
	rm -rf $(VENV) build demo src/wattribute/_core/*.so
