"""The life of a node: it starts, is told what stands, serves, and stops.

    start: shards come back -> what stands on them is taken over -> started
    reconcile: the control process has said everything again -> what else stands goes -> reconciled
    stop: events end -> shards flush and end

Runs on the event loop.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterable

from broker.node.adoption import adopt_outputs, adopt_shard, adopt_views
from broker.node.commands import Commands
from broker.node.control_signs import ControlSigns
from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.node.shards import Shards
from broker.shard.setup import ShardSetup


class NodeLife:
    """How far the node is, and its steps to there. Public attributes are read by those who answer for it."""

    def __init__(
        self, setup: ShardSetup, directory: Directory, shards: Shards, hosting: Hosting, commands: Commands
    ) -> None:
        """commands: are carried out from the start's end on."""
        self.instance = secrets.token_hex(8)
        """Names this life of the worker."""
        self.began_s = time.monotonic()
        self.started = False
        """All shards have answered once."""
        self.reconciled = False
        """What stands is what the control process knows."""
        self.stopping = asyncio.Event()
        """Set when the worker ends: streams of events end, too."""
        self.control = ControlSigns()
        self._setup = setup
        self._directory = directory
        self._shards = shards
        self._hosting = hosting
        self._commands = commands

    async def start(self, numbers: Iterable[int]) -> None:
        """Bring back the shards that have a store or a journal; returns when all answer again."""
        self._shards.start(numbers)
        for shard in self._shards:
            await asyncio.wrap_future(shard.recovered)
            adopt_shard(shard, self._directory, self._hosting)
        self._directory.catalogue_changed()
        adopt_views(self._shards, self._directory, self._hosting)
        self._directory.catalogue_changed()
        names = self._setup.settings.names
        await asyncio.to_thread(adopt_outputs, self._directory, self._setup.outputs, names)
        self.started = True
        self._commands.begin()

    def control_lives(self, pid: int, told: str | None) -> None:
        """The control process has given a sign of life. told: the worker's life that knows its registry."""
        self.control.seen(pid, complete=told == self.instance)

    async def reconcile(self, queries: Iterable[str], sources: Iterable[str]) -> None:
        """Everything was said again: what else stands here goes."""
        await self._commands.leave_only(queries, sources)
        self.reconciled = True

    async def stop(self, timeout_s: float) -> bool:
        """Flush and end every shard; False when one still waits for Kafka: it has nothing to lose."""
        ended = await self._shards.stop(timeout_s)
        if self._setup.archive is not None:
            self._setup.archive.close()
        return ended
