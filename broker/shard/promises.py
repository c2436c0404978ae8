"""Heartbeats among the records of a poll: it is cut behind them, so that each counts from its place on.

What comes before a heartbeat in the poll is not late by it, what comes behind it is. Heartbeats without a row
between them stay together. Each part is a step, and what it promises another one behind it, in the same
transaction. O(records) where there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from broker.shard.taken import Promise, TakenRows
from engine.model.shed import Shed
from topics.consumer import Polled


def cut_at_promises(taken: TakenRows, polled: Polled, promised: Mapping[int, int]) -> Iterator[TakenRows]:
    """Parts of what was taken, in order. promised: place among the messages -> ms since 1970, not empty."""
    n, start = len(taken.messages), 0
    stops = [place + 1 for place in sorted(promised) if place + 1 not in promised]
    if stops[-1] < n:
        stops.append(n)
    offsets = dict(polled.next_offsets)
    shed_from: dict[int, int] = {}
    for stop in stops:
        low, high = np.searchsorted(taken.rows, [start, stop]).tolist()
        part = replace(
            polled,
            values=polled.values[start:stop],
            partition=polled.partition[start:stop],
            offset=polled.offset[start:stop],
        )
        behind = polled.partition[stop:].tolist()
        ranges = part.ranges
        reached = offsets if stop == n else {one.partition: one.last + 1 for one in ranges}
        bad = [(place - start, reason) for place, reason in taken.bad if start <= place < stop]
        body = replace(
            taken.body,
            batch=taken.body.batch.take(np.arange(low, high)),
            next_offsets=reached,
            lagging=taken.body.lagging.union(behind),
            complete_from_ms=None if start else taken.body.complete_from_ms,
            unreadable=len(bad),
            shed=_shed(taken.body.shed, shed_from, reached),
        )
        shed_from |= reached
        promises = tuple(
            Promise(place - start, int(polled.partition[place]), promised[place])
            for place in range(start, stop)
            if place in promised
        )
        size = sum(len(value) for value in part.values if value is not None)
        messages, rows = taken.messages[start:stop], taken.rows[low:high] - start
        yield TakenRows(body, messages, rows, bad, size, ranges, promises)
        start = stop


def _shed(shed: Shed | None, begun: Mapping[int, int], reached: Mapping[int, int]) -> Shed | None:
    """What a part sheds: of each partition from where the part before ended to where this one does."""
    if shed is None:
        return None
    ranges = {
        partition: (begun.get(partition, first), min(until, reached[partition]))
        for partition, (first, until) in shed.ranges.items()
        if partition in reached
    }
    return replace(
        shed, ranges={one: (first, until) for one, (first, until) in ranges.items() if first < until}
    )
