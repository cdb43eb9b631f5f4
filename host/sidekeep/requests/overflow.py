"""Whether a model's server refused a request because it was too long for the model.

Source of the rules: the reference's pattern (§16 of its description) and its defect D25, that the
wording of rate limits was taken for it: status and code decide first, then the wording.
"""

from __future__ import annotations

import re


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


_RATE_CODE = _any_of(
    r"rate_?limit",
    r"too_?many_?requests",
    r"(tokens?|requests?)_?per",
    r"quota|overloaded|throttl|insufficient|exhausted|billing",
)
_LENGTH_CODE = _any_of(
    r"context_?(length|window|size|limit)",
    r"(exceed|max)_?context",
    r"(prompt|input|request|message|content|string)\w*?_?(too_?(long|large)|above_?max)",
)
_OTHER_WORDING = _any_of(
    r"rate.?limit|throttl|overloaded|quota",
    r"too many requests|requests per",
    r"per (second|minute|min|hour|day)\b|/min\b|daily|hourly|monthly",
    r"\b[rt]p[mds]\b",  # requests or tokens per minute, day, second
    r"too small",  # a model that is refused for its small window
    r"速率|限流|限速|频率|频繁|并发",
    r"每分钟|每秒|每天|每日|今日|每月",
    r"用量|配额|额度|余额",
)
_LENGTH_WORDING = _any_of(
    r"context.?(length|window|size|limit|overflow)",
    r"max(imum|\.)? ?context|max_seq_len|maximum (prompt|input) length",
    r"(prompt|input|message|conversation|request)s? (is|are|was|were)?\s*too (long|large)",
    r"(request|payload) (entity )?too large|string too long|grown too long",
    r"too many (input |prompt )?tokens",
    r"length.{0,80}exceed|exceed.{0,80}length",
    r"token (count|limit).{0,80}exceed|exceed.{0,80}token (count|limit)",
    r"(input|prompt|total|requested)[ _]tokens? exceed",
    r"exceed.{0,40}max(imum)? number of (input )?tokens",
    r"inputs?`? tokens? \+|input length should be",
    r"reduce (the length of )?(your |the )?(prompt|messages|input)\b",
    r"上下文.{0,12}(过长|太长|超|限制|长度|窗口)|超.{0,12}上下文",
    r"(输入|内容|消息|提示词?|请求|文本|对话|prompt).{0,8}(过长|太长|过大|超长)",
    r"(长度|字数|(?<!max_)token ?数量?|(?<!max_)tokens?).{0,12}(超过|超出|超限)",
    r"(超过|超出).{0,24}(长度|token|字数)",
)
# Signed in wrongly, not paid, not allowed, not there, or too often: nothing shorter would help.
_OTHER_STATUS = frozenset({401, 402, 403, 404, 429})


def is_overflow(status: int | None, code: str | int | None, message: str | None) -> bool:
    """Return whether a shorter request may be accepted where this one was refused.

    ``status``: of HTTP. ``code``: as the server names the error, or a status once more.
    ``message``: its wording; the least that counts.
    """
    statuses = {status, _number(code)}
    if statuses & _OTHER_STATUS:
        return False
    name = re.sub(r"[\s.\-]+", "_", code) if isinstance(code, str) else ""
    if _RATE_CODE.search(name):
        return False
    if 413 in statuses or _LENGTH_CODE.search(name):
        return True
    said = message or ""
    return _LENGTH_WORDING.search(said) is not None and _OTHER_WORDING.search(said) is None


def _number(code: str | int | None) -> int | None:
    if isinstance(code, str):
        return int(code) if re.fullmatch(r"[0-9]{3}", code) else None
    return code
