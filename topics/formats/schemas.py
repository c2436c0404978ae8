"""The schemas that records name by id, of this process: asked for once, and kept.

A schema never changes. An id that the registry does not know is asked for again after some time; what was
decoded meanwhile is told apart by the steps that had such records (:class:`engine.model.step.Records`).

One thread asks; whoever reads a stream does not wait for it, but for the call that follows. Where the
registry does not answer it is asked again and again, and :attr:`Schemas.away` says why.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable

from topics.registry import Registered, RegistrySettings
from tureen.errors import RegistryUnavailable

UNKNOWN_S = 30.0
"""After so long an id that was not known is asked for again."""
RETRY_S = 0.5
KEPT_MAX = 10_000
"""Schemas that are kept, and ids that are known to be none; the oldest go first."""

_NONE = RegistryUnavailable(
    "records name schemas of a registry, and none is set", hint="set schema_registry_url"
)


class Schemas:
    """Used from any thread."""

    def __init__(self, settings: RegistrySettings | None = None, retry_s: float = RETRY_S) -> None:
        """settings: None: there is no registry, and every schema is waited for."""
        self._settings = settings
        self._retry_s = retry_s
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._known: dict[int, tuple[Registered | None, float]] = {}
        self._wanted: dict[Callable[[], None], set[int]] = {}
        self._is_running = False
        self.away: RegistryUnavailable | None = None
        """Why schemas that are wanted do not come."""

    @property
    def has_registry(self) -> bool:
        """Whether there is one to ask."""
        return self._settings is not None

    def get(self, schema_id: int) -> Registered | None:
        """The schema of an id, None where there is none. Asks for it where it is not known. Raises
        RegistryUnavailable; not for an id that was no schema's when it was asked for.
        """
        found = self._held(schema_id)
        if found is None:
            with self._asking:
                try:
                    found = self._held(schema_id) or self._ask(schema_id)
                except RegistryUnavailable:
                    if schema_id not in self._known:
                        raise
                    found = self._known[schema_id]
        return found[0]

    def missing(self, ids: Iterable[int]) -> set[int]:
        """Those that have to be asked for."""
        return {one for one in ids if self._held(one) is None}

    def want(self, ids: Collection[int], wake: Callable[[], None]) -> None:
        """Ask for these; ``wake`` is called, from another thread, when all are known."""
        with self._lock:
            self._wanted[wake] = set(ids)
            if self._is_running:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="schemas", daemon=True).start()

    def forget(self, wake: Callable[[], None]) -> None:
        """Whoever would be woken waits no more."""
        with self._lock:
            self._wanted.pop(wake, None)

    def _held(self, schema_id: int) -> tuple[Registered | None, float] | None:
        found = self._known.get(schema_id)
        return None if found is None or time.monotonic() > found[1] else found

    def _ask(self, schema_id: int) -> tuple[Registered | None, float]:
        if self._settings is None:
            raise _NONE
        from topics.registry_client import Registry  # its libraries take a quarter of a second to load

        found = Registry.of(self._settings).registered(schema_id)
        told = (found, float("inf") if found is not None else time.monotonic() + UNKNOWN_S)
        with self._lock:
            if len(self._known) >= KEPT_MAX:
                del self._known[next(iter(self._known))]
            self._known[schema_id] = told
        return told

    def _run(self) -> None:
        while True:
            with self._lock:
                wanted = {one for ids in self._wanted.values() for one in ids}
                if not wanted:
                    self._is_running = False
                    self.away = None
                    return
            try:
                for one in self.missing(wanted):
                    with self._asking:
                        self._ask(one)
                self.away = None
            except RegistryUnavailable as away:
                self.away = away
                time.sleep(self._retry_s)
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            ready = [wake for wake, ids in self._wanted.items() if not self.missing(ids)]
            for wake in ready:
                del self._wanted[wake]
        for wake in ready:
            wake()


_OF_PROCESS = Schemas()


def schemas() -> Schemas:
    """Those of this process."""
    return _OF_PROCESS


def use_registry(settings: RegistrySettings | None) -> None:
    """Say which registry the records of this process name schemas of. Once, before any is read."""
    global _OF_PROCESS
    _OF_PROCESS = Schemas(settings)
