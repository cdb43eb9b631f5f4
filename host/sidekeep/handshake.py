"""The hello: what a caller says first, checked.

Apart from ``service``, since the first reply must not wait for the import of everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from sidekeep.errors import InvalidParams, UnavailableError
from sidekeep.places import checked_word
from sidekeep.wire.messages import Call, Hole

PROTOCOL = 1
FEATURES = ("batch", "parts", "operations")
MOST_WINDOW = 64

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Parts(msgspec.Struct):
    """The wish for parts in a hello: how many may be unacknowledged."""

    window: int


class Settings(msgspec.Struct):
    """What an extension says of its own data in a hello, where it differs from the defaults.

    ``attachmentPrefix``: how the text of an attached page begins. ``condenseFrom``: from how many
    characters on it should be condensed. ``aging`` and ``overflow``: numbers, ``texts``: wordings,
    see docs/protocol.md, "Requests".
    """

    attachmentPrefix: str | None = None  # noqa: N815 - the protocol's name
    condenseFrom: _Count | None = None  # noqa: N815
    aging: dict[str, _Count] | None = None
    overflow: dict[str, _Count] | None = None
    texts: dict[str, str] | None = None


class Hello(msgspec.Struct):
    """Parameters of ``host.hello``."""

    protocol: int
    profile: str
    run: str | None = None
    client: str | None = None
    parts: Parts | None = None
    settings: Settings | None = None


def read(call: Call) -> Hello:
    """Return the hello that the call carries.

    ``InvalidParams`` for wrong types and words, ``UnavailableError`` for another protocol.
    """
    hello: Hello = decode(call, Hello)
    if hello.protocol != PROTOCOL:
        raise UnavailableError(
            f"This host speaks protocol {PROTOCOL}, not {hello.protocol}.",
            next="update Sidekeep or the extension, whichever is older",
            protocol=PROTOCOL,
        )
    checked_word("profile", hello.profile)
    if hello.run is not None:
        checked_word("run", hello.run)
    if hello.client is not None:
        checked_word("client", hello.client)
    if hello.parts is not None and hello.parts.window < 1:
        raise InvalidParams("parts.window must be 1 or more.")
    if hello.settings is not None and "\n" in (hello.settings.attachmentPrefix or ""):
        # The header of an attachment is read line by line.
        raise InvalidParams("settings.attachmentPrefix must be one line.")
    return hello


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def decode(call: Call, params: type, *, holes: bool = False) -> Any:  # noqa: ANN401
    """Return the call's parameters as the struct ``params``; ``InvalidParams`` if they are not.

    ``holes``: leave the strings that arrived apart where they are.
    """
    decoder = _decoders.get(params)
    if decoder is None:
        decoder = _decoders[params] = msgspec.json.Decoder(params)
    text = call.params
    if call.holes and not holes:
        text = filled(text, call.holes)
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"The parameters of {call.method} do not fit: {error}.") from error


def filled(text: bytes, holes: Sequence[Hole]) -> bytes:
    """Return the text with the strings that arrived apart put back."""
    from sidekeep.jsontext import PathError, split_at

    try:
        pieces = split_at(text, [hole.path for hole in holes])
    except PathError as error:
        raise InvalidParams(f"The parts of a value do not fit it: {error}.") from error
    whole = [pieces[0]]
    for hole, piece in zip(holes, pieces[1:], strict=True):
        whole += (*hole.pieces, piece)
    return b"".join(whole)
