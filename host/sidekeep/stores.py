"""The stores of one connection: the local one, and the session area's, opened when it is needed.

Rule: the local store is opened by the hello; the file of the session area by the first call of that
area and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sidekeep.config import HostConfig
from sidekeep.errors import InvalidRequest, SidekeepError, UnavailableError
from sidekeep.places import store_folder

if TYPE_CHECKING:
    from sidekeep.handshake import Hello
    from sidekeep.store.environment import Store


class Stores:
    """Opens and holds the stores that a hello names.

    ``problem``: why the local store could not be opened. ``before_growth``: called before the map
    of a store moves.
    """

    def __init__(
        self, config: HostConfig, extension: str, before_growth: Callable[[], None]
    ) -> None:
        self._config = config
        self._extension = extension
        self._before_growth = before_growth
        self._open: dict[str, Store] = {}
        self._hello: Hello | None = None
        self.problem: SidekeepError | None = None

    @property
    def local(self) -> Store | None:
        """The local store, or ``None`` as long as it is not open."""
        return self._open.get("local")

    @property
    def opened(self) -> dict[str, Store]:
        """The stores that are open, by area."""
        return self._open

    def open_local(self, hello: Hello) -> Store:
        """Open the store of the hello's profile; the reason is kept if that fails."""
        self._hello = hello
        folder = store_folder(self._config.data_dir, self._extension, hello.profile)
        try:
            store = self._opened("local", folder, durable=True)
        except SidekeepError as error:
            self.problem = error
            raise
        self.problem = None
        return store

    def of(self, area: str) -> Store:
        """Return the store of an area, opening that of the session area if need be.

        Raises the reason why the local store could not be opened, or ``InvalidRequest`` for the
        session area of a caller whose hello named no run.
        """
        found = self._open.get(area)
        if found is not None:
            return found
        if self.problem is not None:
            raise self.problem
        assert area == "session"
        hello = self._hello
        if hello is None or hello.run is None:
            raise InvalidRequest(
                "The session area needs a hello with run.", next="send run in host.hello"
            )
        from sidekeep.runplace import prepare

        return self._opened(
            "session", prepare(self._extension, hello.profile, hello.run), durable=False
        )

    def _opened(self, area: str, folder: str, *, durable: bool) -> Store:
        try:
            from sidekeep.store.environment import Store
            from sidekeep.store.layout import FORMAT
        except ImportError as error:
            raise UnavailableError(
                f"storage unavailable: {error}.", next="run install.sh again"
            ) from error
        assert self._hello is not None
        store = Store(
            folder,
            extension=self._extension,
            profile=self._hello.profile,
            map_size=self._config.map_size if durable else None,
            max_size=self._config.max_size if durable else None,
            durable=durable,
        )
        store.before_growth.append(self._before_growth)
        if store.about.format < FORMAT:
            from sidekeep.model import upgrade

            try:
                upgrade.run(store)
            except BaseException:  # not to be used in the old format
                store.close()
                raise
        self._open[area] = store
        return store

    def close(self) -> None:
        """Close all stores."""
        for store in self._open.values():
            store.close()
        self._open.clear()
