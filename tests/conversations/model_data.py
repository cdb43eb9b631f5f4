"""Values for the model's test: entries, pictures, arrays as an extension writes them."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from hypothesis import strategies as st

from tests.conversations.chat import assistant, attachment, image, text, user
from tests.conversations.model import INDEX, Entries, is_view, session_of

SESSIONS = ["s1", "s2", "s3"]
KEYS = ["history", "savedSessions", *(f"session_{one}" for one in SESSIONS), "session_", "other"]


def ordered(value: Any) -> Any:
    """Return the value with the keys of its objects in order, as the stub sends it."""
    return json.loads(json.dumps(value, sort_keys=True))


def shot(seed: int, size: int = 3_200) -> str:
    """Return the data URL of a small picture."""
    content = random.Random(seed).randbytes(size)
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


PICTURES = [
    *(shot(seed, 3_200 + 700 * seed) for seed in range(3)),
    "data:image/svg+xml;utf8,'svg'" + "é" * 2_100,
    shot(1, 3_900)[:-4] + "AAA",
    "data:image/gif;base64," + "A" * 5,
    shot(7, 60_000),
    shot(8, 200_000),  # travels in parts
]
SHOTS = st.integers(0, len(PICTURES) - 1).map(lambda number: image(PICTURES[number]))
WORDS = st.sampled_from(["a", "b", "ab", "a b", "Äé😀", "", " ", "x" * 60, "y" * 5_000])
FIELDS = st.dictionaries(st.sampled_from(["imagesSeen", "time"]), st.sampled_from([True, 1, "t"]))
PARTS = st.lists(WORDS.map(text) | SHOTS | st.just({"type": "other"}), max_size=3)
ENTRIES = (
    st.builds(lambda content, fields: user(content, **fields), WORDS | PARTS, FIELDS)
    | st.builds(lambda content, fields: assistant(content, **fields), WORDS | PARTS, FIELDS)
    | st.builds(
        lambda name, body: attachment("https://a", "A", body, attachId=name),
        st.sampled_from(["i", "j"]),
        WORDS,
    )
    | st.sampled_from([None, 5, "text", [], {}, {"role": "user", "parts": ["a"]}, {"x": [1]}])
).map(ordered)
ROWS = (
    st.builds(
        lambda session, name, created, pinned: {
            "createdAt": created,
            "id": session,
            "name": name,
            "pinned": pinned,
        },
        st.sampled_from(SESSIONS),
        st.sampled_from(["A", "B", "é" * 90, ""]),
        st.integers(0, 5) | st.just("no time"),
        st.sampled_from([True, False, None, 0]),
    )
    | st.sampled_from([None, "text", {"name": "no id"}, {"id": 5}, {"agent": "c", "id": "s1"}])
).map(ordered)
PLAIN: st.SearchStrategy[Any] = st.sampled_from([None, 0, "text", {"no": "array"}, {"history": []}])


def single(rows: list[Any]) -> list[Any]:
    """Return rows without a second one of any session (they have a test of their own)."""
    seen: set[str] = set()
    kept = []
    for row in rows:
        session = session_of(row)
        if session not in seen:
            kept.append(row)
        if session:
            seen.add(session)
    return kept


def array(data: st.DataObject, key: str, present: Any, former: list[list[Any]]) -> list[Any]:
    """Draw an array for a key: a change of the present one, a former one, or another."""
    elements = ROWS if key == INDEX else ENTRIES
    values = list(present.values) if isinstance(present, Entries) else []
    kind = data.draw(
        st.sampled_from(["changed", "changed", "changed", "former", "new", "shortened", "mixed"])
    )
    if kind == "former" and former:
        values = list(data.draw(st.sampled_from(former)))
    elif kind == "new":
        values = data.draw(st.lists(elements, max_size=4))
    elif kind == "shortened":
        values = values[: data.draw(st.integers(0, len(values)))]
    elif kind == "mixed":
        values = data.draw(st.permutations(values))
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            values = _changed(data, values, elements)
    return single(values) if key == INDEX else values


def _changed(data: st.DataObject, values: list[Any], elements: st.SearchStrategy[Any]) -> list[Any]:
    place = data.draw(st.integers(0, len(values)))
    at = values[:place], values[place : place + 1], values[place + 1 :]
    kind = data.draw(st.sampled_from(["insert", "remove", "stamp", "grow", "exchange", "double"]))
    before, here, after = at
    if kind == "insert":
        return [*before, data.draw(elements), *here, *after]
    if kind == "remove" or not here:
        return [*before, *after]
    if kind == "double":
        return [*before, *here, *here, *after]
    one = here[0]
    if kind == "stamp" and isinstance(one, dict):
        one = ordered({**one, "stamped": data.draw(st.integers(0, 2))})
    elif kind == "grow" and isinstance(one, dict) and isinstance(one.get("content"), str):
        one = ordered({**one, "content": one["content"] + "+"})
    else:
        one = data.draw(elements)
    return [*before, one, *after]


def value(data: st.DataObject, key: str, present: Any, former: list[list[Any]]) -> Any:
    """Draw a value for a plain key."""
    if not is_view(key) or data.draw(st.integers(0, 9)) == 0:
        return data.draw(PLAIN | st.lists(st.integers(0, 3), max_size=2))
    return array(data, key, present, former)


def replaced(given: Any, tokens: dict[str, str]) -> Any:
    """Return a value with tokens in place of pictures."""
    if isinstance(given, str):
        return tokens.get(given, given)
    if isinstance(given, list):
        return [replaced(one, tokens) for one in given]
    if isinstance(given, dict):
        return {name: replaced(one, tokens) for name, one in given.items()}
    return given
