"""The node: the worker's shards and what stands on them, from start to stop, and the order of commands.

A stream lives on the shard that its name chooses, a query on its stream's; one over several sources lives on
the shard that their set chooses, with those sources as guests (:mod:`broker.base.placement`). Runs on the
event loop; a shard is a thread of its own, reached by futures (:mod:`broker.node.shards`).

Commands are idempotent: registering the text that stands, creating the stream that stands, and removing
what is not there are answered and change nothing.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Sequence

from broker.archive.catalogue import ArchiveCatalogue
from broker.base import logs
from broker.base.internal import Outcome
from broker.base.parsed import LONG_TEXT
from broker.base.settings import Settings
from broker.memory.levels import Memory
from broker.node.admission import Admission
from broker.node.adoption import adopt_outputs, adopt_shard, adopt_views
from broker.node.allocation_counts import AllocationCounts
from broker.node.broken import BrokenQueries
from broker.node.control_signs import ControlSigns
from broker.node.creation import Creation
from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.node.kafka_watch import KafkaWatch
from broker.node.output_settings import output_settings
from broker.node.registrations import Registrations
from broker.node.request_work import Found, RequestWork
from broker.node.shards import Shards
from broker.node.waiters import Waiters
from broker.runtime import lives
from broker.runtime.engines import Engines
from broker.runtime.liveness import Liveness
from broker.shard.listener import Listener
from engine.language.query import Statement
from topics.admin import Admin
from topics.control_records import Command
from topics.outputs import Outputs
from topics.wording import Values
from tureen.protocol import SUMMARY_KEY

log = logs.get()


class Node:
    """Everything that stands on this worker.

    shards, directory, hosting, outputs, broken: read by those who answer for the node; what they hold is
    changed by commands alone. instance: names this life of the worker.
    """

    def __init__(
        self,
        settings: Settings,
        kafka: dict[str, str],
        admin: Admin,
        prober: Admin,
        on_fenced: Callable[[int], None],
        engines: Engines,
        listener: Listener,
        liveness: Liveness,
        memory: Memory,
    ) -> None:
        """admin: makes topics of streams. prober: asks Kafka and gives up soon."""
        self.archive = ArchiveCatalogue(settings) if settings.archive else None
        """The archive, where one is configured."""
        self.kafka = kafka
        self.memory = memory
        self.allocation = AllocationCounts()
        """What queries are given where memory is short."""
        self.engines = engines
        self.instance = secrets.token_hex(8)
        self.reconciled = False
        self.started = False
        self.stopping = asyncio.Event()
        """Set when the worker ends: streams of events end, too."""
        self.began_s = time.monotonic()
        self.control = ControlSigns()
        self.prober = prober
        self.kafka_watch = KafkaWatch(prober)
        self.outputs = Outputs(output_settings(settings), prober)
        self.directory = Directory(engines, settings.shards)
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
        self.shards = Shards(
            settings,
            kafka,
            engines,
            prober,
            self.outputs,
            listener,
            on_fenced,
            self.archive,
            liveness,
            memory,
            self._causes,
            {one.cause: one.at for one in found},
        )
        self.hosting = Hosting(self.directory, self.shards)
        self.broken = BrokenQueries(self.directory, self.shards, self.hosting, self.outputs)
        self.waiters = Waiters()
        self._names = settings.names
        self._data_dir = settings.data_dir
        self._creation = Creation(settings.names, admin, self.directory, self.shards, self.hosting, memory)
        self._registrations = Registrations(
            settings.queries_max,
            self.directory,
            self.shards,
            self.hosting,
            self.outputs,
            Admission(self._names, self.directory, self.outputs, self.broken, self.shards.failure_of),
            memory,
        )
        self._order = asyncio.Lock()
        self._back = asyncio.Event()

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
        await asyncio.to_thread(adopt_outputs, self.directory, self.outputs, self._names)
        self.started = True
        self._back.set()

    async def retry(self) -> list[int]:
        """Have shards that are held try to come back, whatever ended the worker before; their numbers."""
        await asyncio.to_thread(lives.forget, self._data_dir, self._causes)
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

    async def apply(self, commands: Sequence[Command]) -> list[Outcome]:
        """Carry out a batch in order; one outcome each. Waits until what stood before is back."""
        await self._back.wait()
        async with self._order:
            outcomes: list[Outcome] = []
            start = 0
            while start < len(commands):
                stop = _together(commands, start)
                if _of_source(commands[start]):
                    outcomes.append(await self._creation.apply(commands[start]))
                else:
                    outcomes += await self._registrations.apply(commands[start:stop])
                start = stop
            for command, outcome in zip(commands, outcomes, strict=True):
                if "origin" in command:
                    topic = self._names.sources if _of_source(command) else self._names.queries
                    partition, offset = command["origin"]
                    self.waiters.tell((topic, partition, offset), outcome)
            return outcomes

    async def reconcile(self, queries: Iterable[str], sources: Iterable[str]) -> None:
        """Everything was said again: what else stands here goes."""
        there = self.directory
        strangers = there.queries.keys() - set(queries)
        if strangers:
            log.info("queries_unknown_to_registry", removed=len(strangers))
            await self.apply([{"kind": "unregister", "name": name} for name in sorted(strangers)])
        known = set(sources)
        for name in [SUMMARY_KEY + name for name in (*there.summaries, *there.waiting_summaries)]:
            if name not in known:
                log.info("summary_unknown_to_registry", summary=name.removeprefix(SUMMARY_KEY))
                await self.apply([{"kind": "drop", "name": name}])
        # What was made later reads what was made before, so it goes first.
        for name in [*reversed(there.views), *reversed(there.sources), *there.waiting]:
            if name not in known:
                log.info("stream_unknown_to_registry", stream=name)
                await self.apply([{"kind": "drop", "name": name}])
        self.reconciled = True


def _of_source(command: Command) -> bool:
    return command["kind"] in ("create", "drop")


def _together(commands: Sequence[Command], start: int) -> int:
    """Where those end that go with the first: commands of distinct queries, or one of a source alone."""
    stop = start + 1
    if not _of_source(commands[start]):
        seen = {commands[start]["name"]}
        while stop < len(commands) and not _of_source(commands[stop]) and commands[stop]["name"] not in seen:
            seen.add(commands[stop]["name"])
            stop += 1
    return stop
