"""Streams and tables in a line each, and what came of them a second: for whoever looks each second.

Much less than ``GET /sources`` has, so that hundreds of them are told in a millisecond.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

from broker.node.node import Node
from engine.model.answer import SourceInfo
from engine.model.source import SourceName

SOURCES_MAX = 200
"""Most sources that are told of: the first by name."""
COUNTED = ("records", "late", "dead_letters")


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """Counts, by source, of what came since the worker began. at_s: when, on the monotonic clock."""

    at_s: float
    counts: dict[str, dict[str, int]]

    def per_s(self, name: str, before: SourceCounts | None) -> dict[str, float | None]:
        """Records, late rows and dead letters of a source per second since ``before``; None: not known."""
        if before is None or name not in before.counts or self.at_s <= before.at_s:
            return dict.fromkeys(COUNTED)
        elapsed_s, now, was = self.at_s - before.at_s, self.counts[name], before.counts[name]
        return {each: (now[each] - was[each]) / elapsed_s for each in COUNTED}


def first_sources(node: Node) -> list[str]:
    """The names of those that are told of. O(sources * log sources)."""
    return list(islice(sorted(node.directory.sources), SOURCES_MAX))


def source_counts(node: Node) -> SourceCounts:
    """Count what came of the first sources. O(these sources)."""
    found = {}
    for name in first_sources(node):
        counts = node.shards[node.directory.sources[name].shard].counts
        found[name] = {
            "records": counts.records.get(name, 0),
            "late": counts.late.get(name, 0),
            "dead_letters": counts.dead_letters.get(name, 0),
        }
    return SourceCounts(time.monotonic(), found)


def source_lines(node: Node, now: SourceCounts, before: SourceCounts | None) -> list[dict[str, Any]]:
    """The lines that a page shows, one for each of the first sources. O(all sources)."""
    now_ms = time.time_ns() // 1_000_000
    infos: dict[str, SourceInfo] = {}
    for shard in node.shards:
        replicas = node.hosting.replicas_on(shard.number)
        infos |= {info.name: info for info in shard.view().sources() if info.name not in replicas}
    return [
        _line(node, name, infos.get(name), now.per_s(name, before), now_ms)
        for name in now.counts
        if name in node.directory.sources
    ]


def _line(
    node: Node, name: str, info: SourceInfo | None, per_s: dict[str, float | None], now_ms: int
) -> dict[str, Any]:
    entry = node.directory.sources[name]
    shard = node.shards[entry.shard]
    moves = info.now_ms if info else None
    seen = shard.view().source(SourceName(name))
    return {
        "name": name,
        "kind": entry.stream.kind,
        "state": "ERROR" if SourceName(name) in shard.stream_errors else "RUNNING",
        "shard": entry.shard,
        "now_ms": moves,
        "lag_ms": None if moves is None else now_ms - moves,
        "behind_ms": seen.behind_ms if seen else None,
        "rows": info.rows if info else 0,
        "pending": info.pending if info else 0,
        "late": info.lost.late if info else 0,
        "dead_letters": info.lost.broken if info else 0,
        "records_per_s": per_s["records"],
        "late_per_s": per_s["late"],
        "dead_letters_per_s": per_s["dead_letters"],
        "catching_up": next((one.as_dict() for one in shard.view().catching_up((name,))), None),
        "lagging": sorted(shard.lagging(name)),
        "shedding_share": shard.ingestion.shedder.shares.get(name, 0.0),
        "queries": node.directory.readers(name),
    }
