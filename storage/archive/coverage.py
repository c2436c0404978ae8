"""Which records of a topic a table of the archive has, said by its commits.

Each commit of the archive job carries, as Delta's ``userMetadata``, a JSON text::

    {"tureen": {"version": 1, "topic": "orders", "topic_id": "...", "complete_from_ms": -62135596800000,
                "partitions": {"0": {"from": 0, "next": 1200, "max_ms": 1700000000000}}}}

All committed records of the topic with from <= offset < next are in the table, or in the topic's quarantine.
``max_ms`` is the largest timestamp among them that the broker takes, None where there was none. From
``complete_from_ms`` on nothing is missing that the topic ever had up to ``next``; retention raises it before
it deletes a row.

Who commits to a table for another reason (compaction, retention) repeats what holds. Two commits at the same
time may each repeat what they read before the other: so what holds is the union of the newest few
(:func:`in_force`): every claim was true when it was made, and only retention takes rows away, which the
largest ``complete_from_ms`` tells.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.model.source import Stream
from engine.model.types import TIMESTAMP_MS_MIN
from storage.archive.errors import ArchiveVersionUnknown

VERSION = 1
COMMITS_LOOKED_AT = 20
"""Newest commits that are united; more than can be on their way at once."""

AFTER_A_GAP = 20
"""So many offsets behind records that are gone tell from when on nothing is missing. One would do, were it
not late itself; that all of them are is taken not to happen."""
STEPS_BACK_MS = 60_000
"""How far a log's own times may go back from one record to a later one: as much as the clocks of Kafka's
nodes may differ.
"""

COMPLETE = TIMESTAMP_MS_MIN
"""``complete_from_ms`` of a table that has all there ever was."""


def disorder_ms(stream: Stream) -> int:
    """How much older than one before it, of its partition, a record of a stream may be and still count."""
    return stream.lateness_ms if stream.event_time else STEPS_BACK_MS


@dataclass(frozen=True, slots=True)
class Covered:
    """Offsets of one partition: from the first up to, without, the next."""

    first_offset: int
    next_offset: int
    max_ms: int | None = None

    def union(self, other: Covered) -> Covered:
        """What both say; the later one where records between them were lost."""
        if self.first_offset > other.next_offset:
            return self
        if other.first_offset > self.next_offset:
            return other
        known = [ms for ms in (self.max_ms, other.max_ms) if ms is not None]
        return Covered(
            min(self.first_offset, other.first_offset),
            max(self.next_offset, other.next_offset),
            max(known) if known else None,
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a table has. topic_id: of the topic's present life; empty where Kafka gave none."""

    topic: str
    partitions: Mapping[int, Covered]
    complete_from_ms: int = COMPLETE
    topic_id: str = ""

    @property
    def reached(self) -> int:
        """Grows with every commit that covers more, be it a partition without records."""
        return sum(one.next_offset + 1 for one in self.partitions.values())

    @property
    def max_ms(self) -> int | None:
        """The largest timestamp of all partitions."""
        return max((one.max_ms for one in self.partitions.values() if one.max_ms is not None), default=None)

    def union(self, other: Coverage) -> Coverage:
        """What both say together; of the same topic."""
        partitions = dict(self.partitions)
        for number, one in other.partitions.items():
            partitions[number] = one.union(partitions[number]) if number in partitions else one
        return replace(
            self,
            partitions=partitions,
            complete_from_ms=max(self.complete_from_ms, other.complete_from_ms),
        )

    def to_text(self) -> str:
        """As a commit carries it."""
        partitions = {
            str(number): {"from": one.first_offset, "next": one.next_offset, "max_ms": one.max_ms}
            for number, one in sorted(self.partitions.items())
        }
        told = {
            "version": VERSION,
            "topic": self.topic,
            "topic_id": self.topic_id,
            "complete_from_ms": self.complete_from_ms,
            "partitions": partitions,
        }
        return json.dumps({"tureen": told}, separators=(",", ":"))


def coverage_of(text: str | None) -> Coverage | None:
    """What a commit's userMetadata says; None where it is not ours.

    Raises ArchiveVersionUnknown.
    """
    try:
        told = json.loads(text or "")["tureen"]
        version = told["version"]
    except (ValueError, KeyError, TypeError):
        return None
    if version != VERSION:
        raise ArchiveVersionUnknown(
            version, VERSION, hint="read it with the Tureen that wrote it, or archive into another directory"
        )
    return Coverage(
        told["topic"],
        {int(n): Covered(one["from"], one["next"], one["max_ms"]) for n, one in told["partitions"].items()},
        told["complete_from_ms"],
        told["topic_id"],
    )


def in_force(texts: Iterable[str | None]) -> Coverage | None:
    """What holds, from the userMetadata of the newest COMMITS_LOOKED_AT commits, newest first.

    Raises ArchiveVersionUnknown.
    """
    found: Sequence[Coverage] = [one for one in map(coverage_of, texts) if one is not None]
    if not found:
        return None
    result = found[0]
    for older in found[1:COMMITS_LOOKED_AT]:
        if (older.topic, older.topic_id) != (result.topic, result.topic_id):
            break
        result = result.union(older)
    return result
