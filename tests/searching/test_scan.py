"""The scan finds what a look at each row finds, however rows are joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidekeep.searching import scan
from sidekeep.searching.scan import (
    ATTACHED,
    ATTACHMENT,
    TEXT,
    USER,
    Batch,
    Found,
    first_hits,
    first_hits_list_by_list,
    matching_records,
)
from sidekeep.store.layout import ENTRY, ENTRY_KEY, NUMBER
from sidekeep.text.fold import folded

PREFIXES = [b"[page", b"[site"]
Row = tuple[int, list[str]]

texts = st.lists(st.text("ab[page", max_size=8), min_size=1, max_size=3)
rows = st.lists(st.tuples(st.integers(0, 3), texts), max_size=30)
queries = st.text("ab[p\x01\0", min_size=1, max_size=3)
counts = st.integers(1, 7)


def batches(pairs: Iterable[tuple[bytes, bytes]], count: int, table: bytes) -> list[Batch]:
    everything = [(memoryview(table + key), memoryview(row)) for key, row in pairs]
    made = []
    for start in range(0, len(everything), count):
        some = everything[start : start + count]
        keys = [key for key, _ in some]
        made.append(Batch([row for _, row in some], keys.copy))
    return made


def search_rows(rows: Sequence[Row], count: int, table: bytes = b"t") -> list[Batch]:
    pairs = (
        (NUMBER.pack(7 * number), bytes((flags,)) + "\0".join(map(folded, texts)).encode())
        for number, (flags, texts) in enumerate(rows, 1)
    )
    return batches(pairs, count, table)


def expected(rows: Sequence[Row], wanted: str) -> dict[int, int]:
    found = {}
    for number, (flags, texts) in enumerate(rows, 1):
        parts = [folded(text) for text in texts]
        if any(wanted in part for part in parts):
            begins = any(part.encode().startswith(tuple(PREFIXES)) for part in parts)
            attached = flags & USER and (flags & ATTACHED or begins)
            found[7 * number] = ATTACHMENT if attached else TEXT
    return found


@settings(deadline=None)
@given(rows, queries, counts, st.sampled_from([b"", b"t"]))
@example([(1, ["ab"]), (1, ["b"])], "b\x01", 2, b"")
@example([(1, ["a", "b"])], "a\0b", 2, b"")
def test_what_hits_is_found_and_told_apart(
    rows: list[Row], query: str, count: int, table: bytes
) -> None:
    wanted = folded(query)
    found = matching_records(search_rows(rows, count, table), wanted.encode(), PREFIXES)
    assert found == expected(rows, wanted)


@settings(deadline=None)
@given(rows, queries)
def test_rows_too_long_to_be_joined_are_found_alike(rows: list[Row], query: str) -> None:
    wanted = folded(query)
    usual = scan._JOINED_BYTES
    scan._JOINED_BYTES = 12
    try:
        found = matching_records(search_rows(rows, 5), wanted.encode(), PREFIXES)
    finally:
        scan._JOINED_BYTES = usual
    assert found == expected(rows, wanted)


def test_without_prefixes_only_an_id_makes_an_attachment() -> None:
    rows: list[Row] = [(USER, ["[page x"]), (USER | ATTACHED, ["x"]), (ATTACHED, ["x"])]
    for prefixes in ([], [b""]):
        found = matching_records(search_rows(rows, 9), b"x", prefixes)
        assert list(found.values()) == [TEXT, ATTACHMENT, TEXT]


entries = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 20)), max_size=40)


@settings(deadline=None)
@given(entries, st.dictionaries(st.integers(1, 20), st.sampled_from([TEXT, ATTACHMENT])), counts)
def test_the_first_text_of_a_list_counts_before_its_first_attachment(
    entries: list[tuple[int, int]], records: dict[int, int], count: int
) -> None:
    entries = sorted(entries, key=lambda entry: entry[0])
    pairs = []
    wanted: dict[int, Found] = {}
    for position, (number, record) in enumerate(entries):
        pairs.append((ENTRY_KEY.pack(number, position), ENTRY.pack(100 + position, record)))
    for kind in (TEXT, ATTACHMENT):
        for position, (number, record) in enumerate(entries):
            if records.get(record) == kind:
                wanted.setdefault(number, Found(kind, 100 + position, record))
    assert first_hits(batches(pairs, count, b"e"), records) == wanted


@settings(deadline=None)
@given(
    rows,
    queries,
    st.lists(st.lists(st.integers(0, 31), max_size=8), max_size=8),
    st.sampled_from([[], PREFIXES]),
)
def test_both_ways_find_the_same(
    rows: list[Row], query: str, lists: list[list[int]], prefixes: list[bytes]
) -> None:
    wanted = folded(query).encode()
    texts = {
        7 * number: bytes((flags,)) + "\0".join(map(folded, texts)).encode()
        for number, (flags, texts) in enumerate(rows, 1)
    }
    entries = {
        number: [(50 * number + place, 7 * record) for place, record in enumerate(records)]
        for number, records in enumerate(lists, 1)
    }
    pairs = (
        (ENTRY_KEY.pack(number, place), ENTRY.pack(*entry))
        for number, some in entries.items()
        for place, entry in enumerate(some)
    )
    at_once = first_hits(
        batches(pairs, 3, b"e"), matching_records(search_rows(rows, 4), wanted, prefixes)
    )
    each = first_hits_list_by_list(entries, entries.__getitem__, texts.get, wanted, prefixes)
    assert each == at_once
