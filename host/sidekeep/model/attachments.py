"""Attached pages: stored, taken back, condensed, and noticed when they change.

Source of the rules: the seed storage model ("Redução de contexto no lado da requisição") and its
defect list, as docs/protocol.md, "Attachments", settles them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import msgspec

from sidekeep.errors import NotFoundError
from sidekeep.model import history, sessions
from sidekeep.model.conversation import blobs_by_token, decoded_entry
from sidekeep.model.edit import Edit
from sidekeep.model.entries import NewEntry, facts_of, prepare
from sidekeep.model.keys import BODY, HISTORY
from sidekeep.model.parts import content_of, parted
from sidekeep.model.updates import text_of
from sidekeep.model.views import open_list
from sidekeep.requests.form import length
from sidekeep.requests.headers import split_header
from sidekeep.requests.labels import figure_labels
from sidekeep.requests.settings import RequestSettings
from sidekeep.store import documents, records, rope
from sidekeep.store.layout import ENTRIES, ENTRY, ENTRY_KEY
from sidekeep.store.lists import Entry, StoredList
from sidekeep.store.transaction import Transaction

_encode = msgspec.json.encode
SNAPSHOTS = "browsaAttachSnapshots"
MOST_SNAPSHOTS = 50
SHORTEST_TRACKED = 50


def make(text: str, images: Sequence[str], video: object | None) -> tuple[str, NewEntry]:
    """Return the ``attachId`` and the entry of an attachment.

    ``text``: with its header. ``images``: URLs, in the order of the anchors. ``video``: what goes
    into ``videoSrc``.
    """
    identity = str(uuid.uuid4())
    labels = figure_labels(text)
    parts = [[_image(url, labels[at] if at < len(labels) else "")] for at, url in enumerate(images)]
    fields: dict[str, object] = {
        "attachId": identity,
        "content": content_of(text, parts, len(split_header(text)[0])),
        "role": "user",
    }
    if video is not None:
        fields["videoSrc"] = video
    return identity, prepare([msgspec.Raw(_encode(fields, order="sorted"))])[0]


def _image(url: str, label: str) -> dict[str, object]:
    part: dict[str, object] = {"image_url": {"url": url}, "type": "image_url"}
    return {**part, "label": label} if label else part


def last(transaction: Transaction, prefixes: Sequence[str]) -> Entry | None:
    """Return the newest attachment of the live history, ``None`` if there is none."""
    target = open_list(transaction, HISTORY)
    for entry in () if target is None else target.entries_back():
        facts = facts_of(transaction, records.read(transaction, entry.record))
        if facts.is_attachment(prefixes):
            return entry
    return None


def found(transaction: Transaction, attach_id: str) -> tuple[StoredList, Entry]:
    """Return the attachment and the conversation it is in: the live one, or a session."""
    entry = history.entry_attached(transaction, HISTORY, attach_id)
    target = open_list(transaction, HISTORY)
    if entry is not None and target is not None:
        return target, entry
    for document in documents.walk(transaction, BODY):
        if document.number:
            continue
        entry = history.entry_attached(transaction, document.key, attach_id)
        body = open_list(transaction, document.key)
        if entry is not None and body is not None:
            return body, entry
    raise NotFoundError(
        f"There is no attachment {attach_id[:64]!r}.", next="it may have been removed meanwhile"
    )


def text_in(transaction: Transaction, entry: Entry) -> str:
    """Return the text of an attachment, without its header."""
    record = records.read(transaction, entry.record)
    return split_header(parted(decoded_entry(transaction, record), blobs_by_token(record)).text)[1]


def condense(edit: Edit, attach_id: str, summary: str, settings: RequestSettings) -> int:
    """Put a summary in the place of an attachment's text; return in how many conversations.

    In the conversation where it is, and in all that have the same entry unchanged. Parts that are
    no text stay, and the text stays readable in ``originalText``.
    """
    transaction = edit.transaction
    target, entry = found(transaction, attach_id)
    record = records.read(transaction, entry.record)
    fields = decoded_entry(transaction, record)
    present = parted(fields, blobs_by_token(record))
    header, body = split_header(present.text)
    texts = settings.texts
    note = texts.condensed_note(length(body))
    original = fields.get("originalText")
    if not isinstance(original, str):
        original = body
    elif not body.startswith(texts.condensed_note(length(original))):  # it got another text since
        original = f"{original}\n\n{body}"
    # What was once too large for a request is that no longer.
    changed = {
        **{name: value for name, value in fields.items() if name != "sendAsStub"},
        "content": present.with_text(f"{header}{note}\n\n{summary}", len(header)),
        "originalText": original,
        "summarized": True,
    }
    made = prepare([msgspec.Raw(_encode(changed, order="sorted"))])[0]
    places = _with_entry(transaction, target, entry)
    number = 0
    for place, there in places:
        history.amend(edit, place, {there.id: number or made}, [])
        number = number or history.entry_of(transaction, place.key, there.id).record
        if place.key.startswith(BODY):
            sessions.refresh_digest(edit, place.key.removeprefix(BODY))
    return len(places)


def _with_entry(
    transaction: Transaction, target: StoredList, entry: Entry
) -> list[tuple[StoredList, Entry]]:
    """Return all conversations that have exactly this entry, with its place there."""
    numbers = {
        ENTRY_KEY.unpack(key)[0]
        for key, row in transaction.rows(ENTRIES)
        if ENTRY.unpack(row) == (entry.id, entry.record)
    }
    keys = [HISTORY, *(one.key for one in documents.walk(transaction, BODY) if not one.number)]
    places = []
    for key in keys:
        place = open_list(transaction, key) if key != target.key else target
        if place is not None and place.header.number in numbers:
            there = place.locate(entry.id)
            assert there is not None
            places.append((place, there))
    return places


class Snapshot(msgspec.Struct):
    """How a page was when it was last attached; ``attachedAt``: milliseconds since 1970."""

    attachedAt: float  # noqa: N815 - the field's name
    hash: str
    length: int


def changed(edit: Edit, url: str, mode: str, text: str) -> Snapshot | None:
    """Note how a page is now; return how it was, if it was attached before and differs."""
    size = length(text)
    if not url or size <= SHORTEST_TRACKED:
        return None
    known = _snapshots(edit.transaction)
    key = f"{mode}::{url}"
    before = known.pop(key, None)
    now = Snapshot(time.time() * 1000, _fnv(text), size)
    known[key] = now
    oldest = sorted(known, key=lambda one: known[one].attachedAt)
    for old in oldest[: max(len(known) - MOST_SNAPSHOTS, 0)]:
        del known[old]
    edit.put(SNAPSHOTS, rope.build(_encode(known, order="sorted")))
    return before if before is not None and before.hash != now.hash else None


def _snapshots(transaction: Transaction) -> dict[str, Snapshot]:
    record = documents.read(transaction, SNAPSHOTS)
    if record is None:
        return {}
    try:
        return msgspec.json.decode(text_of(transaction, record), type=dict[str, Snapshot])
    except msgspec.ValidationError:  # somebody else's value: begin anew
        return {}


def _fnv(text: str) -> str:
    """Return the 32-bit FNV-1a hash over the UTF-16 units, in hexadecimal, as the seed's does."""
    value = 0x811C9DC5
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    for unit in units:
        value = ((value ^ unit) * 0x01000193) & 0xFFFFFFFF
    return f"{value:08x}"
