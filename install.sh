#!/bin/sh
# Installs Sidekeep for this user: the host, its registration with the browsers, the sidekeep
# command. POSIX shell; it finds a Python and leaves the rest to host/sidekeep/ops.

set -eu

usage() {
  cat <<'END'
Usage: ./install.sh [options]

Installs Sidekeep for the present user, registers it with every browser found, and proves each
registration by starting the host as the browser would. Running it again updates, changes nothing
if there is nothing to change, and never touches your data.

  --extension-id ID     let this extension use Sidekeep (repeatable, added to those given before):
                        the 32 letters of a Chromium extension, chrome-extension://<id>/, or a
                        Firefox add-on id like name@host or {uuid}. Takes the place of the shipped
                        demo extension's id.
  --browser NAME        register only with this browser, also if it has no folder yet (repeatable):
                        chrome, chrome-beta, chromium, edge, brave, vivaldi, opera, firefox, ...
  --user-data-dir DIR   register also for a Chromium browser started with --user-data-dir=DIR
                        (repeatable)
  --data-dir DIR        keep the stores in DIR
  --python PATH         use this Python (3.10 or newer)
  --dry-run             say what would be done and touch nothing
  --uninstall           remove manifests, host and command; the data stays
  --help                show this

Exit code: 0 if everything said to be done was seen to work, 1 if not, 2 for wrong options.
END
}

fail() {
  printf 'sidekeep: %s\n' "$1" >&2
  exit "${2:-1}"
}

# Takes --python and --help out of the arguments; everything else goes on as it is.
python=
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  case $argument in
    --help | -h)
      usage
      exit 0
      ;;
    --python)
      [ "$left" -gt 0 ] || fail '--python needs the path of a Python' 2
      python=$1
      shift
      left=$((left - 1))
      [ -n "$python" ] || fail '--python needs the path of a Python' 2
      ;;
    --python=*)
      python=${argument#--python=}
      [ -n "$python" ] || fail '--python needs the path of a Python' 2
      ;;
    --extension-id | --browser | --user-data-dir | --data-dir)
      # The next word is this option's value, whatever it looks like.
      set -- "$@" "$argument"
      if [ "$left" -gt 0 ]; then
        set -- "$@" "$1"
        shift
        left=$((left - 1))
      fi
      ;;
    *) set -- "$@" "$argument" ;;
  esac
done

# Whether $1 is a CPython of at least 3.10 that starts.
suitable() {
  "$1" -c 'import sys
sys.exit(sys.version_info < (3, 10) or sys.implementation.name != "cpython")' >/dev/null 2>&1
}

if [ -n "$python" ]; then
  suitable "$python" || fail "$python is not a working Python 3.10 or newer"
else
  for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$candidate" >/dev/null 2>&1 && suitable "$candidate"; then
      python=$candidate
      break
    fi
  done
  [ -n "$python" ] || fail 'no Python 3.10 or newer was found; install one, or name it with --python PATH'
fi

case $0 in
  */*) here=${0%/*} ;;
  *) here=. ;;
esac
here=$(CDPATH='' cd -- "$here" && pwd -P)

# -B: nothing is written into the folder this runs from. utf8: paths in JSON files mean the same
# bytes whatever the locale is.
exec "$python" -B -X utf8 "$here/host/sidekeep/ops/__main__.py" --system "$(uname -s)" "$@"
