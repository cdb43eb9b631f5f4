"""The methods ``attachments.*``: attached pages in, JSON text out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from sidekeep.errors import InvalidParams
from sidekeep.model import attachments, history
from sidekeep.model.edit import Edit
from sidekeep.model.frame import Mutation
from sidekeep.model.history import entry_word
from sidekeep.model.keys import HISTORY
from sidekeep.model.views import open_list
from sidekeep.requests.chunks import chunks
from sidekeep.requests.headers import header, split_header
from sidekeep.requests.limits import trimmed_picture
from sidekeep.service.method import Method, Request
from sidekeep.service.turns import settings_of
from sidekeep.store.journal import AnyChange
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Pieces

_encode = msgspec.json.encode


class Add(msgspec.Struct):
    """Parameters of ``attachments.add``."""

    url: str
    title: str
    mode: str
    text: str
    format: str | None = None
    block: str | None = None
    fallback: bool = False
    changedSince: float | str | None = None  # noqa: N815 - the protocol's name
    images: list[str] | None = None
    videoSrc: dict[str, Any] | None = None  # noqa: N815
    conversation: str | None = None


class Undo(msgspec.Struct):
    """Parameters of ``attachments.undo``: exactly one of the two."""

    attachId: str | None = None  # noqa: N815
    last: bool = False


class Named(msgspec.Struct):
    """Parameters of ``attachments.plan``."""

    attachId: str  # noqa: N815


class Condense(msgspec.Struct):
    """Parameters of ``attachments.condense``."""

    attachId: str  # noqa: N815
    summary: str


class Changed(msgspec.Struct):
    """Parameters of ``attachments.changed``."""

    url: str
    mode: str
    text: str


def _plan(text: str, from_length: int) -> dict[str, object] | None:
    length = len(text.encode("utf-16-le")) // 2
    return {"chunks": chunks(text), "chars": length} if length > from_length else None


def _picture(url: str, number: int) -> str:
    """Return the URL as it is stored. None is passed over: each has the number of its anchor."""
    trimmed = trimmed_picture(url)
    if trimmed is None:
        raise InvalidParams(
            f"Picture {number} of the attachment is none that could be sent.",
            next="give the URL of each picture: http(s), data:image/, or a token of a reply",
        )
    return trimmed


def _prepare_add(params: Add, request: Request) -> Mutation:
    settings = settings_of(request)
    images = [_picture(url, number) for number, url in enumerate(params.images or (), 1)]
    if not params.text.strip() and not images:
        raise InvalidParams("An attachment needs a text or a picture.")
    if params.mode == "screenshot" and not images:
        raise InvalidParams("A screenshot needs its picture.")
    text = header(
        settings,
        url=params.url,
        title=params.title,
        mode=params.mode,
        format=params.format,
        block=params.block,
        fallback=params.fallback,
        changed_since=_moment(params.changedSince),
        body=params.text,
    )
    identity, entry = attachments.make(text, images, params.videoSrc)
    plan = None
    if params.mode != "screenshot":  # of what is stored: without the passwords that were in it
        plan = _plan(split_header(text)[1], settings.condense_from)

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        target = open_list(transaction, HISTORY)
        history.check(transaction, target, conversation=params.conversation)
        edit = Edit(transaction, revision, "attachments.add")
        (added,), _ = history.append(edit, HISTORY, [entry])
        result = {"attachId": identity, "id": entry_word(added), "condense": plan}
        return edit.finish()[0], _encode(result)

    return mutate


def _moment(since: float | str | None) -> str | None:
    """Return the text of a date: as given, or of milliseconds since 1970 in local time."""
    if since is None or isinstance(since, str):
        return since
    try:
        return datetime.fromtimestamp(since / 1000).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError) as error:
        raise InvalidParams(
            "changedSince is no time that the calendar has.",
            next="give milliseconds since 1970, or the text that is to be shown",
        ) from error


def _prepare_undo(params: Undo, request: Request) -> Mutation:
    settings = settings_of(request)
    if (params.attachId is None) != params.last:
        raise InvalidParams("attachments.undo takes exactly one of attachId and last.")

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        if params.attachId is not None:
            entry = history.entry_attached(transaction, HISTORY, params.attachId)
        else:
            entry = attachments.last(transaction, settings.prefixes)
        if entry is None:
            return [], _encode({"removed": False, "index": -1, "undo": None})
        edit = Edit(transaction, revision, "attachments.undo")
        removed = history.remove(edit, entry)
        changes, undo = edit.finish()
        return changes, _encode({"removed": True, "index": removed.at, "undo": undo})

    return mutate


def _read_plan(transaction: Transaction, params: Named, _: Request) -> Pieces:
    entry = attachments.found(transaction, params.attachId)[1]
    text = attachments.text_in(transaction, entry)
    return [_encode({"condense": _plan(text, 0)})]


def _prepare_condense(params: Condense, request: Request) -> Mutation:
    settings = settings_of(request)
    if not params.summary.strip():
        raise InvalidParams("The summary is blank; the attachment stays as it is.")

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        edit = Edit(transaction, revision, "attachments.condense")
        count = attachments.condense(edit, params.attachId, params.summary, settings)
        return edit.finish()[0], _encode({"entries": count})

    return mutate


def _prepare_changed(params: Changed, _: Request) -> Mutation:
    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        edit = Edit(transaction, revision, "attachments.changed")
        before = attachments.changed(edit, params.url, params.mode, params.text)
        result: dict[str, object] = {"changed": before is not None}
        if before is not None:
            result["previousAttachedAt"] = int(before.attachedAt)
            result["previousLength"] = before.length
        return edit.finish()[0], _encode(result)

    return mutate


METHODS: dict[str, Method] = {
    "attachments.add": Method(Add, prepare=_prepare_add, area="local"),
    "attachments.undo": Method(Undo, prepare=_prepare_undo, area="local"),
    "attachments.plan": Method(Named, read=_read_plan, area="local"),
    "attachments.condense": Method(Condense, prepare=_prepare_condense, area="local"),
    "attachments.changed": Method(Changed, prepare=_prepare_changed, area="local"),
}
