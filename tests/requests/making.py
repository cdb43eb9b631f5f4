"""Conversations to make requests of: short words for messages, and strategies for any of them."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from sidekeep.jsontext import Path
from sidekeep.requests.form import Message, Part, Picture
from sidekeep.requests.plan import Plan, plan
from sidekeep.requests.settings import Limits, RequestSettings, Style, Target
from sidekeep.requests.shapes import build
from sidekeep.store.layout import KIND_BASE64
from sidekeep.store.rope import Blob
from sidekeep.wire.messages import Cut

PREFIX = "[Page context attached by browsa]"
DEFAULTS = RequestSettings()
NO_LIMITS = Limits()
STYLES: tuple[Style, ...] = ("chat", "responses", "anthropic", "runs", "agent")


def attached_text(url: str, title: str, body: str) -> str:
    """Return the text of an attachment; for ``https://a.com`` and ``A`` its header has 80 units."""
    return f"{PREFIX}\nURL: {url}\nTitle: {title}\nMode: reader\n---\n\n{body}"


def attached(identity: int, body: str = "page", *pictures: Picture, **fields: Any) -> Message:
    """Return an attachment of ``https://a.com``, titled ``A``."""
    text = attached_text("https://a.com", "A", body)
    parts: tuple[Part, ...] = (text, *pictures)
    return Message(identity, "user", parts, plain=not pictures, attachment=True, **fields)


def said(identity: int, *parts: Part, **fields: Any) -> Message:
    """Return a message of the user."""
    plain = len(parts) == 1 and isinstance(parts[0], str)
    return Message(identity, "user", parts, plain=plain, **fields)


def answered(identity: int, *parts: Part, **fields: Any) -> Message:
    """Return a message of the model."""
    plain = len(parts) == 1 and isinstance(parts[0], str)
    return Message(identity, "assistant", parts, plain=plain, **fields)


def stored(number: int = 0, prefix: str = "data:image/png;base64,", label: str = "") -> Picture:
    """Return a stored picture; ``written`` shows its content as ``<number>``."""
    return Picture(Blob(KIND_BASE64, bytes([number]) * 32, 8000, prefix.encode(), None), label)


class _Shown(Cut):
    """Shows what would be read, and where it is said to stand."""

    def __init__(self, path: Path, shown: str) -> None:
        super().__init__(path, len(shown))
        self.shown = shown


def _show(path: Path, blob: Blob, whole: bool) -> Cut:
    return _Shown(path, (blob.prefix.decode() if whole else "") + f"<{blob.hash[0]}>")


def written(
    messages: list[Message],
    style: Style,
    *,
    settings: RequestSettings = DEFAULTS,
    system: str | None = None,
    backfill: bool = False,
) -> Any:
    """Return the request of these messages as decoded JSON, checking where its cuts stand."""
    target = Target(style, system, backfill)
    text = b""
    cuts = []
    for piece in build(messages, target, settings, _show, ("result", "request")):
        if isinstance(piece, _Shown):
            cuts.append((piece.path, piece.shown))
            text += piece.shown.encode()
        else:
            text += piece if isinstance(piece, bytes) else b"".join(piece.read())
    request = msgspec.json.decode(text)
    for path, shown in cuts:
        assert path[:2] == ("result", "request")
        there = request
        for step in path[2:]:
            there = there[step]
        assert there == shown
    return request


def request_of(messages: list[Message], style: Style = "chat", **options: Any) -> Any:
    """Return the request that is planned for these messages, as decoded JSON."""
    backfill = options.pop("backfill", False)
    system = options.pop("system", None)
    made = planned(messages, style, backfill=backfill, system=system, **options)
    settings = options.get("settings", DEFAULTS)
    return written(made.messages, style, settings=settings, system=system, backfill=backfill)


def planned(
    messages: list[Message],
    style: Style = "chat",
    *,
    settings: RequestSettings = DEFAULTS,
    limits: Limits = NO_LIMITS,
    stub: bool = False,
    backfill: bool = False,
    system: str | None = None,
) -> Plan:
    """Return the plan of a request for these messages."""
    return plan(messages, Target(style, system, backfill), settings, limits, stub=stub)


def changed(**fields: Any) -> RequestSettings:
    """Return settings that differ from the defaults, named as in a hello."""
    return msgspec.convert(fields, RequestSettings)


texts = st.text(alphabet="ab 语\n😀", max_size=12)
pictures = st.one_of(
    st.builds(stored, st.integers(0, 9), label=st.sampled_from(["", "Figure 1: a"])),
    st.sampled_from([Picture("https://a.com/p.png", ""), Picture("data:image/svg+xml,x", "")]),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Any conversation that ends with a question: attachments, failures, answers cut off."""
    made: list[Message] = []
    for _ in range(draw(st.integers(0, 6))):
        for _ in range(draw(st.integers(0, 2))):
            body = draw(st.sampled_from(["short", "y" * 9000, "语" * 9000, "z" * 300]))
            extra = draw(st.lists(pictures, max_size=2))
            made.append(
                attached(
                    len(made) + 1,
                    body,
                    *extra,
                    seen=draw(st.booleans()),
                    stub=draw(st.sampled_from([False, False, True])),
                )
            )
        asked: list[Part] = [draw(texts), *draw(st.lists(pictures, max_size=2))]
        failed = draw(st.booleans())
        made.append(said(len(made) + 1, *asked, seen=draw(st.booleans()), failed=failed))
        if not failed or draw(st.booleans()):
            made.append(answered(len(made) + 1, draw(texts)))
    made.append(said(len(made) + 1, "question " + draw(texts)))
    return made
