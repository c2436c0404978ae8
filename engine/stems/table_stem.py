"""The Data SteM of a table: versions of its rows, as the rows of a stream, with what supersedes what.

Versions that nobody may ask for any more lie among those that are needed, so dropping from the front frees
nothing. They are let go of together: the survivors enter once more behind the end, in order, with new
ordinals, and everything below the old end goes. As that is done when more than half has gone, a version
costs O(1) for it. Earlier readers keep what they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.model.attributes import Attribute
from engine.model.batch import BATCH_ROWS_MAX, Batch, Int64Array, concatenate
from engine.model.capacities import USUAL, Capacities
from engine.model.source import Stream
from engine.stems.data_stem import DataStem
from engine.stems.entering import EnteringRows
from engine.stems.owed_matches import RowMatcher
from engine.stems.rows import Rows
from engine.stems.versions import TableVersions


@dataclass(frozen=True, slots=True)
class TableRows(Rows):
    """The visible versions as a reader sees them.

    superseded, before: as in :class:`TableVersions`, by ordinal - base; entries of later versions mean
    nothing here. first_loss_ms: the first instant, ever, at which a version was superseded or taken away.
    last: how many versions are their keys' rows.
    """

    superseded: Int64Array
    before: Int64Array
    first_loss_ms: int | None
    last: int

    @property
    def count(self) -> int:
        """How many rows the table has."""
        return self.last

    def not_superseded(self, ordinals: Int64Array, end: int) -> Int64Array:
        """The ordinals that no ordinal below ``end`` supersedes: of ordinals below ``end``, the rows of their
        keys among the first ``end``.
        """
        return ordinals[self.superseded[ordinals - self.base] >= end]


class TableStem(DataStem):
    """The writing side. Nothing is dropped from its front but by :meth:`settle`."""

    def __init__(
        self, stream: Stream, queries: RowMatcher, base: int = 0, capacities: Capacities = USUAL
    ) -> None:
        super().__init__(stream.stored_schema, queries, base, capacities=capacities)
        places = [stream.schema.index(name) for name in stream.key]
        self._versions = TableVersions([place for place in places if place is not None], base, capacities)

    def enter(self, rows: EnteringRows) -> None:
        """Versions enter and meet all queries."""
        self._versions.enter(rows.batch())
        super().enter(rows)

    @property
    def superseded(self) -> int:
        """How many versions are not the last of their key's row."""
        return len(self) - self._versions.last

    def is_due(self, from_ms: int, spent_max: int) -> bool:
        """Whether more than half of all, and more than ``spent_max``, is what nobody may ask for at this
        instant or after it, which never goes back. O(versions since the last time).
        """
        spent = self._versions.spent(self.rows().first_at_or_after(from_ms + 1))
        return spent > spent_max and 2 * spent > len(self)

    def spent(self, from_ms: int) -> Iterator[Batch]:
        """The versions that nobody may ask for at this instant or after it."""
        rows = self.rows()
        survivors = self._versions.survivors(rows.first_at_or_after(from_ms + 1))
        for first, batch in rows.slices(self.base, self.end):
            low, high = survivors.searchsorted([first, first + len(batch)])
            spent = np.ones(len(batch), np.bool_)
            spent[survivors[low:high] - first] = False
            if spent.any():
                yield batch.take(np.flatnonzero(spent))

    def settle(self, from_ms: int) -> None:
        """Let go of that. O(survivors * words); they meet all queries again."""
        rows = self.rows()
        ordinals = self._versions.survivors(rows.first_at_or_after(from_ms + 1))
        end = self.end
        self.clear()
        self._versions.restart(end)
        for part in rows.parts:
            low, high = ordinals.searchsorted([part.first, part.end])
            batch = part.batch(self.schema)
            for start in range(low, high, BATCH_ROWS_MAX):
                kept = ordinals[start : min(high, start + BATCH_ROWS_MAX)] - part.first
                self.append(batch.take(kept))

    def restore(self, first: int, rows: Batch) -> None:
        """Stored rows come back, from ``base`` on."""
        assert first >= self.base
        super().restore(first, rows)

    def rows(self) -> TableRows:
        """What readers may see now; the same object until something changes."""
        if not isinstance(self._segments.seen, TableRows):
            seen, versions = super().rows(), self._versions
            self._segments.seen = TableRows(
                seen.schema,
                seen.parts,
                seen.base,
                seen.end,
                versions.superseded,
                versions.before,
                versions.first_loss_ms,
                versions.last,
                origin=seen.origin,
            )
        return self._segments.seen

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        superseded = Attribute(
            "superseded", self.superseded, "of them versions that others took the place of"
        )
        return (*super().attributes(), superseded)

    def _check(self) -> None:
        super()._check()
        assert self.base == self._versions.first
        batches = [batch for _, batch in self.rows().slices(self.base, self.end)]
        self._versions._check(concatenate(self.schema, batches))
