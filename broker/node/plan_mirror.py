"""The topic ``.plans``: the plans of the queries that are registered, for whoever reads them.

    query id -> {"plan": {...}, "state": "RUNNING", "running": {"maintenance": "lazy", "strategy": "upa"}}

The registration is the truth, this topic its mirror: written a little later, compacted, null when a query is
gone. What it has is read at the start, so that only what differs is written. ``running`` is what the broker
chose where the options leave it open; it is looked at in turn, so that a change may take a while to be seen.

It is made beside everything else and takes a twentieth of a core at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from typing import Any

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from broker.base import logs
from broker.base.entries import QueryEntry
from broker.base.settings import Settings
from broker.node.node import Node
from broker.node.plan_files import exported
from broker.runtime.publisher import Publisher
from tureen.errors import KafkaUnavailable, TureenError, UnknownQuery
from tureen.plan_files.schema import VERSION

LOOK_S = 2.0
SHARE = 20
"""One second in so many is worked."""
AT_ONCE = 50
"""Plans that are made together."""
REVISITED = 2_000
"""Queries whose choices are looked at again each time."""
READ_S = 30.0

log = logs.get()

Known = tuple[QueryEntry, Any, str, dict[str, Any] | None]
"""An entry, and its options, its state and what was chosen for it when its plan was made."""


class PlanMirror:
    """Used on the event loop."""

    def __init__(self, settings: Settings, node: Node, publisher: Publisher) -> None:
        self._settings = settings
        self._topic = settings.names.plans
        self._node = node
        self._publisher = publisher
        self._there: dict[str, int] = {}
        """By query id, a fingerprint of what the topic has."""
        self._known: dict[str, Known] = {}
        self._revisit: list[str] = []
        self._stopped = threading.Event()

    async def run(self) -> None:
        """Keep the topic like the registry, for ever."""
        if not self._settings.plans_mirror:
            return
        try:
            await self._mirror()
        finally:
            self._stopped.set()  # a thread that waits for Kafka would hold up the end of the process

    async def _mirror(self) -> None:
        while not self._node.life.reconciled:
            await asyncio.sleep(LOOK_S)
        loaded = False
        while True:
            worked_s = 0.0
            try:
                if not loaded:
                    self._there = await asyncio.to_thread(self._read)
                    loaded = True
                worked_s = await self._look()
            except TureenError as away:
                log.warning("plans_not_mirrored", code=away.code, reason=away.message)
            await asyncio.sleep(max(LOOK_S, (SHARE - 1) * worked_s))

    async def _look(self) -> float:
        """Write some of what differs: O(queries), at most AT_ONCE plans. Gives its processor time, s."""
        began_s = time.thread_time()
        queries = self._node.directory.queries
        changed = [name for name, entry in queries.items() if not self._is_known(name, entry)][:AT_ONCE]
        if not changed:
            changed = self._in_turn()
        entries = {name: queries[name] for name in changed}
        seen = {
            name: (entry, entry.options, entry.state, self._running(name, entry))
            for name, entry in entries.items()
        }
        looked_s = time.thread_time() - began_s
        values, made_s = await asyncio.to_thread(self._values, entries)
        records: list[tuple[str, bytes | None]] = [
            (name, value) for name, value in values.items() if self._there.get(name) != hash(value)
        ]
        gone = [name for name in self._there if name not in queries]
        records += [(name, None) for name in gone]
        for (name, value), place in zip(
            records, await self._publisher.publish_many(self._topic, records), strict=True
        ):
            if isinstance(place, KafkaUnavailable):
                raise place
            if value is None:
                del self._there[name]
                self._known.pop(name, None)
            else:
                self._there[name] = hash(value)
        self._known |= seen
        return looked_s + made_s

    def _is_known(self, name: str, entry: QueryEntry) -> bool:
        known = self._known.get(name)
        return (
            known is not None and known[0] is entry and known[1] is entry.options and known[2] == entry.state
        )

    def _in_turn(self) -> list[str]:
        """Some queries for which the broker has chosen something else since. O(REVISITED)."""
        queries = self._node.directory.queries
        if not self._revisit:
            self._revisit = list(queries)
        some, self._revisit = self._revisit[:REVISITED], self._revisit[REVISITED:]
        there = [(name, entry) for name in some if (entry := queries.get(name)) is not None]
        return [name for name, entry in there if self._running(name, entry) != self._known[name][3]][:AT_ONCE]

    def _values(self, entries: dict[str, QueryEntry]) -> tuple[dict[str, bytes], float]:
        """As the topic has them, and the seconds of processor time it took."""
        began_s = time.thread_time()
        values = {name: self._value(name, entry) for name, entry in entries.items()}
        return values, time.thread_time() - began_s

    def _value(self, name: str, entry: QueryEntry) -> bytes:
        """As the topic has it. Any thread."""
        plan: dict[str, Any] | None = None
        try:
            plan = exported(self._node.directory, entry)
        except TureenError:  # its source is missing, or its text is refused by now
            if entry.sql is not None and entry.parameters is None:
                plan = {"version": VERSION, "sql": entry.sql}
        value = orjson.dumps({"plan": plan, "state": entry.state, "running": self._running(name, entry)})
        if len(value) > self._settings.record_bytes_max // 2:
            value = orjson.dumps({"plan": None, "state": entry.state, "running": None})
        return value

    def _running(self, name: str, entry: QueryEntry) -> dict[str, Any] | None:
        if entry.shard is None:
            return None
        with contextlib.suppress(UnknownQuery, KeyError):
            info = self._node.shards[entry.shard].view().query(name)
            return {"maintenance": info.maintenance, "strategy": info.strategy}
        known = self._known.get(name)  # it is swapped out, or just being replaced: as it was
        return None if known is None else known[3]

    def _read(self) -> dict[str, int]:
        """What the topic has. Raises KafkaUnavailable."""
        consumer = Consumer(
            {
                **self._node.setup.kafka,
                "group.id": f"{self._settings.service_id}-plans-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "error_cb": lambda _: None,
                "log_level": 0,
            }
        )
        found: dict[str, int] = {}
        try:
            consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
            deadline_s = time.monotonic() + READ_S
            while time.monotonic() < deadline_s and not self._stopped.is_set():
                for message in consumer.consume(1_000, 0.5):
                    error = message.error()
                    if error is not None:
                        if error.code() == KafkaError._PARTITION_EOF:
                            return found
                        continue
                    key, value = message.key(), message.value()
                    name = key.decode(errors="replace") if isinstance(key, bytes) else ""
                    if value is None:
                        found.pop(name, None)
                    else:
                        found[name] = hash(value)
        finally:
            consumer.close()
        raise KafkaUnavailable(f"{self._topic} was not read in {READ_S:.0f} s")
