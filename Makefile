# Everything runs in .venv, which makes itself: with uv where there is one, else with venv and pip.
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready
ARGS :=

.PHONY: help run demo test check bench

help:
	@echo "make demo    the scheduler against a real load, with a real model, measured"
	@echo "make run     the app in the browser, and the API"
	@echo "make test    everything that CI checks"
	@echo "make check   lint, format, types, import contracts"
	@echo "make bench   measurements"
	@echo "Options for the program go into ARGS, as in: make run ARGS='--port 9000'"

# What is in .venv: where it was made, and the packages of which every file is there in its size.
define WHOLE
import importlib.metadata, os
def whole(file):
    path = file.locate()
    return file.size is None or os.path.isfile(path) and os.path.getsize(path) == file.size
found = importlib.metadata.distributions()
print(os.getcwd(), *sorted({each.name for each in found if all(map(whole, each.files or ()))}), sep="\n")
endef
export WHOLE

# Only what failed has .venv looked at: if the interpreter does not start, or less is whole than at the set-up, all is set
# up anew and the command tried once more.
tried = $(1) || { status=$$?; \
	if whole=$$($(BIN)/python -I -c "$$WHOLE" 2>/dev/null) && \
		! printf '%s\n' "$$whole" | grep -qvxFf - $(READY); then exit $$status; fi; \
	echo "For .venv is damaged, it is set up anew." >&2; \
	rm -rf .venv; $(MAKE) --no-print-directory $(READY) && { $(1); }; }

run: $(READY)
	@$(call tried,$(BIN)/python -m uniun serve --open $(ARGS))

demo: $(READY)
	@$(call tried,$(BIN)/python -m uniun demo $(ARGS))

bench: $(READY)
	@$(call tried,$(BIN)/python -m tests.bench $(ARGS))

check: $(READY)
	@$(call tried,$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy && $(BIN)/lint-imports)

# Tests start many programs; where Python is told to keep no compiled modules, each compiles everything anew. Two files at
# a time, since much of a test is waiting for one of those programs: 3,715 tests take 15 minutes on two cores.
test: check
	@$(call tried,PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS))

# The mark is made last, so that an interrupted set-up is done again. pip reads dependency groups since 25.1. On a terminal
# uv and pip show how far they are; elsewhere they say nothing unless something is wrong.
QUIET = $(shell test -t 2 || echo --quiet)
$(READY): pyproject.toml $(wildcard uv.lock)
	@if [ -e $@ ]; then \
		echo "Bringing .venv up to date, for what is needed has changed." >&2; \
	else \
		echo "Setting up .venv with the Python packages that are needed: up to 1 GB, a few minutes, once." >&2; \
	fi
	@rm -f $@
	@unset VIRTUAL_ENV; \
	if command -v uv >/dev/null 2>&1; then \
		UV_PROJECT_ENVIRONMENT=.venv uv sync $(QUIET); \
	else \
		found=; for python in $(PYTHON) python3.14 python3.13 python3.12 python3.11 python3 python; do \
			if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
				found=$$python; break; \
			fi; \
		done; \
		if [ -z "$$found" ]; then \
			echo "Python 3.11 or later with venv is needed (on Debian: apt-get install python3-venv), or uv." >&2; \
			exit 1; \
		fi; \
		echo "This is done with $$found and pip; where there is uv, it takes less time." >&2; \
		$(BIN)/python -m pip --version >/dev/null 2>&1 || $$found -m venv --clear .venv && \
		$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' && \
		$(BIN)/python -m pip install $(QUIET) --editable . --group dev --group bench >&2; \
	fi
	@$(BIN)/python -I -c "$$WHOLE" >$@
	@echo "The set-up is done." >&2
