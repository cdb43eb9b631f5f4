"""What the documents say is what the code does."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

from sidekeep import errors, service
from sidekeep.errors import SidekeepError
from sidekeep.store import layout

ROOT = Path(__file__).resolve().parents[1]
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text()
FORMAT = (ROOT / "docs" / "format.md").read_text()


def _classes() -> list[type[SidekeepError]]:
    return [
        found
        for found in vars(errors).values()
        if isinstance(found, type)
        and issubclass(found, SidekeepError)
        and found is not SidekeepError
    ]


def test_the_table_of_errors_names_every_class_and_no_other() -> None:
    table = {
        int(code): kind
        for code, kind in re.findall(r"^\| (-32\d{3}) \| `(\w+)` \|", PROTOCOL, re.M)
    }
    assert table == {found.code: found.kind for found in _classes()}
    assert len(table) == len(_classes())


def test_every_method_stands_in_the_protocol_and_no_other() -> None:
    rows = re.findall(r"^\| (`[\w.]+`(?: / `\w+`)*) \|", PROTOCOL, re.M)
    named = {name for row in rows for name in re.findall(r"`(\w+\.\w+)`", row)}
    for row in rows:
        first, *others = re.findall(r"`([\w.]+)`", row)
        named |= {f"{first.split('.')[0]}.{other}" for other in others if "." in first}
    source = (ROOT / "host" / "sidekeep" / "connection.py").read_text()
    directly = set(re.findall(r'call\.method == "([\w.]+)"', source))
    assert directly
    modules = [import_module(name) for name in service.MODULES.values()]
    assert named == {name for module in modules for name in module.METHODS} | directly


def test_every_table_of_the_file_stands_in_its_description() -> None:
    tree = ast.parse((ROOT / "host/sidekeep/store/layout.py").read_text())
    tables = {
        node.targets[0].id.lower(): node.value.value.decode()
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, bytes)
        and len(node.value.value) == 1
    }
    described = dict(re.findall(r"^\| (\w+) \| `(\w)` \|", FORMAT, re.M))
    assert tables == described
    assert layout.FORMAT == 2


def test_the_map_of_the_code_knows_every_decision() -> None:
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == list(range(1, len(pages) + 1))
    for page, number in zip(pages, numbers, strict=True):
        assert page.read_text().startswith(f"# {number}. ")
