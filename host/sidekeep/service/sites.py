"""The methods ``siteCache.*``: parameters in, one call of ``model.sites``, JSON text out."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from sidekeep.model import sites
from sidekeep.model.frame import Mutation
from sidekeep.model.sites import SiteRecord
from sidekeep.service.method import Method, Request
from sidekeep.store.journal import AnyChange
from sidekeep.store.transaction import Transaction

_encode = msgspec.json.encode


class SitePut(msgspec.Struct):
    """Parameters of ``siteCache.put``; ``data`` is any JSON value."""

    tabId: int  # noqa: N815 - the protocol's name
    source: str
    url: str
    data: msgspec.Raw


class SiteGet(msgspec.Struct):
    """Parameters of ``siteCache.get``."""

    tabId: int  # noqa: N815
    url: str | None = None
    live: list[int] | None = None


class SitePurge(msgspec.Struct):
    """Parameters of ``siteCache.purge``."""

    tabIds: list[int]  # noqa: N815


def _prepare_site_put(params: SitePut, request: Request) -> Mutation:
    record = SiteRecord(params.data, params.source, time.time() * 1000, params.url)

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        changes, gone = sites.put(transaction, params.tabId, record, revision)
        return changes, _encode({"evicted": gone} if gone else {})

    return mutate


def _prepare_site_get(params: SiteGet, request: Request) -> Mutation:
    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        found = sites.get(transaction, params.tabId, params.url, params.live, revision)
        if found.record is None:
            return found.changes, _encode({"record": None, "reason": found.reason})
        return found.changes, b'{"record":%b}' % found.record.text()

    return mutate


def _prepare_site_purge(params: SitePurge, request: Request) -> Mutation:
    return lambda transaction, _: (sites.purge(transaction, params.tabIds), b"{}")


METHODS: dict[str, Method] = {
    "siteCache.put": Method(SitePut, prepare=_prepare_site_put, area="session"),
    "siteCache.get": Method(SiteGet, prepare=_prepare_site_get, area="session"),
    "siteCache.purge": Method(SitePurge, prepare=_prepare_site_purge, area="session"),
}
