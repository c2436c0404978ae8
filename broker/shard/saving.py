"""When a shard's engine is saved to its store, and what happens when that has no room.

The store is a cache of the journal, so saving may wait: a busy shard saves after ``save_interval_ms`` or
``save_rows``, one that only hears the clock much more seldom. It does wait while changes of an earlier step
are still to be written (:mod:`broker.shard.pending`), and while queries are set apart: a replay has to make
them again. While the disk is full nothing is lost; it is tried again every ``retry_ms``.
"""

from __future__ import annotations

import time

from broker.base import logs
from broker.base.counts import SAVE_SECONDS
from broker.shard.context import ShardContext
from broker.shard.pending import Pending
from engine.engine import Engine
from engine.model.step import Position
from storage.store import Store
from tureen.errors import StoreFull

HEARTBEAT_SAVE_FACTOR = 20
"""Steps that only brought the clock are saved so much more seldom: replaying them costs nothing."""

log = logs.get()


class Saving:
    """Used by the shard's thread alone; ``position`` may be read by others."""

    def __init__(self, context: ShardContext) -> None:
        """Its stalls are told under the name ``store``."""
        self.position: Position | None = None
        self.full = False
        self._number = context.number
        self._settings = context.settings
        self._stalls = context.stalls
        self._store: Store | None = None
        self._rows = 0
        self._only_heartbeats = True
        self._saved_s = time.monotonic()
        self._again_s = 0.0

    def begin(self, store: Store, *, replayed: bool) -> None:
        """The engine is as stored, or ``replayed`` steps further."""
        self._store = store
        self.position = store.position()
        self._only_heartbeats = not replayed

    def changed(self, rows: int = 0) -> None:
        """There is more to save than the clock."""
        self._rows += rows
        self._only_heartbeats = False

    def save_if_due(self, engine: Engine, pending: Pending) -> None:
        if engine.position == self.position or pending or engine.apart():
            return
        now_s = time.monotonic()
        if self.full:
            if now_s >= self._again_s:
                self.save(engine)
            return
        interval_s = self._settings.save_interval_ms / 1_000
        if self._only_heartbeats:
            interval_s *= HEARTBEAT_SAVE_FACTOR
        if self._rows >= self._settings.save_rows or now_s - self._saved_s >= interval_s:
            self.save(engine)

    def save_last(self, engine: Engine, pending: Pending) -> None:
        """Save before the end, where that can be."""
        if not pending and not engine.apart():
            self.save(engine, final=True)

    def save(self, engine: Engine, final: bool = False) -> None:
        """Save now. final: nobody hears what is waited for any more."""
        assert self._store is not None
        if engine.position == self.position:
            return
        began_s = time.perf_counter()
        try:
            engine.save(self._store)
        except StoreFull as full:
            if not self.full:
                log.error("store_full", shard=self._number, reason=full.message)
            self.full = True
            if not final:
                self._stalls.tell("store", full.as_dict())
            self._again_s = time.monotonic() + self._settings.retry_ms / 1_000
            return
        if self.full:
            log.info("store_writes_again", shard=self._number)
        self.full = False
        self._stalls.tell("store", None)
        SAVE_SECONDS.labels(str(self._number)).observe(time.perf_counter() - began_s)
        self.position = engine.position
        self._rows = 0
        self._only_heartbeats = True
        self._saved_s = time.monotonic()
