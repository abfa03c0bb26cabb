# Everything runs in .venv, which any target makes by itself. Needs Python >= 3.11 and make.
PYTHON ?= python3
BIN := .venv/bin
DEMO ?= demo

.PHONY: demo quick test slow bench lint warm docs site pictures constraints clean

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[all,dev,docs]'
	touch $@

.venv/peers: .venv/ready
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[peers]'
	touch $@

demo: .venv/ready
	$(BIN)/miserly demo --out $(DEMO)

quick: .venv/ready  ## unit tests only: no browser, Redis, cluster, wheel or site
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow and not integration'

test: .venv/ready
	$(MAKE) --no-print-directory -j2 lint warm
	$(BIN)/python -m pytest -n auto --dist worksteal

slow: .venv/ready
	$(BIN)/python -m pytest --hypothesis-profile=new -m 'slow or hypothesis'

bench: .venv/peers
	$(BIN)/python -m benchmarks

lint: .venv/ready
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/lint-imports
	$(BIN)/mypy

warm: .venv/ready  ## compile the loops once, beside the checks, not in each process of the tests
	$(BIN)/miserly warmup

docs: .venv/ready
	$(BIN)/python docs/cli.py > docs/cli.md
	$(BIN)/python docs/layers.py

site: .venv/ready  ## the documentation as a site; a test builds it too
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "The site is site/index.html."

pictures: demo  ## those of the pages: drawn by what the pages show, by the demo, and by docs/which.py
	$(BIN)/python docs/pages.py
	$(BIN)/python docs/which.py
	cp $(DEMO)/frontier.png docs/pictures/demo.png

constraints:  ## versions only, no index address
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links -o constraints.txt

clean:
	rm -rf .venv build dist site $(DEMO)
