# Installs, runs and tests the project. Needs GNU make 4.3 and a POSIX shell.

VENV = .venv
ifneq ($(words $(VENV)),1)
$(error VENV must be a path without blanks. Received: VENV=$(VENV))
endif
# Unless given: the newest of the Pythons that the tests have run on, else another that
# is new enough. Each is run, as a name on the PATH is no proof of a Python behind it.
new_enough = -c "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	"$$python" $(new_enough) 2>/dev/null && echo "$$python" && exit; done; echo python3)
run = $(VENV)/bin/python
# Two processes: most of a test is tracing, which keeps one core busy. Each takes whole
# files, whose tests share what they trace.
pytest = $(run) -m pytest -n 2 --dist loadfile

.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-jax test-torch test-all faults lint docs release-check timit bench export-table reproduce properties test-versions clean timit-dir

help: ## list the targets (the default)
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 17

demo: OUT = out/demo
demo: $(VENV)/.demo ## train a denoiser on speech that it makes: [OUT=out/demo]
	$(run) examples/denoise.py --out "$(OUT)"

test: $(VENV)/.test ## run the tests on TensorFlow, without the slow ones
	KERAS_BACKEND=tensorflow $(pytest) -m "not slow"

test-jax: $(VENV)/.test ## run the tests of all backends on JAX
	KERAS_BACKEND=jax $(pytest) -m "backends and not slow"

test-torch: $(VENV)/.test ## run the tests of all backends on PyTorch, which it installs
	$(run) -m pip install -q -e ".[torch]"
	KERAS_BACKEND=torch $(pytest) -m "backends and not slow"

test-all: $(VENV)/.test ## run all tests on TensorFlow and JAX
	KERAS_BACKEND=jax $(pytest) -m backends
	KERAS_BACKEND=tensorflow $(pytest)

faults: $(VENV)/.test ## plant faults, one at a time, and say which the tests find
	$(run) scripts/plant_faults.py

# In runs of 1 000, each of which can be repeated by its seed: 0, 1 ...
properties: $(VENV)/.test ## hold layers to 10 000 random cases a backend: [CASES=10000]
	@failed=0; for backend in tensorflow jax; do \
	for seed in $$(seq 0 $$((($(or $(CASES),10000) - 1) / 1000))); do \
	echo "$$backend, PROPERTY_CASES=1000 PROPERTY_SEED=$$seed"; \
	KERAS_BACKEND=$$backend PROPERTY_CASES=1000 PROPERTY_SEED=$$seed \
	$(run) -m pytest -q -s tests/cells/test_properties.py || failed=1; done; done; \
	exit $$failed

# The oldest versions that setup.cfg allows, and the newest that install.
test-versions: ## run a short suite on the oldest and the newest TensorFlow and Keras
	@for versions in "tensorflow==2.20.0 keras==3.15.0" "--upgrade tensorflow keras"; do \
	"$(PYTHON)" -m venv --clear out/versions && \
	out/versions/bin/python -m pip install -q -e ".[all,dev]" && \
	out/versions/bin/python -m pip install -q $$versions && \
	out/versions/bin/python -m pip list | grep -Ei "^(keras|tensorflow|numpy) " && \
	KERAS_BACKEND=tensorflow out/versions/bin/python -m pytest -q -n 2 -m "not slow" \
	tests/test_keras_internals.py tests/cells/test_standards.py tests/cells/test_saved.py \
	tests/deployment || exit 1; done

lint: $(VENV)/.test ## check style, spelling, types and the Dockerfile
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/codespell
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --platform win32 keras_ortho data_prep experiments examples
	$(VENV)/bin/hadolint Dockerfile

docs: OUT = out/site
docs: $(VENV)/.docs ## build the documentation site: [OUT=out/site]
	$(run) -m sphinx -c docs -W --keep-going -q -d "$(OUT)/.doctrees" . "$(OUT)"
	@echo "The first page is $(OUT)/index.html"

# The tests run in the unpacked sdist, with the installed package in place of its source.
release-check: sdist = out/release/sdist
release-check: installed = $(abspath out/release/venv)
release-check: $(VENV)/.release ## build sdist and wheel, check both, and test what they install
	rm -rf dist out/release
	$(run) -m build
	$(run) -m twine check --strict dist/*
	$(run) -m venv "$(installed)"
	"$(installed)/bin/python" -m pip install -q "$$(ls dist/*.whl)[all,dev]"
	PATH="$(installed)/bin:$$PATH" $(run) scripts/check_types.py
	mkdir $(sdist) && tar -xf dist/*.tar.gz -C $(sdist) --strip-components 1
	rm -r $(sdist)/keras_ortho
	ln -s "$(installed)"/lib/python*/site-packages/keras_ortho $(sdist)/keras_ortho
	cd $(sdist) && KERAS_BACKEND=tensorflow "$(installed)/bin/python" -m pytest -n 2 \
	--dist loadfile -m "not slow" $(TESTS)

timit: OUT = out/timit
timit: timit-dir $(VENV)/.demo ## train on TIMIT: TIMIT_DIR=/path/to/TIMIT [OUT=out/timit]
	$(run) examples/timit_splits.py --corpus "$(TIMIT_DIR)" --out "$(OUT)"

bench: $(VENV)/.test ## run the benchmarks in their short form
	$(run) benchmarks/recurrence.py
	KERAS_BACKEND=jax $(run) benchmarks/recurrence.py

export-table: $(VENV)/.test ## export every layer in every format, and compare: [OUT=folder]
	$(run) benchmarks/deployment.py $(if $(OUT),--out "$(OUT)")

reproduce: $(VENV)/.test ## run the papers' experiments, the quick set: [SET=standard DATA=... OUT=... FRESH=1 LIST=1]
	$(run) examples/reproduce.py --set $(or $(SET),quick) $(if $(DATA),--data-dir "$(DATA)") \
	$(if $(OUT),--out "$(OUT)") $(if $(filter-out 0,$(FRESH)),--fresh) $(if $(filter-out 0,$(LIST)),--list)

clean: ## remove the environment, the caches and what was built; out/ stays
	if test -f $(VENV)/pyvenv.cfg; then rm -r $(VENV); fi
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -r {} +

# An environment may be installed several times: for the demonstration, the tests, the
# site and a release. The empty files say which succeeded since the requirements last changed.
$(VENV)/.demo: extras = speech,plot
$(VENV)/.test: extras = all,dev
$(VENV)/.docs: extras = docs
$(VENV)/.release: extras = release
stamps = $(VENV)/.demo $(VENV)/.test $(VENV)/.docs $(VENV)/.release
$(stamps): setup.cfg pyproject.toml keras_ortho/version.py
	@$(run) -m pip --version >/dev/null 2>&1 || \
	{ "$(PYTHON)" $(new_enough) && "$(PYTHON)" -m venv $(VENV); } || { echo "PYTHON must be \
	Python 3.11 or later, with venv. On Debian and Ubuntu: apt-get install python3 \
	python3-venv python3-dev gcc libc6-dev. Received: PYTHON=$(PYTHON)" >&2; exit 1; }
	@# uv takes a fifth of the time, but knows no settings of pip, such as an index.
	{ $(run) -m pip install -q uv && $(run) -m uv pip install -q -e ".[$(extras)]"; } || \
	$(run) -m pip install -e ".[$(extras)]"
	@touch $@

timit-dir:
	@test -d "$(TIMIT_DIR)" || { echo "TIMIT_DIR must name the folder of the TIMIT \
	corpus: make timit TIMIT_DIR=/path/to/TIMIT. Received: '$(TIMIT_DIR)'" >&2; exit 1; }
