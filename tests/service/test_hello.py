"""The first request: who calls is told by the browser, and nothing happens before hello."""

from __future__ import annotations

import json
import re

import pytest

from tests.harness import Call
from tests.harness.sidekeep_host import (
    EXTENSION_ID,
    ORIGIN,
    Sandbox,
    SidekeepHost,
    assert_kind,
    refused,
)

HELLO = {"protocol": 1, "profile": "p", "client": "c"}
ADDON_ID = "sidekeep@example.org"


async def test_hello_answers_what_the_page_lists(sandbox: Sandbox) -> None:
    async with sandbox.host() as host:
        greeting = await host.call("host.hello", HELLO)
        assert greeting["protocol"] == 1
        assert greeting["host"]["name"]
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", greeting["host"]["version"])
        assert greeting["host"]["pid"] == host.pid
        assert all(isinstance(feature, str) for feature in greeting["features"])
        assert isinstance(greeting["store"], str)
        assert isinstance(greeting["seq"]["local"], int)
        assert "conversation" in greeting
        assert greeting["notices"] == []
        assert "parts" not in greeting


@pytest.mark.parametrize(("asked", "granted"), [(1, 1), (4, 4), (64, 64), (1000, 64)])
async def test_parts_are_granted_as_asked_within_the_hosts_own_limit(
    sandbox: Sandbox, asked: int, granted: int
) -> None:
    async with sandbox.host() as host:
        greeting = await host.hello(parts=asked)
        assert 1 <= greeting["parts"]["window"] <= granted


@pytest.mark.parametrize("window", [0, -1, "4", 1.5, None, True])
async def test_window_that_is_no_positive_integer_is_refused(
    sandbox: Sandbox, window: object
) -> None:
    async with sandbox.host() as host:
        with refused("invalidParams"):
            await host.call("host.hello", HELLO | {"parts": {"window": window}})
        await host.hello()


async def test_calls_before_hello_are_refused_and_change_nothing(sandbox: Sandbox) -> None:
    async with sandbox.host() as host:
        for method in ("storage.set", "storage.get", "host.status", "host.ping", "no.such"):
            with refused("invalidRequest"):
                await host.call(method, {"area": "local", "items": {"a": 1}, "keys": None})
        await host.hello()
        assert await host.get() == {}


async def test_hello_may_share_a_batch_with_the_calls_after_it(sandbox: Sandbox) -> None:
    async with sandbox.host() as host:
        early, hello, done, found = await host.batch(
            [
                Call("host.ping", {}),
                Call("host.hello", HELLO),
                Call("storage.set", {"area": "local", "items": {"a": 1}}),
                Call("storage.get", {"area": "local", "keys": "a"}),
            ]
        )
        assert_kind(early, "invalidRequest")
        assert hello["protocol"] == 1
        assert done == {}
        assert found == {"items": {"a": 1}}


async def test_second_hello_is_a_conflict_and_changes_nothing(host: SidekeepHost) -> None:
    await host.set({"a": 1})
    with refused("conflict"):
        await host.call("host.hello", HELLO | {"profile": "other"})
    assert await host.get() == {"a": 1}


async def test_failed_hello_may_be_repeated(sandbox: Sandbox) -> None:
    async with sandbox.host() as host:
        with refused("invalidParams"):
            await host.call("host.hello", {"protocol": 1})
        await host.hello()
        await host.ping()


@pytest.mark.parametrize(
    "word", ["", "a b", "../up", "a/b", "é", "x" * 65, ".", 7, None, ["p"], "a\n"]
)
async def test_profile_and_client_are_checked_words(sandbox: Sandbox, word: object) -> None:
    async with sandbox.host() as host:
        for field in ("profile", "client", "run"):
            if word is None and field != "profile":
                continue
            with refused("invalidParams"):
                await host.call("host.hello", HELLO | {field: word})
    assert not list(sandbox.folder.rglob("store.mdb"))
    assert not (sandbox.folder.parent / "up").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"condenseFrom": -1},
        {"condenseFrom": 1.5},
        {"aging": {"turns": -1}},
        {"overflow": {"chars": -1}},
        {"attachmentPrefix": "[Two\nlines]"},
    ],
)
async def test_settings_that_no_call_could_use_are_refused_at_once(
    sandbox: Sandbox, settings: dict[str, object]
) -> None:
    async with sandbox.host() as host:
        with refused("invalidParams"):
            await host.call("host.hello", HELLO | {"settings": settings})
        await host.hello()
        assert await host.call("attachments.undo", {"last": True})


async def test_unknown_protocol_version_is_refused_with_a_code_and_the_host_lives_on(
    sandbox: Sandbox,
) -> None:
    async with sandbox.host() as host:
        for version in (0, 2, "1", None):
            refusal = await host.exchange(
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": "v",
                        "method": "host.hello",
                        "params": HELLO | {"protocol": version},
                    }
                ).encode()
            )
            assert refusal["id"] == "v"
            assert refusal["error"]["code"] in range(-32999, -31999)
        await host.hello()


@pytest.mark.parametrize(
    "arguments",
    [
        ["chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"],
        [f"https://{EXTENSION_ID}/"],
        [f"{ORIGIN}more"],
        ["/manifest.json", "stranger@example.org"],
        [],
        [""],
    ],
    ids=["other-extension", "web-page", "longer", "other-add-on", "nobody", "empty"],
)
async def test_foreign_caller_is_forbidden_every_request_and_opens_nothing(
    sandbox: Sandbox, arguments: list[str]
) -> None:
    host = await sandbox.host(arguments=arguments).__aenter__()
    for method in ("host.hello", "host.ping", "storage.get", "host.status"):
        with refused("forbidden"):
            await host.call(method, HELLO)
    first, second = await host.batch([Call("host.hello", HELLO), Call("host.ping", {})])
    assert_kind(first, "forbidden")
    assert_kind(second, "forbidden")
    exit = await host.close()
    assert exit.code == 3
    assert not list(sandbox.folder.rglob("*.mdb*"))


async def test_firefox_form_of_the_arguments_is_understood(sandbox: Sandbox) -> None:
    sandbox.extensions.append(ADDON_ID)
    sandbox.write()
    manifest = str(sandbox.folder / "org.sidekeep.host.json")
    async with sandbox.host(arguments=[manifest, ADDON_ID]) as host:
        await host.hello()
        await host.set({"a": "firefox"})
    async with sandbox.open() as host:
        assert await host.get() == {}  # another extension id, another store
        assert (await host.status())["extension"] == EXTENSION_ID


async def test_windows_form_of_the_arguments_is_understood(sandbox: Sandbox) -> None:
    # Chromium on Windows passes the parent window's handle after the origin.
    async with sandbox.host(arguments=[ORIGIN, "--parent-window=0"]) as host:
        await host.hello()
        await host.ping()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 9, "data_dir": "/x", "extensions": []}', '{"version": 1}'],
    ids=["empty", "broken", "list", "future", "incomplete"],
)
async def test_unreadable_configuration_is_answered_and_ends_with_exit_code_4(
    sandbox: Sandbox, text: str
) -> None:
    sandbox.config.write_text(text, encoding="utf-8")
    host = await sandbox.host().__aenter__()
    with refused("unavailable") as caught:
        await host.call("host.hello", HELLO)
    assert str(sandbox.config) in caught.value.message
    assert (await host.close()).code == 4


async def test_missing_configuration_is_answered_and_ends_with_exit_code_4(
    sandbox: Sandbox,
) -> None:
    sandbox.config.unlink()
    host = await sandbox.host().__aenter__()
    with refused("unavailable"):
        await host.call("host.hello", HELLO)
    assert (await host.close()).code == 4
