"""The node: the worker's shards and what stands on them, from start to stop.

A stream lives on the shard that its name chooses, a query on its stream's; one over several sources lives on
the shard that their set chooses, with those sources as replicas (:mod:`broker.base.placement`). Runs on the
event loop; a shard is a thread of its own, reached by futures (:mod:`broker.node.shards`).
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable

from broker.base.parsed import LONG_TEXT
from broker.node.admission import Admission
from broker.node.adoption import adopt_outputs, adopt_shard, adopt_views
from broker.node.allocation_counts import AllocationCounts
from broker.node.broken import BrokenQueries
from broker.node.commands import Commands
from broker.node.control_signs import ControlSigns
from broker.node.creation import Creation
from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.node.kafka_watch import KafkaWatch
from broker.node.registrations import Registrations
from broker.node.request_work import Found, RequestWork
from broker.node.shards import Shards
from broker.node.waiters import Waiters
from broker.runtime import lives
from broker.runtime.liveness import Liveness
from broker.shard.setup import ShardSetup
from engine.language.query import Statement
from topics.admin import Admin
from topics.wording import Values


class Node:
    """Everything that stands on this worker.

    shards, directory, hosting, outputs, broken: read by those who answer for the node; what they hold is
    changed by commands alone. instance: names this life of the worker.
    """

    def __init__(self, setup: ShardSetup, liveness: Liveness) -> None:
        settings, kafka, memory = setup.settings, setup.kafka, setup.memory
        self.archive = setup.archive
        """The archive, where one is configured."""
        self.kafka = kafka
        self.memory = memory
        self.allocation = AllocationCounts()
        """What queries are given where memory is short."""
        self.engines = setup.engines
        self.instance = secrets.token_hex(8)
        self.reconciled = False
        self.started = False
        self.stopping = asyncio.Event()
        """Set when the worker ends: streams of events end, too."""
        self.began_s = time.monotonic()
        self.control = ControlSigns()
        self.admin = Admin(kafka)
        """Makes topics of streams."""
        self.prober = setup.admin
        """Asks Kafka and gives up soon."""
        self.kafka_watch = KafkaWatch(self.prober)
        self.outputs = setup.outputs
        self.directory = Directory(setup.engines, settings.shards)
        found = lives.read(settings.data_dir)
        self._causes = lives.repeated(found, time.time(), memory.budget.budget_bytes)
        self.work = RequestWork(
            "request",
            settings.request_work_threads,
            settings.request_work_waiting_max,
            "request_work_ms_max",
            settings.request_work_ms_max,
        )
        """What requests ask for, but for answers."""
        self.shards = Shards(setup, liveness, self._causes, {one.cause: one.at for one in found})
        self.hosting = Hosting(self.directory, self.shards)
        self.broken = BrokenQueries(self.directory, self.shards, self.hosting, self.outputs)
        self.waiters = Waiters()
        self._settings = settings
        names = settings.names
        self.commands = Commands(
            names,
            Creation(names, self.admin, self.directory, self.shards, self.hosting, memory),
            Registrations(
                settings.queries_max,
                self.directory,
                self.shards,
                self.hosting,
                self.outputs,
                Admission(names, self.directory, self.outputs, self.broken, self.shards.failure_of),
                memory,
            ),
            self.directory,
            self.waiters,
        )

    async def understand(self, sql: str, parameters: Values | None = None) -> Statement:
        """What a text means that somebody asks of or has carried out, against what stands now.

        Raises QueryError, LimitExceeded, and as :meth:`read`.
        """
        return await self.read(sql, lambda: self.directory.parse(sql, parameters))

    async def read(self, sql: str, reading: Callable[[], Found]) -> Found:
        """What reading a text gives, in another thread; a long one is work. Raises what limits work."""
        return await (self.work.do(reading) if len(sql) > LONG_TEXT else asyncio.to_thread(reading))

    async def start(self, numbers: Iterable[int]) -> None:
        """Bring back the shards that have a store or a journal; returns when all answer again."""
        self.shards.start(numbers)
        for shard in self.shards:
            await asyncio.wrap_future(shard.recovered)
            adopt_shard(shard, self.directory, self.hosting)
        self.directory.catalogue_changed()
        adopt_views(self.shards, self.directory, self.hosting)
        self.directory.catalogue_changed()
        await asyncio.to_thread(adopt_outputs, self.directory, self.outputs, self._settings.names)
        self.started = True
        self.commands.begin()

    async def retry(self) -> list[int]:
        """Have shards that are held try to come back, whatever ended the worker before; their numbers."""
        await asyncio.to_thread(lives.forget, self._settings.data_dir, self._causes)
        return self.shards.retry()

    def changed(self) -> list[str]:
        """Queries whose state is another than the last outcome said, until they are said again."""
        prepared = (name for shard in self.shards for name in shard.preparations.prepared)
        return sorted({*self.broken.changed(), *self.directory.unheard, *prepared})

    def control_lives(self, pid: int, told: str | None) -> None:
        """The control process has given a sign of life. told: the worker's life that knows its registry."""
        self.control.seen(pid, complete=told == self.instance)

    async def stop(self, timeout_s: float) -> bool:
        """Flush and end every shard; False when one still waits for Kafka: it has nothing to lose."""
        ended = await self.shards.stop(timeout_s)
        if self.archive is not None:
            self.archive.close()
        return ended

    async def reconcile(self, queries: Iterable[str], sources: Iterable[str]) -> None:
        """Everything was said again: what else stands here goes."""
        await self.commands.leave_only(queries, sources)
        self.reconciled = True
