"""A helper process searches the store that a host has open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidekeep.errors import DamagedError, SidekeepError
from sidekeep.helper.parent import Helper
from sidekeep.searching import job
from sidekeep.searching.job import Excerpts, Find, FindPage, Job, Place
from sidekeep.searching.sessions import Page, Shown
from sidekeep.store.environment import Store
from tests.helper.waiting import ask
from tests.searching.calls import PREFIX, call, save, user


@pytest.fixture
def helper() -> Iterator[Helper]:
    made = Helper("search", seconds=60, memory=None, table="tests.searching.kinds")
    yield made
    made.close()


def answer(helper: Helper, work: Job) -> bytes:
    outcome = ask(helper, job.job(work))
    assert isinstance(outcome, bytes), outcome
    return outcome


def test_a_helper_finds_and_shows_what_the_host_has_just_stored(
    store: Store, helper: Helper
) -> None:
    place = Place(store.folder, "e", "p")
    assert job.hits(answer(helper, Find(place, "needle", [PREFIX]))) == []
    first = save(store, "n", user("the Needle in the hay"))
    (found,) = job.hits(answer(helper, Find(place, "needle", [PREFIX])))
    assert (found.session, found.where) == (first, "text")
    second = save(store, "needles", user("x"))
    hits = job.hits(answer(helper, Find(place, "needle", [PREFIX])))
    assert {hit.session: hit.where for hit in hits} == {first: "text", second: "name"}
    page = job.page(answer(helper, FindPage(place, "needle", [PREFIX], offset=1)))
    assert page == Page(2, [Shown(found, "the Needle in the hay")])
    texts = job.shown(answer(helper, Excerpts(place, "needle", [found.record, 999])))
    assert texts == ["the Needle in the hay", None]


def test_a_helper_follows_to_another_store(store: Store, helper: Helper, tmp_path: Path) -> None:
    save(store, "needle", user("x"))
    other = Store(str(tmp_path / "other"), extension="e", profile="q")
    try:
        here, there = Place(store.folder, "e", "p"), Place(other.folder, "e", "q")
        for place, count in ((here, 1), (there, 0), (here, 1)):
            assert len(job.hits(answer(helper, Find(place, "needle", [])))) == count
    finally:
        other.close()


def test_a_store_that_was_removed_is_told_and_searched_again_when_it_is_back(
    store: Store, helper: Helper, tmp_path: Path
) -> None:
    save(store, "needle", user("x"))
    work = Find(Place(store.folder, "e", "p"), "needle", [])
    assert len(job.hits(answer(helper, work))) == 1
    data = Path(store.path)
    data.rename(tmp_path / "away")
    for _ in range(2):
        outcome = ask(helper, job.job(work))
        assert isinstance(outcome, SidekeepError)
        assert isinstance(outcome, DamagedError)
    (tmp_path / "away").rename(data)
    assert len(job.hits(answer(helper, work))) == 1


def test_a_store_that_grew_beyond_its_map_is_searched(helper: Helper, tmp_path: Path) -> None:
    small = Store(str(tmp_path / "small"), extension="e", profile="p", map_size=300_000)
    try:
        work = Find(Place(small.folder, "e", "p"), "needle", [])
        assert job.hits(answer(helper, work)) == []
        for number in range(30):
            call(small, "history.append", entries=[user(f"{number} needle" + "x" * 50_000)])
        call(small, "sessions.save", name="n")
        assert len(job.hits(answer(helper, work))) == 1
    finally:
        small.close()
