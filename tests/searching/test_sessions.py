"""Saved conversations are found by what they say, and say where: cases D 69 to 84 and the like."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidekeep.searching import sessions
from sidekeep.store.environment import Store
from sidekeep.store.layout import ENTRIES, RECORDS, SEARCH
from sidekeep.store.transaction import Transaction
from sidekeep.text.fold import folded
from tests.searching.calls import (
    PREFIX,
    assistant,
    call,
    hits,
    ids,
    parts,
    save,
    shown,
    user,
    where,
)


def test_text_behind_a_hundred_thousand_characters_is_found(store: Store) -> None:  # case 71
    session = save(store, "n", user("A" * 100_000), user("needle"))
    assert where(store, "needle") == {session: "text"}


def test_a_big_attachment_hides_nothing(store: Store) -> None:  # case 72
    session = save(store, "n", user(f"{PREFIX}\n" + "x" * 120_000), user("needle"))
    assert where(store, "needle") == {session: "text"}
    assert where(store, "xxx") == {session: "attachment"}


def test_the_name_is_found_in_any_case_and_width(store: Store) -> None:  # case 81
    session = save(store, "greeting", user("hello"))
    for query in ("GREETING", "eeti", "ｇｒｅｅｔ"):
        found = hits(store, query)
        assert found.keys() == {session}
        assert found[session].where == "name"
        assert (found[session].entry, found[session].record) == (0, 0)


def test_white_space_around_a_query_does_not_matter(store: Store) -> None:  # case 82
    session = save(store, "n", user("some json here"))
    assert where(store, "  json\n ") == {session: "text"}
    assert where(store, "some json") == {session: "text"}
    assert where(store, "somejson") == {}


def test_a_blank_query_finds_nothing(store: Store) -> None:
    save(store, "a  b", user("a  b"))
    assert hits(store, "") == hits(store, " \n") == {}


def test_finding_reads_no_body(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:  # case 84
    session = save(store, "n", user("needle"))
    touched = []
    get, rows = Transaction.get, Transaction.rows

    def watched_get(self: Transaction, table: bytes, key: bytes) -> memoryview | None:
        touched.append(table)
        return get(self, table, key)

    def watched_rows(
        self: Transaction, table: bytes, start: bytes = b""
    ) -> Iterator[tuple[memoryview, memoryview]]:
        touched.append(table)
        return rows(self, table, start)

    monkeypatch.setattr(Transaction, "get", watched_get)
    monkeypatch.setattr(Transaction, "rows", watched_rows)
    assert where(store, "needle") == {session: "text"}
    assert RECORDS not in touched
    with store.read() as transaction:
        sessions.excerpts(transaction, "needle", [hits(store, "needle")[session].record])
    assert RECORDS in touched  # so the watch works


SENTENCES = {
    "English": ("I was testing the engine", "est"),
    "Chinese": ("我们昨天去了上海", "昨天"),
    "Japanese": ("昨日は東京へ行きました", "東京"),
    "Korean": ("어제 서울에 갔습니다", "서울"),
    "Thai": ("เมื่อวานไปกรุงเทพ", "กรุง"),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_the_middle_of_a_sentence_is_found(store: Store, language: str) -> None:
    sentence, query = SENTENCES[language]
    in_text = save(store, "n", assistant("other"), assistant(sentence))
    in_name = save(store, sentence, user("other"))
    assert where(store, query) == {in_text: "text", in_name: "name"}
    found = hits(store, query)[in_text]
    assert found.entry == ids(store, in_text)[1]
    assert shown(store, query) == {in_text: sentence}


def test_a_query_is_literal(store: Store) -> None:
    session = save(store, "n", user("50% of a.b* [x] \\d"))
    for query in ("50%", "a.b*", "[x]", "\\d"):
        assert where(store, query) == {session: "text"}
    for query in ("a?b", ".*", "\\w", "5_%"):
        assert where(store, query) == {}


def test_name_then_text_then_attachment(store: Store) -> None:
    attached = user(f"{PREFIX}\nword")
    all_three = save(store, "word", attached, user("word"))
    two = save(store, "n", attached, assistant("other"), assistant("WORD"), user("word"))
    one = save(store, "n", user("other"), attached)
    none = save(store, "n", user("other"))
    assert where(store, "word") == {all_three: "name", two: "text", one: "attachment"}
    assert none not in hits(store, "word")
    found = hits(store, "word")
    assert found[two].entry == ids(store, two)[2]
    assert found[one].entry == ids(store, one)[1]


def test_attachments_are_known_by_id_or_by_the_beginning_of_any_text(store: Store) -> None:
    kinds = {
        save(store, "n", user("page word", attachId="a-1")): "attachment",
        save(store, "n", user(parts("look:", f"{PREFIX}\nword"))): "attachment",
        save(store, "n", user(f"see {PREFIX} word")): "text",
        save(store, "n", assistant(f"{PREFIX} word")): "text",
        save(store, "n", assistant("word", attachId="a-2")): "text",
        save(store, "n", user("[Site] word")): "text",
    }
    assert where(store, "word") == kinds
    last = list(kinds)[-1]
    assert where(store, "word", PREFIX, "[Site]")[last] == "attachment"


def test_texts_of_an_entry_are_searched_each_by_itself(store: Store) -> None:
    session = save(store, "n", user(parts("one", "two")))
    assert where(store, "two") == {session: "text"}
    assert where(store, "onetwo") == where(store, "one\0two") == where(store, "one two") == {}


def test_only_text_is_found(store: Store) -> None:
    url = "data:image/png;base64," + "QUJD" * 3000
    entry = user(
        [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    )
    session = save(store, "n", entry)
    assert where(store, "look") == {session: "text"}
    for query in ("QUJD", "image_url", "user", "png"):
        assert where(store, query) == {}


def test_the_live_history_alone_is_not_found(store: Store) -> None:
    session = save(store, "n", user("old"))
    call(store, "history.append", entries=[user("new")])
    assert where(store, "old") == {session: "text"}
    assert where(store, "new") == {}


def test_an_entry_in_many_sessions_is_found_in_each(store: Store) -> None:
    call(store, "history.append", entries=[user("first"), user("shared")])
    saved = [call(store, "sessions.save")["id"] for _ in range(3)]
    assert where(store, "shared") == dict.fromkeys(saved, "text")
    assert len({hit.record for hit in hits(store, "shared").values()}) == 1


def test_changes_are_found_at_once(store: Store) -> None:
    session = save(store, "n", user("before"))
    entry = ids(store, session)[0]
    call(store, "history.update", id=f"e{entry}", entry=user("after"))
    assert where(store, "before") == {session: "text"}
    call(store, "sessions.save", id=session)
    assert where(store, "before") == {}
    assert where(store, "after") == {session: "text"}
    call(store, "sessions.append", id=session, entries=[assistant("more")])
    assert where(store, "more") == {session: "text"}
    call(store, "sessions.rename", id=session, name="Title")
    assert where(store, "title") == {session: "name"}


def test_what_is_deleted_is_found_only_when_it_is_back(store: Store) -> None:
    session = save(store, "name", user("needle"))
    undo = call(store, "sessions.delete", id=session)["undo"]
    assert where(store, "needle") == where(store, "name") == {}
    call(store, "sessions.restore", undo=undo)
    assert where(store, "needle") == {session: "text"}


def test_sessions_written_as_plain_keys_are_found(store: Store) -> None:
    items = {
        "savedSessions": [{"id": "é1", "name": "n"}, {"id": "gone", "name": "word"}],
        "session_é1": [user("word")],
        "session_nobody": [user("word")],
        "session_plain": {"no": "array"},
        "session_": [user("word")],
    }
    call(store, "storage.set", area="local", items=items)
    assert where(store, "word") == {"é1": "text", "gone": "name"}


def test_an_excerpt_shows_the_text_as_it_was(store: Store) -> None:
    text = "Anfang " * 100 + "die\nSTRASSE\tist lang" + " Ende" * 100
    session = save(store, "n", user(parts("nothing here", text)))
    (excerpt,) = shown(store, "straße").values()
    assert session in hits(store, "straße")
    assert excerpt is not None
    assert "die STRASSE ist lang" in excerpt
    assert excerpt.startswith("…") and excerpt.endswith("…")


def test_an_excerpt_of_what_is_gone_is_none(store: Store) -> None:
    session = save(store, "n", user("needle"))
    record = hits(store, "needle")[session].record
    with store.read() as transaction:
        assert sessions.excerpts(transaction, "needle", [record, 10**6]) == ["needle", None]
        assert sessions.excerpts(transaction, "other", [record]) == [None]


def test_hits_come_in_the_order_of_the_list_and_in_pages(store: Store) -> None:
    made = [save(store, f"Needle {number}", user("x")) for number in range(4)]
    text = save(store, "n", user("x"), user("a needle"))
    call(store, "sessions.pin", id=made[1], pinned=True)
    order = [made[1], text, made[3], made[2], made[0]]
    with store.read() as transaction:
        for offset, limit in ((0, None), (0, 2), (1, 2), (4, 9), (9, None), (0, 0)):
            page = sessions.page(transaction, " needle", [PREFIX], offset, limit)
            assert page.total == 5
            chosen = order[offset:][:limit]
            assert [one.hit.session for one in page.shown] == chosen
        shown = sessions.page(transaction, "needle", [PREFIX], 0, 2).shown
    assert [one.excerpt for one in shown] == ["Needle 1", "a needle"]
    assert [one.hit.where for one in shown] == ["name", "text"]


WORDS = ["Alpha", "beta", "β", "ГАММА", "Straße", "昨天", "서울", PREFIX, "👍🏽", "e\u0301"]
contents = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
drawn_entries = st.builds(
    lambda role, texts, attached: {
        "role": role,
        "content": parts(*texts) if len(texts) > 1 else texts[0],
        **({"attachId": "a"} if attached else {}),
    },
    st.sampled_from(["user", "assistant"]),
    st.lists(contents, min_size=1, max_size=2),
    st.booleans(),
)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(contents, st.lists(drawn_entries, min_size=1, max_size=5)), max_size=6),
    contents.map(str.upper),
)
def test_a_search_finds_what_a_look_at_each_session_finds(
    store: Store, drawn: list[tuple[str, list[dict[str, object]]]], query: str
) -> None:
    call(store, "storage.clear", area="local")
    expected = {}
    for name, entries in drawn:
        session = save(store, name, *entries)
        kinds = {"name": 1} if folded(query) in folded(name) else {}
        for index, entry in enumerate(entries):
            content = entry["content"]
            texts = [content] if isinstance(content, str) else [part["text"] for part in content]  # type: ignore[attr-defined]
            if any(folded(query) in folded(text) for text in texts):
                attached = entry["role"] == "user" and (
                    "attachId" in entry or any(text.startswith(PREFIX) for text in texts)
                )
                kinds.setdefault("attachment" if attached else "text", index)
        for kind in ("name", "text", "attachment"):
            if kind in kinds:
                expected[session] = (kind, kinds[kind])
                break
    found = hits(store, query)
    assert {session: hit.where for session, hit in found.items()} == {
        session: kind for session, (kind, _) in expected.items()
    }
    for session, (kind, index) in expected.items():
        if kind != "name":
            assert found[session].entry == ids(store, session)[index]
    for text in shown(store, query).values():
        assert text is not None and folded(query) in folded(text)


def test_many_rows_are_all_looked_at(store: Store) -> None:
    entries = [user(f"entry {number} {'x' * (number % 7) * 300}") for number in range(700)]
    session = save(store, "n", *entries)
    for number in (0, 63, 64, 255, 256, 699):
        found = hits(store, f"entry {number} ")[session]
        assert found.entry == ids(store, session)[number]
    with store.read() as transaction:
        assert transaction.count(SEARCH) == 700
        assert transaction.count(ENTRIES) > 1400
