"""Change events of one connection: who listens to what, and what it has heard.

Rules (docs/protocol.md, "Events"):

* Events come from the journal, in its order, whichever process made the change.
* Events that a call caused leave before the reply to that call.
* What a listener missed is replayed from the place it remembers; if that is no longer possible,
  ``storage.gap`` comes first.
* Nothing here is imported before the first watch.
"""

from __future__ import annotations

import msgspec

from sidekeep.errors import DamagedError, TooLargeError
from sidekeep.model import events, told
from sidekeep.model.events import ChangedItem, Event
from sidekeep.service.replies import array_pieces, value_pieces
from sidekeep.store.bell import LOOK_SECONDS, Listener
from sidekeep.store.environment import Store
from sidekeep.store.founding import live_word
from sidekeep.store.snapshot import SharedSnapshot
from sidekeep.store.transaction import Transaction
from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Pieces

_encode = msgspec.json.encode


class _Watch:
    """What one area's listener wants and has heard."""

    __slots__ = ("heard", "keys", "listener", "store", "values")

    def __init__(self, store: Store) -> None:
        self.store = store
        self.listener = Listener(store.folder)
        self.heard = 0
        self.keys: frozenset[str] | None = None
        self.values = True


class Watching:
    """The watched areas of one connection."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._watches: dict[str, _Watch] = {}
        self._conversations: _Watch | None = None

    def watch(
        self,
        area: str,
        store: Store,
        *,
        keys: frozenset[str] | None,
        values: bool,
        since: int | None,
        same_file: bool,
    ) -> int:
        """Begin (or change) the watch of an area; return the area's sequence number.

        ``since``: the place the caller remembers, in a file that is the same as now or not. Missed
        events (or a gap) are queued; they leave after the reply to the watch.
        """
        watch = self._watches.get(area)
        if watch is None:
            watch = self._watches[area] = self._begin(store)
        watch.keys = keys
        watch.values = values
        return _start(watch, since, same_file=same_file)

    def watch_conversations(self, store: Store, since: int | None, *, same_file: bool) -> int:
        """Begin (or change) the watch of conversations; return the local area's number."""
        if self._conversations is None:
            self._conversations = self._begin(store)
        return _start(self._conversations, since, same_file=same_file)

    def _begin(self, store: Store) -> _Watch:
        watch = _Watch(store)
        if watch.listener.descriptor >= 0:
            self._channel.wake_on(watch.listener.descriptor)
        return watch

    def keep_only(self, areas: list[str]) -> None:
        """End the watch of all other areas."""
        for area in [area for area in self._watches if area not in areas]:
            watch = self._watches.pop(area)
            if watch.listener.descriptor >= 0:
                self._channel.wake_off(watch.listener.descriptor)
            watch.listener.close()

    @property
    def look_seconds(self) -> float | None:
        """How often the journal must be looked at; ``None`` if the bell wakes the connection."""
        if any(watch.listener.descriptor < 0 for watch in self._all()):
            return LOOK_SECONDS
        return None

    def _all(self) -> list[_Watch]:
        found = list(self._watches.values())
        return found if self._conversations is None else [*found, self._conversations]

    def tell(self) -> None:
        """Queue all events that the listeners have not heard yet."""
        for area, watch in self._watches.items():
            watch.listener.drain()
            self._tell(area, watch)
        if self._conversations is not None:
            self._conversations.listener.drain()
            self._tell_conversations(self._conversations)

    def _tell(self, area: str, watch: _Watch) -> None:
        snapshot = SharedSnapshot(watch.store)
        transaction = snapshot.transaction
        try:
            newest = transaction.head.seq
            if newest == watch.heard:
                return
            if events.has_gap(transaction, watch.heard):
                self._gap(area, watch, newest)
                return
            try:
                for event in events.since(
                    transaction, watch.heard, watch.keys, values=watch.values
                ):
                    self._event(area, watch, event, snapshot)
                    watch.heard = event.seq
            except DamagedError:  # an old value cannot be told any more
                self._gap(area, watch, newest)
        finally:
            snapshot.release()

    def _gap(self, area: str, watch: _Watch, newest: int) -> None:
        watch.heard = newest
        self._channel.notify("storage.gap", _encode({"area": area, "seq": newest}))

    def _event(self, area: str, watch: _Watch, event: Event, snapshot: SharedSnapshot) -> None:
        if not event.items:
            return
        pieces: Pieces = [b'{"area":%b,"seq":%d,"changes":{' % (_encode(area), event.seq)]
        comma = b""
        for item in event.items:
            pieces.append(comma + _encode(item.key) + b":{")
            pieces += _item(snapshot.transaction, item)
            pieces.append(b"}")
            comma = b","
        pieces.append(b"}}")
        release = snapshot.use()
        try:
            self._channel.notify("storage.changed", pieces, release)
        except TooLargeError:  # without parts it cannot be carried: the listener must read
            self._channel.notify("storage.gap", _encode({"area": area, "seq": event.seq}))

    def _tell_conversations(self, watch: _Watch) -> None:
        with watch.store.read() as transaction:
            newest = transaction.head.seq
            if newest == watch.heard:
                return
            word = live_word(transaction)
            gap = events.has_gap(transaction, watch.heard)
            found: list[told.Told] = []
            if not gap:
                try:
                    found = list(told.since(transaction, watch.heard))
                except DamagedError:  # an old row cannot be read any more
                    gap = True
        watch.heard = newest
        if gap:
            found = [
                told.Told(f"{about}.changed", "gap", [], newest)
                for about in ("history", "sessions")
            ]
        for one in found:
            params: dict[str, object] = {"what": one.what, "ids": one.ids, "revision": one.revision}
            if one.method == "history.changed":
                params["conversation"] = word
            self._channel.notify(one.method, _encode(params))

    def close(self) -> None:
        """Stop listening."""
        for watch in self._all():
            watch.listener.close()
        self._watches.clear()
        self._conversations = None


def _start(watch: _Watch, since: int | None, *, same_file: bool) -> int:
    """Set what a watch has heard; return the newest sequence number."""
    with watch.store.read() as transaction:
        newest = transaction.head.seq
    watch.heard = newest if since is None else since
    if since is not None and not same_file:
        watch.heard = -1  # nothing of that file is known: a gap
    return newest


def _item(transaction: Transaction, item: ChangedItem) -> Pieces:
    """Return the members of one changed item; the new value stands first, as in Chromium."""
    pieces: Pieces = []
    for name, side in (("newValue", item.after), ("oldValue", item.before)):
        if side is None:
            continue
        pieces.append((b"," if pieces else b"") + _encode(name) + b":")
        path = ("params", "changes", item.key, name)
        if isinstance(side, list):
            pieces += array_pieces(transaction, side, path)
        else:
            pieces += value_pieces(transaction, side, path)
    return pieces
