# Everything a fresh machine needs is set up by the targets themselves; `make help` lists them.
.DEFAULT_GOAL := help
PYTEST := .venv/bin/python -m pytest
INTEGRATION ?= tests/integration
COMPARISON := $(addprefix tests/integration/,test_two_thousand_configurations.py test_mutated_files.py test_forms_against_binary.py \
  test_gate_sets_against_binary.py)
LEDGER := .pytest_cache/e2e
# Without cached byte code, every start of the operator compiles its libraries: 3 s of work.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 22
	@hack/test-parts list

.PHONY: demo
demo: ## Watch a real scheduler move to another profile (root; a minute once everything is set up)
	@hack/demo

.PHONY: test
test: setup ## What CI runs, in 20 minutes: all fast tests, and those of real parts that are marked presubmit (root)
	@exec hack/beside "$(PYTEST) tests/simulation $(COMPARISON) -m presubmit --timeout 1800" \
	  $(MAKE) --no-print-directory in-front

.PHONY: in-front
# Lint needs one processor. Each of the two prints its output when it has ended.
in-front:
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint alerts
	@$(MAKE) --no-print-directory unit integration e2e SELECT=presubmit

.PHONY: test-all
test-all: setup ## Every test, in parts; those that passed on the same files are not run again (root; hours)
	@hack/test-parts all $(PART)

.PHONY: setup
setup: ## Create the virtual environment with locked tools
	@hack/setup

.PHONY: lint
lint: setup ## Formatting, lint, types, import contracts, words
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	@hack/words

.PHONY: words
words: ## Search all text for the words of hack/words.txt
	@hack/words

.PHONY: unit
# Some wait, so three at a time use two processors.
unit: setup ## Unit tests, and tests of hack/; no network beyond loopback
	$(PYTEST) tests/unit tests/sandbox -n 3

.PHONY: alerts
alerts: setup ## Alerts, checked with promtool (the first time it is downloaded or built: minutes)
	$(PYTEST) tests/monitoring -n 2

.PHONY: site
site: setup ## The documentation as a site in build/site, which works without a network
	.venv/bin/python hack/site

.PHONY: site-tests
site-tests: setup ## The site: links, search, navigation and accessibility, in a browser (root, the first time)
	$(PYTEST) tests/site

.PHONY: console-tests
console-tests: setup ## The pages of the console in a browser: width, accessibility, keyboard (root, the first time)
	$(PYTEST) tests/console

.PHONY: simulation
simulation: setup ## The real reconcile in a simulated cluster with faults
	$(PYTEST) tests/simulation -n 2 --timeout 1800

.PHONY: comparison
comparison: setup ## Two thousand configurations, 500 mutated files a version, and forms, compared with kube-scheduler
	$(PYTEST) $(COMPARISON) -n 2 --dist loadfile

.PHONY: integration
# They wait as well, so four at a time use two processors.
integration: setup ## The real operator against a real kube-apiserver
	$(PYTEST) $(INTEGRATION) -n 4 --no-loadscope-reorder $(addprefix --ignore ,$(COMPARISON)) $(addprefix -m ,$(SELECT))

.PHONY: e2e
e2e: export KSO_LEDGER = $(LEDGER)
e2e: setup ## End to end: real kubelets and kube-schedulers (root)
	rm -rf $(LEDGER)
	$(PYTEST) tests/e2e -m '$(addsuffix $() and ,$(SELECT))not audit' -n 2 -v --durations=10
	$(if $(SELECT),,$(PYTEST) tests/e2e -m audit -v)

.PHONY: planted-faults
planted-faults: setup ## Faults of the product, planted one after the other: each must be found by its tests
	$(PYTEST) tests/planted_faults --timeout 3600

.PHONY: test-versions
test-versions: setup ## The end-to-end tests marked core on other versions: VERSIONS="1.35 1.37" (root)
	@hack/test-versions $(VERSIONS)

.PHONY: bench
bench: setup ## Speed and memory, as a table and JSON in bench-results/ (root)
	@hack/bench rollout
	@hack/bench many
	@hack/bench extender --full
	@hack/bench faults --repeat 3

.PHONY: soak
soak: setup ## Hours, in parts, with a random seed that a failure names (root)
	@hack/test-parts soak $(PART)

.PHONY: release
release: setup ## All files of a release in dist/, from a commit: VERSION=0.1.0 (RELEASE_URL, IMAGE_REPOSITORY, COSIGN_KEY)
	@hack/release build --version "$(VERSION)"

.PHONY: clean
clean: ## Remove the files that the targets created here
	rm -rf .venv build dist bench-results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
