#!/bin/sh
# Runs every check and every test, a real Chromium with the real extension among them, after setting
# up what they need: a private .venv and node_modules from the lock files, and Chromium.
#
#   ./test.sh              everything
#   ./test.sh --set-up     only the set-up
#   ./test.sh PATH…        only these Python tests
#
# Exit code 0 only if everything passed and no test was skipped.

set -eu
cd -- "$(dirname -- "$0")"

say() { printf '\n== %s\n' "$1"; }
fail() {
  printf 'test.sh: %s\n' "$1" >&2
  exit 1
}

find_python() {
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  fail 'no Python 3.11 or newer was found; the tests need it'
}

# Chromium is Debian's package; another Chrome or Chromium can be named with SIDEKEEP_CHROMIUM.
set_up_chromium() {
  chromium=${SIDEKEEP_CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
  if [ -z "$chromium" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say 'Chromium'
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null
    chromium=$(command -v chromium || true)
  fi
  [ -n "$chromium" ] ||
    fail 'Chromium was not found; install it (Debian: sudo apt-get install chromium) or set SIDEKEEP_CHROMIUM'
  SIDEKEEP_CHROMIUM=$chromium
  export SIDEKEEP_CHROMIUM
}

set_up_python() {
  wanted=$(cksum <requirements/dev.txt)
  if [ ! -x .venv/bin/python ] || [ "$(cat .venv/lock 2>/dev/null)" != "$wanted" ]; then
    say 'Python packages'
    rm -rf .venv
    "$(find_python)" -m venv .venv ||
      fail 'the private environment could not be made (Debian: sudo apt-get install python3-venv)'
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
      -r requirements/dev.txt
    printf '%s\n' "$wanted" >.venv/lock
  fi
}

set_up_node() {
  command -v npm >/dev/null 2>&1 || fail 'npm was not found; install Node.js 20 or newer'
  set_up_node_packages .
  # Libraries that the browser tests run over the stub; nothing of them is shipped.
  set_up_node_packages tests/browser/libraries
}

set_up_node_packages() {
  wanted=$(cksum <"$1/package-lock.json")
  if [ "$(cat "$1/node_modules/.lock" 2>/dev/null)" != "$wanted" ]; then
    say "Node packages ($1)"
    npm ci --prefix "$1" --ignore-scripts --silent --no-audit --no-fund
    printf '%s\n' "$wanted" >"$1/node_modules/.lock"
  fi
}

set_up_chromium
set_up_python
set_up_node
[ "${1:-}" != --set-up ] || exit 0

# Every run of the random tests can be repeated with the seed that it prints.
seed=${SIDEKEEP_SEED:-$(date +%s)}
if [ $# -gt 0 ]; then
  exec .venv/bin/python -m pytest --hypothesis-seed="$seed" "$@"
fi

say 'Lint and types'
.venv/bin/ruff check .
.venv/bin/ruff format --check --quiet .
.venv/bin/mypy
npm run --silent check

say 'Tests of the stub'
npm test --silent

say "Tests of the host, the installer and the browser (seed $seed)"
# One process per core; a file of tests stays in one of them. All must collect the same tests in the
# same order, also where a set stands behind them.
PYTHONHASHSEED=0 .venv/bin/python -m pytest --hypothesis-seed="$seed" --no-skips -n auto --dist loadfile
