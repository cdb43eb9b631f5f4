# Everyday commands. `just` is in .venv/bin after ./test.sh --set-up.

# List the commands.
default:
    @just --list

# Set up, check and test everything.
test *paths:
    ./test.sh {{paths}}

# Lint and types only.
check:
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/mypy
    npm run --silent check

# Put the code into the one format.
format:
    .venv/bin/ruff check --fix .
    .venv/bin/ruff format .

# The long form of the torture and property programs (an hour or so).
long seed="":
    SIDEKEEP_LONG=1 .venv/bin/python -m pytest --no-skips {{ if seed == "" { "" } else { "--hypothesis-seed=" + seed } }}

# Sidekeep beside chrome.storage, IndexedDB and C hosts, in one Chromium.
bench *options:
    .venv/bin/python bench/pipe.py {{options}}

# The calls for conversations beside chrome.storage.local and C hosts, in one Chromium.
bench-history *options:
    .venv/bin/python bench/history.py {{options}}

# Renew the lock files after a change of pyproject.toml or package.json (needs uv).
lock:
    uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.10 pyproject.toml -o requirements/host.txt
    uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.10 pyproject.toml --extra tools --no-emit-package lmdb --no-emit-package msgspec --no-emit-package pillow -o requirements/tools.txt
    uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 pyproject.toml --extra tools --group dev -o requirements/dev.txt
    npm install --package-lock-only
