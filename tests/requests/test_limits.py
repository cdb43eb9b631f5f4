"""How many pictures a turn may bring along."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.requests.limits import MOST_BYTES, admitted, refusal
from sidekeep.store import tokens
from sidekeep.store.layout import KIND_BASE64
from sidekeep.store.rope import Blob

SMALL = "data:image/png;base64,AAAA"
LARGE = "data:image/png;base64," + "A" * MOST_BYTES
HALF = "data:image/png;base64," + "A" * (MOST_BYTES // 2)


def token(length: int, prefix: bytes = b"data:image/png;base64,") -> str:
    return tokens.write(Blob(KIND_BASE64, bytes(32), length, prefix, None)).decode()


@pytest.mark.parametrize(
    ("urls", "kept", "dropped"),
    [
        pytest.param([SMALL] * 12, [SMALL] * 8, 4, id="the first eight"),
        pytest.param([LARGE, SMALL], [SMALL], 1, id="one too large and a small one"),
        pytest.param([HALF, HALF, SMALL], [HALF, SMALL], 1, id="a smaller one later still fits"),
        pytest.param(None, [], 0, id="nothing"),
        pytest.param([], [], 0, id="none"),
        pytest.param(["  https://a.com/p.png\n"], ["https://a.com/p.png"], 0, id="white space"),
        pytest.param(["HTTP://a.com/p.png"], ["HTTP://a.com/p.png"], 0, id="letter case"),
        pytest.param(["blob:x", "data:text/html,x", "", None, 5, "p.png"], [], 6, id="no pictures"),
        pytest.param([token(8000)], [token(8000)], 0, id="a token of a picture"),
        pytest.param([token(MOST_BYTES)], [], 1, id="a token counts as what it stands for"),
        pytest.param([token(8, b"data:application/pdf,")], [], 1, id="a token of something else"),
    ],
)
def test_the_first_that_fit_may_go(
    urls: list[object] | None, kept: list[str], dropped: int
) -> None:
    assert admitted(urls) == (kept, dropped)


def test_limits_may_be_set() -> None:
    assert admitted([SMALL, SMALL], images=1) == ([SMALL], 1)
    assert admitted([SMALL], bytes=len(SMALL)) == ([SMALL], 0)
    assert admitted([SMALL], bytes=len(SMALL) - 1) == ([], 1)
    assert admitted([SMALL], images=0) == ([], 1)


@pytest.mark.parametrize(
    ("url", "count", "used", "why"),
    [
        (SMALL, 0, 0, None),
        ("ftp://a.com/p.png", 0, 0, "shape"),
        (SMALL, 8, 0, "count"),
        (LARGE, 0, 0, "size"),
        (SMALL, 1, MOST_BYTES, "budget"),
    ],
)
def test_a_refusal_says_why(url: str, count: int, used: int, why: str | None) -> None:
    assert refusal(url, count, used) == why


candidates = st.lists(
    st.one_of(
        st.integers(1, 40).map(lambda size: "data:image/png,".ljust(15 + size, "A")),
        st.sampled_from(["https://a.com/p", "nothing"]),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(candidates, st.integers(0, 5), st.integers(0, 120))
def test_one_by_one_gives_the_same_as_all_at_once(urls: list[str], images: int, most: int) -> None:
    kept: list[str] = []
    for url in urls:
        if refusal(url, len(kept), sum(map(len, kept)), images, most) is None:
            kept.append(url)
    assert admitted(urls, images, most) == (kept, len(urls) - len(kept))
