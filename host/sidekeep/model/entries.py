"""Entries of conversations: what can be read from one without its pictures.

Source of the shapes: the seed storage model (``{role, content}``, content a string or parts, the
header of attachments) and the reference's fields (``attachId``). An entry may be any JSON value;
what does not have these shapes simply has no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from sidekeep.errors import InvalidParams
from sidekeep.jsontext import PathError
from sidekeep.store import blobs, rope, tokens
from sidekeep.store.layout import KIND_BASE64
from sidekeep.store.records import Record
from sidekeep.store.rope import Blob, LongString, Value
from sidekeep.store.transaction import Transaction

ATTACHMENT_PREFIX = "[Page context attached by browsa]"
USER = 1
ATTACHED = 2


class HasPrefix(Protocol):
    """Settings that may name how the text of an attached page begins."""

    attachmentPrefix: str | None  # noqa: N815 - the protocol's name


def prefixes_of(settings: HasPrefix) -> list[str]:
    """Return how the text of an attachment begins, for an extension with these settings."""
    own = settings.attachmentPrefix
    return [ATTACHMENT_PREFIX, own] if own else [ATTACHMENT_PREFIX]


class NewEntry:
    """An entry ready to be stored: its value, and the row by which a search finds it."""

    __slots__ = ("_facts", "searched", "value")

    def __init__(self, value: Value, *, searched: bool) -> None:
        self.value = value
        self._facts: Facts | None = None
        self.searched = self.facts.search_row() if searched else None

    @property
    def facts(self) -> Facts:
        """What the entry says. Read when it is asked for: most rows of sessions never are."""
        if self._facts is None:
            self._facts = Facts(_decoded(self.value.pieces, _own_content))
        return self._facts


class Facts:
    """What an entry says: ``role``, ``texts`` (of its parts, in order), ``attach_id``, ``content``.

    Pictures stand in ``content`` as tokens.
    """

    __slots__ = ("attach_id", "content", "fields", "role", "texts")

    def __init__(self, entry: Any) -> None:  # noqa: ANN401 - any JSON value
        self.fields: dict[str, Any] = entry if isinstance(entry, dict) else {}
        role = self.fields.get("role")
        self.role = role if isinstance(role, str) else ""
        found = self.fields.get("attachId")
        self.attach_id = found if isinstance(found, str) else ""
        self.content = self.fields.get("content")
        self.texts = _texts(self.content)

    def is_attachment(self, prefixes: Sequence[str] = (ATTACHMENT_PREFIX,)) -> bool:
        """Whether this is an attached page: a user entry with an id or the header of one."""
        if self.role != "user":
            return False
        return bool(self.attach_id) or any(text.startswith(tuple(prefixes)) for text in self.texts)

    def search_row(self) -> bytes | None:
        """Return the row of the search table, or ``None`` for an entry with nothing to find."""
        from sidekeep.text.fold import folded

        if not any(self.texts) and not self.attach_id:
            return None
        flags = (USER if self.role == "user" else 0) | (ATTACHED if self.attach_id else 0)
        return bytes((flags,)) + "\0".join(map(folded, self.texts)).encode()

    def continues(self, other: Facts) -> bool:
        """Whether this is the other entry after a change: stamped, longer, or the same attachment.

        So that an extension which writes the whole array keeps the ids of what it changed.
        """
        if self.role != other.role or not self.fields or not other.fields:
            return False
        if self.attach_id or other.attach_id:
            return self.attach_id == other.attach_id
        if self.content is None and other.content is None:  # of another shape: only stamped
            return bool(other.fields) and other.fields.items() <= self.fields.items()
        if self.content == other.content:
            return True
        return _begins_with(_parts(self.content), _parts(other.content))

    def signs(self) -> list[tuple[object, ...]]:
        """Return by what this entry can be told to be another one after a change.

        Of two entries that share one, either ``continues`` the other.
        """
        if not self.fields:
            return []
        if self.attach_id:
            return [("attachId", self.role, self.attach_id)]
        if self.content is None:
            return []
        text = msgspec.json.encode(self.content, order="deterministic")
        return [("content", self.role, text)]


def _parts(content: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(content, str):
        return [{"text": content, "type": "text"}]
    return content if isinstance(content, list) else []


def _begins_with(new: list[Any], old: list[Any]) -> bool:
    """Whether parts are those of before, of which texts may have grown, and maybe more."""
    if len(new) < len(old) or not any(part.get("text") != "" for part in old if _is_part(part)):
        return False
    return all(_has_grown(one, two) for one, two in zip(new, old, strict=False))


def _is_part(part: Any) -> bool:  # noqa: ANN401
    return isinstance(part, dict)


def _has_grown(new: Any, old: Any) -> bool:  # noqa: ANN401
    if not _is_part(new) or not _is_part(old):
        return bool(new == old)
    before, after = old.get("text"), new.get("text")
    if not isinstance(before, str) or not isinstance(after, str):
        return bool(new == old)
    return after.startswith(before) and {**new, "text": ""} == {**old, "text": ""}


def _texts(content: Any) -> list[str]:  # noqa: ANN401
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [
        part["text"]
        for part in content
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]


def prepare(
    raws: Sequence[msgspec.Raw],
    holes: Sequence[LongString] = (),
    *,
    searched: bool = True,
    inner: Sequence[str] = (),
) -> list[NewEntry]:
    """Make entries of JSON texts.

    ``holes``: the strings that arrived apart; their paths begin with the entry's index, followed by
    ``inner`` if the entry is a member of something. ``searched``: whether a search finds them.
    ``InvalidParams`` where the strings do not fit.
    """
    by_index: dict[int, list[LongString]] = {}
    start = 1 + len(inner)
    for hole in holes:
        index = hole.path[0] if hole.path else None
        if not isinstance(index, int) or index >= len(raws) or hole.path[1:start] != tuple(inner):
            raise InvalidParams("A part belongs to no entry.")
        by_index.setdefault(index, []).append(moved(hole, start))
    try:
        return [
            NewEntry(rope.build(bytes(raw), by_index.get(index, ())), searched=searched)
            for index, raw in enumerate(raws)
        ]
    except PathError as error:
        raise InvalidParams(f"The parts of a value do not fit it: {error}.") from error


def moved(hole: LongString, levels: int) -> LongString:
    """Return the string with a path from that many levels further down."""
    from sidekeep.wire.messages import Hole

    return Hole(hole.path[levels:], hole.pieces, hole.length)


def facts_of(transaction: Transaction, record: Record) -> Facts:
    """Return what a stored entry says; its pictures are not read."""
    return Facts(_decoded(record.pieces, lambda blob: blobs.chunks(transaction, blob.hash)))


def readable(
    pieces: Iterable[bytes | Blob], content: Callable[[Blob], Iterable[bytes | memoryview]]
) -> bytes:
    """Return JSON text in which pictures, and other data URLs, stand as tokens."""
    text = []
    for piece in pieces:
        if isinstance(piece, bytes):
            text.append(piece)
        elif piece.is_picture or (piece.kind == KIND_BASE64 and piece.prefix):
            text.append(tokens.write(piece))
        elif piece.kind == KIND_BASE64:  # a text that happens to be base64
            import binascii

            joined = b"".join(content(piece))
            text.append(binascii.b2a_base64(joined, newline=False))
        else:
            text.append(piece.prefix)
            text.extend(bytes(chunk) for chunk in content(piece))
    return b"".join(text)


def _own_content(blob: Blob) -> list[bytes]:
    return blob.chunks or []


def _decoded(
    pieces: Iterable[bytes | Blob], content: Callable[[Blob], Iterable[bytes | memoryview]]
) -> Any:  # noqa: ANN401
    return msgspec.json.decode(readable(pieces, content))
