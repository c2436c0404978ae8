"""One row as a view has it: where it is, which queries it satisfies there, and its partners in joins.

Everything is read off a view, in any thread. A row is known by the partition and the offset that it came
from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.joins.view import JoinView
from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.standing.query import StandingQuery
from engine.stems.rows import Rows
from engine.views.view import View

SLOTS_LOOKED_AT = 20_000
"""Predicates of queries over several sources that are looked up for one row."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row that a source holds, as a batch of one."""

    ordinal: int
    row: Batch


@dataclass(frozen=True, slots=True)
class Partners:
    """Rows of another input of a join with the same keys as a row. join: the id of its entity. place: which
    input the row is of; other: which input the partners are of. count: None where the row is not in the
    index.
    """

    join: str
    inputs: tuple[SourceName, ...]
    place: int
    other: int
    keys: str
    count: int | None


@dataclass(frozen=True, slots=True)
class JoinedQueries:
    """Queries over several sources, as far as the matches that are kept of a row tell. satisfied: those of
    which a predicate over the row's source is TRUE for it, or that have none. looked_at: so many of the
    ``total`` that read the source.
    """

    satisfied: tuple[StandingQuery, ...]
    looked_at: int
    total: int


def stored_row(rows: Rows, partition: int, offset: int, at_ms: int | None) -> StoredRow | None:
    """The row that came from there; at_ms: its instant, None: not known.

    O(rows of that instant), or O(rows).
    """
    start, stop = rows.base, rows.end
    if at_ms is not None:
        start, stop = rows.first_at_or_after(at_ms), rows.first_at_or_after(at_ms + 1)
    for part, first, last in rows.ranges(start, stop):
        partitions, offsets = part.origins.of(first, last)
        (places,) = np.nonzero((partitions == partition) & (offsets == offset))
        if len(places):
            place = first + int(places[-1])
            return StoredRow(part.first + place, part.batch(rows.schema).slice(place, place + 1))
    return None


def waiting_row(waiting: Sequence[Batch], partition: int, offset: int) -> Batch | None:
    """The row above NOW that came from there."""
    for batch in waiting:
        (places,) = np.nonzero((batch.partition == partition) & (batch.offset == offset))
        if len(places):
            return batch.slice(int(places[-1]), int(places[-1]) + 1)
    return None


def partners(view: View, source: SourceName, ordinal: int) -> Iterator[Partners]:
    """Yields the partners of a row for each join of a shard that the source is an input of, and each input
    that it is joined with.

    O(rows of the joined sources).
    """
    for over, shape, join in view.joins_of(source):
        id_ = f"join/{'+'.join(over)}/{shape}"
        for number, edge in enumerate(shape.edges):
            for place in (edge.left, edge.right):
                if shape.inputs[place] == source:
                    count = _equal(join, number, place == edge.left, ordinal)
                    keys = join.keys_text(number)
                    yield Partners(id_, shape.inputs, place, edge.other(place), keys, count)


def _equal(join: JoinView, number: int, is_left: bool, ordinal: int) -> int | None:
    left, right = join.keys[number]
    own, other = (left, right) if is_left else (right, left)
    row = np.array([ordinal])
    if not own.has(row):
        return None
    keys, null = own.of(row)
    if null[0]:
        return 0
    others, unknown = other.of(np.arange(other.base, other.end))
    return int(np.count_nonzero((others == keys[0]) & ~unknown))


def joined_queries(view: View, source: SourceName, ordinal: int) -> JoinedQueries:
    """Queries over this source and others that a stored row passed to. O(queries over several sources)."""
    part, first, last = next(view.stored(source).ranges(ordinal, ordinal + 1))
    held: dict[int, bool] = {}
    satisfied: list[StandingQuery] = []
    looked_at = total = 0
    for query in view.standing.in_any_order():
        if len(query.sources) < 2 or source not in query.sources or query.paused:
            continue
        total += 1
        if looked_at >= SLOTS_LOOKED_AT or (not query.slots and query.query.predicates()):
            continue  # no matches of it are kept
        looked_at += 1
        slots = [slot for name, (slot, _) in query.places() if name == source]
        for slot in slots:
            if slot not in held:
                held[slot] = part.count_of(slot, first, last) > 0
        if not slots or any(held[slot] for slot in slots):
            satisfied.append(query)
    return JoinedQueries(tuple(satisfied), looked_at, total)
