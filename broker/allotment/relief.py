"""Where memory stays short though no records are taken in and no rows leave it any more, the broker pauses
the heaviest query, one after another, until it is short no more; and at any time one that keeps more than a
query may (``state_bytes_max``).

Before that queries are given less that tolerate it (:mod:`broker.allotment.allocation`).

The heaviest is the one that pausing frees most of: what is kept of its answer, and its shares of the
combinations that are kept of its join and of the operators that its changes come from. Rows are held by
windows and retention, whoever is paused, so they leave first (:mod:`broker.memory.levels`); where they are
what is heavy and cannot leave, there is nobody to pause.

A pause goes the way that a user's goes: the registration is published again with ``paused``, and with
``paused_because``. So the state is PAUSED with the reason on the status topic and in lists, it outlasts
restarts, and the user resumes it.
"""

from __future__ import annotations

import asyncio
import math
import time

import orjson

from broker.allotment.allocation import MemoryAllocation
from broker.base import logs
from broker.base.options import PAUSED_BECAUSE, published
from broker.base.settings import Settings
from broker.memory.levels import Memory
from broker.node.node import Node
from broker.runtime.publisher import Publisher
from engine.engine import Engine
from engine.queries.footprint import Heavy
from tureen.errors import MIB, TureenError

LOOK_S = 1.0
STUCK_S = 5.0
"""Nobody is paused while rows left memory, or intake began to be held, so short ago."""
BETWEEN_S = 5.0
"""How long memory is given to come back after a pause, in seconds."""
STATE_SHARE = 0.5
"""Share of the budget that one query may keep, unless ``state_bytes_max`` says how much."""
LEAST_SHARE = 0.01
"""Share of the budget; a query that keeps less is left alone."""

log = logs.get()


class Relief:
    """Used on the event loop."""

    def __init__(self, settings: Settings, node: Node, memory: Memory, publisher: Publisher) -> None:
        self.pauses = 0
        self._allocation = MemoryAllocation(settings, node, memory)
        self._settings = settings
        self._node = node
        self._memory = memory
        self._publisher = publisher
        self._each_max = settings.state_bytes_max or int(STATE_SHARE * memory.budget.budget_bytes)
        self._looked_s = -math.inf

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            try:
                await self._allocation.look()
            except TureenError as away:
                log.warning("allocation_waits", code=away.code, reason=away.message)
            short = self._memory.stuck_s >= STUCK_S and not self._allocation.is_settling
            heavy = self._memory.accounts.kept_for_queries() > self._each_max
            if (short or heavy) and time.monotonic() - self._looked_s >= BETWEEN_S:
                self._looked_s = time.monotonic()
                try:
                    await self.relieve(short)
                except TureenError as away:
                    log.warning("relief_failed", code=away.code, reason=away.message)
            await asyncio.sleep(LOOK_S)

    async def relieve(self, short: bool) -> str | None:
        """Pause the heaviest query; its id, None where there is none to pause. short: memory is short, so
        that it goes though it keeps no more than it may. Raises BrokerUnavailable, KafkaUnavailable.
        """
        budget = self._memory.budget.budget_bytes
        heavy = await self._heaviest()
        if heavy is None or heavy.nbytes < (LEAST_SHARE * budget if short else self._each_max):
            return None
        entry = self._node.directory.queries.get(heavy.query_id)
        if entry is None or entry.shard is None or entry.state != "RUNNING" or entry.waits:
            return None
        because = f"it kept {heavy.nbytes / MIB:,.0f} MiB, " + (
            f"more than the {self._each_max / MIB:,.0f} MiB that one query may keep (state_bytes_max)"
            if heavy.nbytes > self._each_max
            else f"while {self._memory.used / MIB:,.0f} MiB of the memory budget of {budget / MIB:,.0f} MiB "
            "were in use"
        )
        log.warning("query_paused_for_memory", query=heavy.query_id, kept_bytes=heavy.nbytes, reason=because)
        record = entry.record({"paused": True, PAUSED_BECAUSE: because})
        topic = self._settings.names.queries
        with self._node.waiters.expecting():
            origin = await self._publisher.publish(topic, heavy.query_id, orjson.dumps(published(record)))
            await self._node.waiters.outcome(origin, self._settings.outcome_wait_ms / 1_000)
        self.pauses += 1
        return heavy.query_id

    async def _heaviest(self) -> Heavy | None:
        shards = self._node.shards
        found = [await shards.ask(one.number, Engine.heaviest) for one in shards if one.state == "live"]
        return max((one for one in found if one is not None), key=lambda one: one.nbytes, default=None)
