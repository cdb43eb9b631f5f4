"""The methods ``turns.*``: parameters in, one step of a turn, the request as JSON text out."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, Literal

import msgspec

from sidekeep.errors import InvalidParams
from sidekeep.jsontext import Path
from sidekeep.model import answers
from sidekeep.model import turns as model
from sidekeep.model.edit import Edit
from sidekeep.model.entries import NewEntry, prepare
from sidekeep.model.frame import Mutation
from sidekeep.model.history import entry_number, entry_word
from sidekeep.model.parts import is_picture, listed, text_of_part
from sidekeep.model.turns import Question
from sidekeep.requests.limits import admitted
from sidekeep.requests.overflow import is_overflow
from sidekeep.requests.settings import Limits, RequestSettings, Target
from sidekeep.requests.shapes import build
from sidekeep.service.method import Method, Request
from sidekeep.service.replies import StoredText
from sidekeep.store import turns
from sidekeep.store.journal import AnyChange
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Pieces

_encode = msgspec.json.encode
_NONE = msgspec.Raw(b"{}")
_ABSENT = msgspec.Raw(b"")
_decode_target = msgspec.json.Decoder(Target).decode
_decode_limits = msgspec.json.Decoder(Limits).decode


class Begin(msgspec.Struct):
    """Parameters of ``turns.begin``."""

    text: str
    target: msgspec.Raw
    images: list[str] | None = None
    limits: msgspec.Raw = _NONE
    parallel: bool = False


class Progress(msgspec.Struct):
    """Parameters of ``turns.progress``."""

    turnId: str  # noqa: N815 - the protocol's name
    text: str


class Problem(msgspec.Struct):
    """What the model's server answered."""

    status: int | None = None
    code: str | int | None = None
    message: str | None = None


class Rescue(msgspec.Struct):
    """Parameters of ``turns.rescue``."""

    turnId: str  # noqa: N815
    error: Problem


class Complete(msgspec.Struct):
    """Parameters of ``turns.complete``."""

    turnId: str  # noqa: N815
    content: msgspec.Raw
    stamps: dict[str, Any] | None = None


class Fail(msgspec.Struct):
    """Parameters of ``turns.fail``."""

    turnId: str  # noqa: N815
    reason: Literal["error", "abort", "drop", "interrupted"]
    partial: str | None = None


class Edited(msgspec.Struct):
    """Parameters of ``turns.edit``; ``turns.regenerate`` has neither text nor images."""

    entryId: str  # noqa: N815
    target: msgspec.Raw
    text: str | None = None
    images: list[str] | None = None
    limits: msgspec.Raw = _NONE
    parallel: bool = False


class Regenerate(msgspec.Struct):
    """Parameters of ``turns.regenerate``."""

    entryId: str  # noqa: N815
    target: msgspec.Raw
    limits: msgspec.Raw = _NONE
    parallel: bool = False


def settings_of(request: Request) -> RequestSettings:
    """Return how requests of this caller are made."""
    return RequestSettings.of(request.settings)


def _checked(target: msgspec.Raw, limits: msgspec.Raw) -> Limits:
    try:
        _decode_target(target)
        return _decode_limits(limits)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"The target or the limits of the turn do not fit: {error}.") from error


def _user_entry(text: str, parts: Sequence[object], settings: RequestSettings) -> NewEntry:
    """Make the question's entry. ``parts``: what stands behind its text."""
    shown = text if text.strip() else settings.texts.no_instruction
    content: object = shown
    if parts:
        content = [{"text": shown, "type": "text"}, *parts]
    raw = msgspec.Raw(_encode({"content": content, "role": "user"}))
    return prepare([raw])[0]


def _part(url: str) -> object:
    return {"image_url": {"url": url}, "type": "image_url"}


def _prepare_begin(params: Begin, request: Request) -> Mutation:
    limits = _checked(params.target, params.limits)
    settings = settings_of(request)
    images, dropped = admitted(params.images or [], limits.images, limits.bytes)
    question = Question(
        _user_entry(params.text, list(map(_part, images)), settings),
        bytes(params.target),
        bytes(params.limits),
        dropped,
        params.parallel,
    )

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        edit = Edit(transaction, revision, "turns.begin")
        turn = model.begin(edit, request.caller, question, settings)
        return edit.finish()[0], _encode({"turnId": turn.id})

    return mutate


def _prepare_edit(params: Edited | Regenerate, request: Request) -> Mutation:
    limits = _checked(params.target, params.limits)
    settings = settings_of(request)
    text = params.text if isinstance(params, Edited) else None
    given = params.images if isinstance(params, Edited) else None
    images, dropped = admitted(given or [], limits.images, limits.bytes)

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        identity = entry_number(params.entryId)
        old, blobs = model.question_of(transaction, identity, settings.prefixes)
        entry = _again(old, blobs, text, None if given is None else images, settings)
        question = Question(
            entry, bytes(params.target), bytes(params.limits), dropped, params.parallel
        )
        edit = Edit(transaction, revision, "turns.edit")
        turn = model.edited(edit, request.caller, identity, question, settings)
        changes, undo = edit.finish()
        return changes, _encode({"turnId": turn.id, "undo": undo})

    return mutate


def _again(
    old: dict[str, Any],
    blobs: Container[str],
    text: str | None,
    images: Sequence[str] | None,
    settings: RequestSettings,
) -> NewEntry:
    """Make the question anew: with other text or pictures, or as it was; without its stamps.

    ``old``: decoded, with ``blobs`` for what is kept apart. Parts of other kinds stay.
    """
    if text is None and images is None:
        kept = {name: old[name] for name in ("content", "role") if name in old}
        return prepare([msgspec.Raw(_encode(kept))])[0]
    parts = listed(old.get("content"))
    texts = [text_of_part(part, blobs) for part in parts]
    if text is None:
        text = "\n".join(found for found in texts if found is not None)
    others = [part for part, found in zip(parts, texts, strict=True) if found is None]
    if images is not None:
        others = [part for part in others if not is_picture(part)]
    return _user_entry(text, [*others, *map(_part, images or ())], settings)


def _picture(transaction: Transaction) -> Any:  # noqa: ANN401 - a function for ``shapes.build``
    def cut(path: Path, blob: Blob, whole: bool) -> StoredText:
        if not whole:
            blob = Blob(blob.kind, blob.hash, blob.length, b"", blob.path)
        return StoredText(path, blob, transaction)

    return cut


def _request(transaction: Transaction, turn: turns.Turn, settings: RequestSettings) -> Pieces:
    """Return the members ``request`` and ``left`` of a result."""
    made = model.planned(transaction, turn, settings)
    left = {"images": turn.dropped, "entries": list(map(entry_word, made.left))}
    return [
        b'"request":',
        *build(
            made.messages,
            model.target_of(turn),
            settings,
            _picture(transaction),
            ("result", "request"),
        ),
        b',"left":%b' % _encode(left),
    ]


def _begun(transaction: Transaction, result: bytes, request: Request) -> Pieces:
    """Make the reply of a turn that began: its request is read now, and is not kept as a result."""
    kept = msgspec.json.decode(result)
    turn = turns.find(transaction, kept["turnId"])
    fields: dict[str, object] = {
        "turnId": turn.id,
        "entryId": entry_word(turn.entry),
        "conversation": turn.conversation,
    }
    if "undo" in kept:
        fields["undo"] = kept["undo"]
    return [
        _encode(fields)[:-1] + b",",
        *_request(transaction, turn, settings_of(request)),
        b"}",
    ]


def _prepare_progress(params: Progress, _: Request) -> Mutation:
    def mutate(transaction: Transaction, _: int) -> tuple[Sequence[AnyChange], bytes]:
        model.progress(transaction, params.turnId, params.text)
        return [], b"{}"

    return mutate


def _prepare_rescue(params: Rescue, request: Request) -> Mutation:
    error = params.error
    overflow = is_overflow(error.status, error.code, error.message)

    def mutate(transaction: Transaction, _: int) -> tuple[Sequence[AnyChange], bytes]:
        turn = turns.find(transaction, params.turnId)
        helps = overflow and model.rescue(transaction, turn, settings_of(request))
        return [], _encode({"turnId": turn.id, "overflow": overflow, "helps": helps})

    return mutate


def _rescued(transaction: Transaction, result: bytes, request: Request) -> Pieces:
    kept = msgspec.json.decode(result)
    if not kept["helps"]:
        answer = {"overflow": kept["overflow"], "request": None, "stubbed": []}
        return [_encode({**answer, "left": {"images": 0, "entries": []}})]
    turn = turns.find(transaction, kept["turnId"])
    fields = {"overflow": True, "stubbed": list(map(entry_word, turn.stubbed))}
    return [
        _encode(fields)[:-1] + b",",
        *_request(transaction, turn, settings_of(request)),
        b"}",
    ]


def _prepare_complete(params: Complete, request: Request) -> Mutation:
    prefixes = settings_of(request).prefixes
    own = sorted({"content", "role"} & set(params.stamps or {}))
    if own:
        raise InvalidParams(
            f"The stamps of an answer cannot hold its {own[0]}.",
            next="give the answer as content; stamps are its other fields",
        )

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        edit = Edit(transaction, revision, "turns.complete")
        turn = answers.complete(
            edit, params.turnId, bytes(params.content), params.stamps or {}, prefixes
        )
        return edit.finish()[0], _encode(
            {
                "id": entry_word(turn.answer),
                "seen": list(map(entry_word, turn.seen)),
                "conversation": turn.conversation,
                "session": turn.session,
            }
        )

    return mutate


def _prepare_fail(params: Fail, _: Request) -> Mutation:
    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        edit = Edit(transaction, revision, "turns.fail")
        turn = turns.find(transaction, params.turnId)
        turn = answers.fail(edit, turn, params.reason, params.partial)
        answer = entry_word(turn.answer) if turn.answer else None
        return edit.finish()[0], _encode({"id": answer})

    return mutate


METHODS: dict[str, Method] = {
    "turns.begin": Method(Begin, prepare=_prepare_begin, after=_begun, area="local"),
    "turns.progress": Method(Progress, prepare=_prepare_progress, area="local"),
    "turns.rescue": Method(Rescue, prepare=_prepare_rescue, after=_rescued, area="local"),
    "turns.complete": Method(Complete, prepare=_prepare_complete, area="local"),
    "turns.fail": Method(Fail, prepare=_prepare_fail, area="local"),
    "turns.edit": Method(Edited, prepare=_prepare_edit, after=_begun, area="local"),
    "turns.regenerate": Method(Regenerate, prepare=_prepare_edit, after=_begun, area="local"),
}
