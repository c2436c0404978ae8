"""Replicas on their way to the shards that need them, and away again.

:class:`broker.base.placement.Replicas` keeps the books of who needs which replica; here they become commands.
A replica that has just come reads its topic from the start, so what reads it there is behind what its home
has read already, until it has caught up: it is *arriving*.

Used on the event loop alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from broker.base.placement import Replicas
from broker.node.directory import Directory
from broker.node.shards import Shards
from broker.shard.shard_command import ShardCommand
from tureen.protocol import SUMMARY_KEY


class Hosting:
    """Who is a replica where, for whom."""

    def __init__(self, directory: Directory, shards: Shards) -> None:
        self._directory = directory
        self._shards = shards
        self._replicas = Replicas()
        self._arriving: dict[tuple[int, str], Mapping[int, int]] = {}

    def replicas_on(self, shard: int) -> Collection[str]:
        """The replicas of a shard, those first that came first."""
        return self._replicas.on(shard)

    def found(self, shard: int, name: str, needed_by: Iterable[str]) -> None:
        """A replica that a restart brought back, and the queries that need it."""
        self._replicas.found(shard, name, needed_by)

    def need_more(self, who: str, shard: int, names: Iterable[str]) -> None:
        """A view that a restart brought back needs these of what else it brought back there."""
        self._replicas.need_more(who, shard, names)

    def required(
        self,
        who: str,
        number: int,
        read: Iterable[str],
        uses: Iterable[str] = (),
        summaries: Iterable[str] = (),
    ) -> list[ShardCommand]:
        """What a shard is to be told before a query, a view over it, or a stream that refers to others comes
        there: its replicas. read: streams and tables; uses: views, and the stream that it inserts into;
        summaries: those that a preference uses.
        """
        summarised = self._directory.summaries
        sources, views = self._directory.sources, self._directory.views
        into = [name for name in uses if name not in views]
        names: list[str] = [name for name in (*read, *into) if sources[name].shard != number]
        used = (views[name] for name in uses if name in views)
        # A view names fewer views than one that names it.
        names += (
            view.derived.name for view in sorted(used, key=lambda one: len(one.uses)) if view.shard != number
        )
        names += (SUMMARY_KEY + name for name in summaries if summarised[name].shard != number)
        if not names:
            return []
        commands = []
        for name in self._replicas.need(who, number, names):
            if name in views:
                commands.append(ShardCommand.create_derived(views[name].derived))
                continue
            if name.startswith(SUMMARY_KEY):
                summary = summarised[name.removeprefix(SUMMARY_KEY)]
                commands.append(ShardCommand.create_summary(summary.definition, summary.sql))
                continue
            entry = sources[name]
            at_home = self._shards[entry.shard].view().sources()
            self._arriving[number, name] = next((one.next_offsets for one in at_home if one.name == name), {})
            commands.append(ShardCommand.create(entry.stream, entry.sql))
        return commands

    def is_arriving(self, number: int) -> bool:
        """Whether a replica of a shard has yet to read what its home had read when the replica came."""
        if not self._arriving:
            return False
        read = {info.name: info.next_offsets for info in self._shards[number].view().sources()}
        for shard, name in [key for key in self._arriving if key[0] == number]:
            offsets = read.get(name)
            wanted = self._arriving[shard, name]
            if offsets is None or all(offsets.get(part, 0) >= offset for part, offset in wanted.items()):
                del self._arriving[shard, name]
        return any(shard == number for shard, _ in self._arriving)

    def shards_with(self, summary: str) -> list[int]:
        """The shards that a summary is a replica of, besides its home. O(shards)."""
        return [one.number for one in self._shards if SUMMARY_KEY + summary in self._replicas.on(one.number)]

    def summary_gone(self, number: int, summary: str) -> None:
        """A summary that was a replica of a shard was dropped there."""
        self._replicas.gone(number, [SUMMARY_KEY + summary])

    def release(self, who: str, shard: int) -> None:
        """Somebody is gone from a shard."""
        self._replicas.release(who, shard)

    async def drop_unneeded(self) -> None:
        """Drop replicas that nobody needs any more."""
        for number, names in list(self._replicas.unneeded()):
            outcomes = await self._shards.hand_over(number, [_drop(name) for name in names])
            gone = [name for name, one in zip(names, outcomes, strict=True) if one["state"] == "GONE"]
            self._replicas.gone(number, gone)


def _drop(replica: str) -> ShardCommand:
    if replica.startswith(SUMMARY_KEY):
        return ShardCommand.drop_summary(replica.removeprefix(SUMMARY_KEY))
    return ShardCommand.drop(replica)
