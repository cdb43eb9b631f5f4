"""A request that is too long is told from one that came too often."""

from __future__ import annotations

import pytest

from sidekeep.requests.overflow import is_overflow

TOO_LONG = [
    "maximum context length is 16385 tokens",
    "prompt is too long: 357005 tokens",
    "grown too long for m",
    "input length exceeds the model's context",
    "输入内容过长",
    "This endpoint's maximum context length is 16384 tokens. However, you requested about 94307",
    "Please reduce the length of the messages or completion.",
    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
    "Range of input length should be [1, 98304]",
    "Invalid request: Your request exceeded model token limit: 262144",
    "The input token count (1293741) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Input is too long for requested model.",
    "the request exceeds the available context size, try increasing it",
    "Prompt exceeds max length",
    "Input tokens exceed the configured limit of 272000 tokens.",
    "`inputs` tokens + `max_new_tokens` must be <= 8193",
    "Request too large",
    "too many input tokens",
    "Total message token length exceed model limit",
    "上下文长度超过模型限制",
    "超出最大上下文长度",
    "提示词太长",
    "输入token数量超过模型上限",
]
OTHERS = [
    "Rate limit reached: too many tokens per minute",
    "Request too large for gpt-4o: Limit 30000 tokens per min (TPM)",
    "Request too large for m on tokens per minute (TPM): Limit 6000, Requested 8000",
    "request reached organization TPD rate limit, current: 1506556, limit: 1500000",
    "You exceeded your current quota, please check your plan and billing details.",
    "Daily token limit exceeded",
    "Model context window too small (minimum is 128k tokens)",
    "请求过于频繁，token 数量超过每分钟限制",
    "今日token用量超出限制",
    "context deadline exceeded",
    "max_tokens is too large: 100000",
    "max_tokens参数超出范围",
    "Incorrect API key provided",
    "The model is overloaded",
    "fetch failed",
    "",
]


@pytest.mark.parametrize("message", TOO_LONG)
@pytest.mark.parametrize("status", [None, 400, 500])
def test_wording_tells_a_request_that_is_too_long(message: str, status: int | None) -> None:
    assert is_overflow(status, None, message)
    assert is_overflow(status, "invalid_request_error", message.upper())


@pytest.mark.parametrize("message", OTHERS)
def test_other_wording_is_none(message: str) -> None:
    assert not is_overflow(None, None, message)
    assert not is_overflow(400, None, message)


@pytest.mark.parametrize(
    ("status", "code", "message", "overflow"),
    [
        pytest.param(429, None, TOO_LONG[0], False, id="429, whatever it says"),
        pytest.param(429, "context_length_exceeded", "", False, id="429, whatever its code"),
        pytest.param(None, 429, TOO_LONG[0], False, id="429 as code"),
        pytest.param(None, "429", TOO_LONG[0], False, id="429 as text"),
        pytest.param(400, "rate_limit_exceeded", TOO_LONG[0], False, id="code of a rate limit"),
        pytest.param(413, "rate_limit_exceeded", TOO_LONG[0], False, id="413 of a rate limit"),
        pytest.param(400, "insufficient_quota", TOO_LONG[0], False, id="code of a quota"),
        pytest.param(401, None, TOO_LONG[0], False, id="not signed in"),
        pytest.param(402, None, TOO_LONG[0], False, id="not paid"),
        pytest.param(413, None, None, True, id="413 alone"),
        pytest.param(413, None, OTHERS[1], True, id="413 whatever it says"),
        pytest.param(None, 413, "", True, id="413 as code"),
        pytest.param(400, "context_length_exceeded", "x", True, id="OpenAI's code"),
        pytest.param(400, "context_length_exceeded", OTHERS[0], True, id="code before wording"),
        pytest.param(400, "string_above_max_length", "x", True, id="code of a string"),
        pytest.param(None, "request_too_large", None, True, id="Anthropic's code"),
        pytest.param(400, "exceed_context_size_error", "", True, id="llama.cpp's code"),
        pytest.param(400, "Context-Window-Exceeded", "", True, id="code in another spelling"),
        pytest.param(400, 1261, "Prompt exceeds max length", True, id="code as number"),
        pytest.param(400, "invalid_request_error", "x", False, id="a code that says nothing"),
        pytest.param(None, None, None, False, id="nothing known"),
    ],
)
def test_status_and_code_come_first(
    status: int | None, code: str | int | None, message: str | None, overflow: bool
) -> None:
    assert is_overflow(status, code, message) is overflow
