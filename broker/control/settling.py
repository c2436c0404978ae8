"""How far the changelogs of the registry's tables are in their stores: noted now and then, so that a process
that follows need not read all of them again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from broker.base import logs
from broker.control.registry import Registry
from broker.control.writer import Writer
from topics.admin import Admin
from tureen.errors import TureenError

SETTLE_S = 5.0
"""Noted as often at most."""

log = logs.get()


class Settling:
    """Waits until what was told is written, and notes it in the stores."""

    def __init__(self, admin: Admin, writer: Writer, registries: Sequence[Registry]) -> None:
        """writer: writes the changelogs."""
        self._admin = admin
        self._writer = writer
        self._registries = registries
        self._unsettled = False
        self._settled_s = 0.0

    async def written(self) -> None:
        """Everything that was told so far is written."""
        await self._writer.written()
        self._unsettled = True

    async def settle(self) -> None:
        """Note how far the changelogs are in the stores, where it is time and something was written."""
        now_s = time.monotonic()
        if self._unsettled and now_s - self._settled_s > SETTLE_S:
            self._unsettled, self._settled_s = False, now_s
            for registry in self._registries:
                try:
                    ends = await asyncio.to_thread(self._admin.end_offsets, registry.changelog)
                except TureenError as away:
                    log.info("changelog_unknown", topic=registry.changelog, reason=away.message)
                    self._unsettled = True
                else:
                    registry.settle(ends)
