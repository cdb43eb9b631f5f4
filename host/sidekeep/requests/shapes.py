"""The forms in which servers expect a request: what stands where in each of them.

Source of the rules: the reference's request builders (§14 and §20 of its description), as the table
in docs/protocol.md, "Requests", settles them. The last message is the question that is sent; what
stands before it is its history. A message with nothing in it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sidekeep.jsontext import Path
from sidekeep.requests import agent
from sidekeep.requests.form import Message, Part, Picture
from sidekeep.requests.grouping import newest
from sidekeep.requests.labels import labels
from sidekeep.requests.settings import RequestSettings, Style, Target, Texts
from sidekeep.requests.written import PictureCut, Pixels, pieces
from sidekeep.wire.messages import Pieces

Shape = dict[str, Any]

_DATA = re.compile(r"data:(image/[a-z+.\-]+)[^,]*;base64,", re.IGNORECASE)
_ANTHROPIC_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def build(
    messages: Sequence[Message],
    target: Target,
    settings: RequestSettings,
    picture: PictureCut,
    path: Path,
) -> Pieces:
    """Return the request as JSON text.

    ``picture``: gives the cut for a stored picture at a path. ``path``: where the request stands in
    the message that carries it.
    """
    return pieces(shape(messages, target, settings.texts), picture, path)


def shape(messages: Sequence[Message], target: Target, texts: Texts) -> Shape:
    """Return the request as a JSON value in which ``Pixels`` stand for stored pictures."""
    return _SHAPES[target.style](messages, target, texts)


def carried(messages: Sequence[Message], style: Style) -> list[int]:
    """Return the ids of the messages whose pixels are in a request of these messages."""
    if style == "runs":
        messages = messages[-1:]
    elif style == "agent":
        messages = [messages[at] for at in newest(messages)]
    elif style != "chat":
        messages = [one for one in messages if one.role == "user"]
    return [one.id for one in messages if any(_goes(one, style) for one in one.pictures)]


def _goes(picture: Picture, style: Style) -> bool:
    return style != "anthropic" or _anthropic_source(picture) is not None


def _chat(messages: Sequence[Message], target: Target, _: Texts) -> Shape:
    head = [{"role": "system", "content": target.system}] if target.system else []
    return {"messages": head + [_chat_message(one) for one in messages if one.parts]}


def _chat_message(one: Message) -> Shape:
    if one.plain:
        return {"role": one.role, "content": one.text}
    return {"role": one.role, "content": list(map(_chat_part, one.parts))}


def _chat_part(part: Part) -> Shape:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": url(part)}}


def url(picture: Picture) -> str | Pixels:
    """Return the picture's URL, as it stands or as what is to be read."""
    source = picture.source
    return source if isinstance(source, str) else Pixels(source)


def _responses(messages: Sequence[Message], target: Target, texts: Texts) -> Shape:
    items = []
    for one in messages:
        content: object = None
        if one.role == "assistant":
            content = "\n".join(_as_texts(one, texts))
        elif one.role == "user":
            content = [part for given in one.parts if (part := _responses_part(given)) is not None]
        if content and (not isinstance(content, str) or content.strip()):
            items.append({"role": one.role, "content": content})
    head = {"instructions": target.system} if target.system else {}
    return {**head, "input": items}


def _responses_part(part: Part) -> Shape | None:
    if isinstance(part, Picture):
        return {"type": "input_image", "image_url": url(part)}
    return {"type": "input_text", "text": part} if part.strip() else None


def _as_texts(one: Message, texts: Texts) -> list[str]:
    """Return the parts with each picture as its label, for where pictures may not stand."""
    names = iter(labels(one, texts))
    return [next(names) if isinstance(part, Picture) else part for part in one.parts]


def _anthropic(messages: Sequence[Message], target: Target, texts: Texts) -> Shape:
    made = []
    for one in messages:
        content = _anthropic_content(one, texts) if one.role != "system" else None
        if content:
            made.append({"role": one.role, "content": content})
    # The server wants a message of the user first.
    if all(one["role"] == "assistant" for one in made[:-1]) and len(made) > 1:
        made.insert(0, {"role": "user", "content": texts.placeholder})
    while made and made[0]["role"] == "assistant":
        del made[0]
    head = {"system": target.system} if target.system else {}
    return {**head, "messages": made}


def _anthropic_content(one: Message, texts: Texts) -> str | list[Shape]:
    if one.plain:
        return one.text if one.text.strip() else ""
    content: list[Shape] = []
    for part, text in zip(one.parts, _as_texts(one, texts), strict=True):
        source = None
        if isinstance(part, Picture) and one.role == "user":  # an answer may hold none there
            source = _anthropic_source(part)
        if source is not None:
            content.append({"type": "image", "source": source})
        elif text.strip():
            content.append({"type": "text", "text": text})
    return content


def _anthropic_source(picture: Picture) -> Shape | None:
    """Return what the server takes for this picture, ``None`` if it takes no such picture."""
    source = picture.source
    start = source[:256] if isinstance(source, str) else source.prefix.decode()
    if start.lower().startswith(("http://", "https://")):
        return {"type": "url", "url": source}
    found = _DATA.match(start)
    if found is None:
        return None
    kind = found[1].lower().replace("image/jpg", "image/jpeg")
    if kind not in _ANTHROPIC_TYPES:
        return None
    data = source[found.end() :] if isinstance(source, str) else Pixels(source, whole=False)
    return {"type": "base64", "media_type": kind, "data": data}


def _runs(messages: Sequence[Message], _: Target, __: Texts) -> Shape:
    history = [
        {"role": one.role, "content": text}
        for one in messages[:-1]
        if one.role != "system" and (text := agent.flat(one)).strip()
    ]
    last = messages[-1]
    question: object = last.text
    if last.pictures:
        question = [_chat_message(last)]
    return {"input": question, "conversation_history": history}


def _agent(messages: Sequence[Message], target: Target, texts: Texts) -> Shape:
    text, pictures = agent.told(messages, texts, backfill=target.backfill)
    return {"text": text, "images": list(map(url, pictures))}


_SHAPES: dict[str, Callable[[Sequence[Message], Target, Texts], Shape]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "runs": _runs,
    "agent": _agent,
}
