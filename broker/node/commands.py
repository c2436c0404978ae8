"""The order of commands on a node: batch after batch, in each one after another.

Commands are idempotent: registering the text that stands, creating the stream that stands, and removing
what is not there are answered and change nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from broker.base import logs
from broker.base.internal import Outcome
from broker.node.creation import Creation
from broker.node.directory import Directory
from broker.node.registrations import Registrations
from broker.node.waiters import Waiters
from topics.control_records import Command
from tureen.protocol import SUMMARY_KEY, TopicNames

log = logs.get()


class Commands:
    """Carries commands out once what stood before is back. On the event loop."""

    def __init__(
        self,
        names: TopicNames,
        creation: Creation,
        registrations: Registrations,
        directory: Directory,
        waiters: Waiters,
    ) -> None:
        self._names = names
        self._creation = creation
        self._registrations = registrations
        self._directory = directory
        self._waiters = waiters
        self._order = asyncio.Lock()
        self._back = asyncio.Event()

    def begin(self) -> None:
        """What stood before is back."""
        self._back.set()

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
                    self._waiters.tell((topic, partition, offset), outcome)
            return outcomes

    async def leave_only(self, queries: Iterable[str], sources: Iterable[str]) -> None:
        """Remove what else stands."""
        there = self._directory
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
