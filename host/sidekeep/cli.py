"""The ``sidekeep`` command.

Rules of this module: it turns words into one call of ``sidekeep.ops`` and the outcome into text; no
logic lives here. Errors are one sentence and what to do; exit codes are 0, 1 (it did not work) and
2 (the command makes no sense). Its launcher passes the system and the program home first.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidekeep import __version__
from sidekeep.errors import InvalidParams, NotFoundError, SidekeepError
from sidekeep.ops.files import exclusive
from sidekeep.ops.options import make_options
from sidekeep.ops.places import Places, find_places
from sidekeep.ops.report import Row, show
from sidekeep.ops.state import State, read_state

if TYPE_CHECKING:
    from sidekeep.ops.stores import StoreFolder

pass_places = click.make_pass_decorator(Places)


def main() -> None:
    """Run the command; what ``command.py`` in the program folder calls."""
    _, system, program, *words = sys.argv
    try:
        places = find_places(system, os.environ).with_program(Path(program))
        cli.main(args=words, prog_name="sidekeep", obj=places)
    except SidekeepError as error:
        click.echo(f"sidekeep: {error.message}", err=True)
        if error.next:
            click.echo(error.next, err=True)
        sys.exit(2 if isinstance(error, InvalidParams) else 1)
    except OSError as error:
        click.echo(
            f"sidekeep: {error.filename or 'the system'}: {error.strerror or error}", err=True
        )
        sys.exit(1)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sidekeep")
def cli() -> None:
    """Look after Sidekeep, which keeps browser extensions' data in local files of yours.

    Something does not work? Start with `sidekeep doctor`: it checks every step from the browser's
    manifest to the stored value and says what to do.
    """


@cli.command()
@pass_places
def status(places: Places) -> None:
    """Show the stores: whose they are, how many entries, how large."""
    from sidekeep.ops.stores import figures_of, find_stores

    data_dir = _installed(places).data_dir or places.default_data
    stores = find_stores(data_dir)
    rows = []
    for store in stores:
        figures = figures_of(store)
        problem = figures.get("problem")
        text = str(problem) if problem else _sizes(figures)
        title = f"{store.extension} / {store.profile}"
        rows.append(Row(title, str(store.folder), text, good=not problem))
    if rows:
        show(rows, ("extension / profile", "folder", "content"))
    else:
        click.echo(f"No extension has stored anything yet. Stores will lie in {data_dir}.")
    if not all(row.good for row in rows):
        sys.exit(1)


def _sizes(figures: dict[str, object]) -> str:
    return (
        f"{figures['entries']} entries, {_megabytes(figures['valueBytes'])} of values, "
        f"{figures['blobs']} blobs, file {_megabytes(figures['bytes'])}"
    )


def _megabytes(count: object) -> str:
    number = float(str(count))
    return f"{number / 1e6:.1f} MB" if number >= 1e5 else f"{number / 1e3:.1f} kB"


@cli.command()
@pass_places
def doctor(places: Places) -> None:
    """Check everything between browser and stored value, then do a real round trip.

    Each manifest is checked at least as strictly as the browser does it, and the host is started
    through it as the browser would: a value must survive a kill and a new start. Ends with 0 only
    if all of that was seen to work.
    """
    from sidekeep.ops.doctor import examine

    rows = examine(places)
    show(rows, ("what", "where", "result"))
    bad = [row for row in rows if row.good is False]
    click.echo("")
    click.echo(f"{len(bad)} problem(s), see above." if bad else "All is well.")
    sys.exit(1 if bad else 0)


def _registration_options(verb: str) -> list[click.Option]:
    folders = click.Path(file_okay=False)
    return [
        click.Option(
            ["--extension-id", "ids"],
            multiple=True,
            metavar="ID",
            help="32 letters, chrome-extension://<id>/, name@host or {uuid}. Repeatable.",
        ),
        click.Option(
            ["--browser", "browsers"],
            multiple=True,
            metavar="NAME",
            help=f"{verb} only this browser, for instance chrome or firefox. Repeatable.",
        ),
        click.Option(
            ["--user-data-dir", "user_data_dirs"],
            multiple=True,
            metavar="DIR",
            type=folders,
            help="A Chromium browser that is started with --user-data-dir=DIR. Repeatable.",
        ),
    ]


@cli.command()
@click.option("--data-dir", metavar="DIR", help="Keep the stores in DIR from now on.")
@pass_places
def register(
    places: Places,
    ids: tuple[str, ...],
    browsers: tuple[str, ...],
    user_data_dirs: tuple[str, ...],
    data_dir: str | None,
) -> None:
    """Register the host with browsers, or let further extensions use it.

    Without options: every browser found. The result is proved as install.sh does it.
    """
    from sidekeep.ops.install import carry_out
    from sidekeep.ops.plan import plan_for
    from sidekeep.ops.summary import print_summary

    options = make_options(
        ids=ids, browsers=browsers, user_data_dirs=user_data_dirs, data_dir=data_dir
    )
    _installed(places)
    with exclusive(places.lock):
        before = _installed(places)
        assert before.launch is not None
        plan = plan_for(places, before, options, before.launch)
        report = carry_out(plan)
    print_summary(plan, report)
    sys.exit(0 if report.good else 1)


@cli.command()
@pass_places
def unregister(
    places: Places,
    ids: tuple[str, ...],
    browsers: tuple[str, ...],
    user_data_dirs: tuple[str, ...],
) -> None:
    """Take registrations back: of all browsers, of named ones, or one extension's.

    The host and the data stay. With --extension-id alone, the manifests stay and that extension is
    no longer let in.
    """
    from sidekeep.ops.install import carry_out
    from sidekeep.ops.unregister import take_back

    options = make_options(ids=ids, browsers=browsers, user_data_dirs=user_data_dirs)
    _installed(places)
    with exclusive(places.lock):
        plan, lines = take_back(places, _installed(places), options)
        report = carry_out(plan)
    for line in lines or ["no manifest was removed"]:
        click.echo(line)
    show(report.rows, ("browser", "manifest", "result"))
    sys.exit(0 if report.good else 1)


register.params[:0] = _registration_options("Register with")
unregister.params[:0] = _registration_options("Take back from")


@cli.command()
@click.confirmation_option(prompt="Remove Sidekeep (your data stays)?")
@pass_places
def uninstall(places: Places) -> None:
    """Remove manifests, host and this command; the data stays."""
    from sidekeep.ops.uninstall import uninstall as remove

    for line in remove(places):
        click.echo(line)


def _store_options(command: click.Command) -> click.Command:
    command.params += [
        click.Option(["--extension"], metavar="ID", help="Whose store (a beginning is enough)."),
        click.Option(["--profile"], metavar="WORD", help="Which profile (a beginning is enough)."),
    ]
    return command


@cli.command()
@click.argument("key")
@pass_places
def get(places: Places, key: str, extension: str | None, profile: str | None) -> None:
    """Print the value of KEY as JSON."""
    from sidekeep.ops.stores import value_text

    for piece in value_text(_chosen(places, extension, profile), key):
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.write(b"\n")


@cli.command()
@pass_places
def keys(places: Places, extension: str | None, profile: str | None) -> None:
    """List the keys of a store, one JSON string per line."""
    import json

    from sidekeep.ops.stores import keys_of

    for key in keys_of(_chosen(places, extension, profile)):
        click.echo(json.dumps(key, ensure_ascii=False))


@cli.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@pass_places
def backup(places: Places, file: Path, extension: str | None, profile: str | None) -> None:
    """Write a checked copy of a store to FILE, which must not exist.

    The browser may go on meanwhile: the copy is one moment of the store.
    """
    from sidekeep.ops.stores import back_up

    size = back_up(_chosen(places, extension, profile), file)
    click.echo(f"{file}: {_megabytes(size)}, checked")


@cli.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@pass_places
def restore(places: Places, file: Path, extension: str | None, profile: str | None) -> None:
    """Put the copy FILE in the place of a store. Close the browser first.

    The copy is checked before anything is changed, and what it replaces stays beside it under a
    dated name.
    """
    from sidekeep.ops.stores import put_back

    store = _chosen(places, extension, profile)
    aside = put_back(store, file)
    click.echo(f"{store.folder} now holds {file}")
    if aside:
        click.echo(f"what was there before: {aside}")


@cli.command()
@pass_places
def verify(places: Places, extension: str | None, profile: str | None) -> None:
    """Read a whole store and compare every checksum and count."""
    from sidekeep.ops.stores import problems_of

    found = problems_of(_chosen(places, extension, profile))
    for problem in found:
        click.echo(problem)
    click.echo(f"{len(found)} problem(s)." if found else "All is well.")
    sys.exit(1 if found else 0)


for _command in (get, keys, backup, restore, verify):
    _store_options(_command)


def _chosen(places: Places, extension: str | None, profile: str | None) -> StoreFolder:
    from sidekeep.ops.stores import choose_store, find_stores

    data_dir = _installed(places).data_dir or places.default_data
    return choose_store(find_stores(data_dir), extension, profile)


def _installed(places: Places) -> State:
    """Return the state of the install; ``NotFoundError`` if there is none."""
    state = read_state(places)
    if state.launch is None:
        raise NotFoundError("Sidekeep is not installed here.", next="Run install.sh.")
    return state
