"""The node: the worker's shards and what stands on them.

A stream lives on the shard that its name chooses, a query on its stream's; one over several sources lives on
the shard that their set chooses, with those sources as replicas (:mod:`broker.base.placement`). Runs on the
event loop; a shard is a thread of its own, reached by futures (:mod:`broker.node.shards`). How the node
starts and stops is :mod:`broker.node.life`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.base.parsed import LONG_TEXT
from broker.node.admission import Admission
from broker.node.allocation_counts import AllocationCounts
from broker.node.broken import BrokenQueries
from broker.node.commands import Commands
from broker.node.creation import Creation
from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.node.kafka_watch import KafkaWatch
from broker.node.life import NodeLife
from broker.node.registrations import Registrations
from broker.node.request_work import Found, RequestWork
from broker.node.shards import Shards
from broker.node.waiters import Waiters
from broker.runtime.liveness import Liveness
from broker.shard.setup import ShardSetup
from engine.language.query import Statement
from topics.admin import Admin
from topics.wording import Values


class Node:
    """Everything that stands on this worker: its parts, read by those who answer for it. What they hold is
    changed by commands alone.
    """

    def __init__(self, setup: ShardSetup, liveness: Liveness) -> None:
        settings = setup.settings
        self.setup = setup
        """What its shards share: settings, Kafka, archive, memory, topics of results."""
        self.admin = Admin(setup.kafka)
        """Makes topics of streams. That of the shards, in their setup, gives up soon."""
        self.kafka_watch = KafkaWatch(setup.admin)
        self.allocation = AllocationCounts()
        """What queries are given where memory is short."""
        self.work = RequestWork(
            "request",
            settings.request_work_threads,
            settings.request_work_waiting_max,
            "request_work_ms_max",
            settings.request_work_ms_max,
            setup.memory.require_room,
        )
        """What requests ask for, but for answers."""
        self.directory = Directory(setup.engines, settings.shards)
        self.shards = Shards(setup, liveness)
        self.hosting = Hosting(self.directory, self.shards)
        self.broken = BrokenQueries(self.directory, self.shards, self.hosting, setup.outputs)
        self.waiters = Waiters()
        self.commands = self._made_commands()
        self.life = NodeLife(setup, self.directory, self.shards, self.hosting, self.commands)

    def _made_commands(self) -> Commands:
        """What carries commands out, made with the parts that there are."""
        settings, outputs, memory = self.setup.settings, self.setup.outputs, self.setup.memory
        names, directory, shards, hosting = settings.names, self.directory, self.shards, self.hosting
        admission = Admission(names, directory, outputs, self.broken, shards.failure_of)
        return Commands(
            names,
            Creation(names, self.admin, directory, shards, hosting, memory),
            Registrations(settings.queries_max, directory, shards, hosting, outputs, admission, memory),
            directory,
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

    def changed(self) -> list[str]:
        """Queries whose state is another than the last outcome said, until they are said again."""
        prepared = (name for shard in self.shards for name in shard.preparations.prepared)
        return sorted({*self.broken.changed(), *self.directory.unheard, *prepared})
