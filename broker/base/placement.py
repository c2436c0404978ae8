"""Which shard a set of sources chooses, and the sources that are replicas there.

A source has a home, the shard that its name chooses: it was created there, and what reads it alone stands
there. A query over several sources stands on the shard that their set chooses. What of the set, and of the
views that the query names, has another home is a *replica* of that shard: created there too and read a second
time, from the start of its topic. Its home alone writes late records and dead letters. It comes
before the first that needs it and goes after the last.

Used on the event loop alone. O(replicas of the shard) for each that comes or goes, and those are few.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator


def shard_of(sources: Iterable[str], shards: int) -> int:
    """The shard that a set of sources chooses; the same on every machine and in every release."""
    return zlib.crc32("\0".join(sorted(set(sources))).encode()) % shards


class Replicas:
    """Who needs which replica of which shard: queries by their ids, views and streams by :func:`of_view`."""

    def __init__(self) -> None:
        self._needed: dict[int, dict[str, set[str]]] = {}

    def on(self, shard: int) -> Collection[str]:
        """The replicas of a shard, those first that came first."""
        return self._needed.get(shard, {})

    def found(self, shard: int, name: str, needed_by: Iterable[str]) -> None:
        """A replica that a restart brought back; nobody it is not needed by may be missing."""
        self._needed.setdefault(shard, {})[name] = set(needed_by)

    def need(self, who: str, shard: int, names: Iterable[str]) -> list[str]:
        """Somebody needs just these on a shard; those that are to be created there before."""
        self.release(who, shard)
        replicas = self._needed.setdefault(shard, {})
        coming = [name for name in names if name not in replicas]
        for name in names:
            replicas.setdefault(name, set()).add(who)
        return coming

    def need_more(self, who: str, shard: int, names: Iterable[str]) -> None:
        """Somebody that a restart brought back needs these of what else it brought back there."""
        replicas = self._needed.get(shard, {})
        for name in names:
            if name in replicas:
                replicas[name].add(who)

    def release(self, who: str, shard: int) -> None:
        """Somebody is gone from a shard."""
        for needing in self._needed.get(shard, {}).values():
            needing.discard(who)

    def unneeded(self) -> Iterator[tuple[int, list[str]]]:
        """The replicas that nobody needs any more, by shard, those first that came last: views before what
        they read."""
        for shard, replicas in self._needed.items():
            leaving = [name for name, needing in replicas.items() if not needing]
            if leaving:
                yield shard, leaving[::-1]

    def gone(self, shard: int, names: Iterable[str]) -> None:
        for name in names:
            del self._needed[shard][name]


def of_view(name: str) -> str:
    """A view, or a stream that refers to others, among those who need replicas; no query has such an id."""
    return f"view {name}"
