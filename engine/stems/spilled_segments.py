"""Which sealed segments of a source leave memory when it is short: the oldest, with their strings; then their
matches, oldest first.

Instants, origins, columns and row lists of such a segment are on disk from then on, and read there: the
system keeps of them in memory what is read, and takes it back when it needs the room. Zones stay, and matches
that are bits. A string table goes with the first segment that has it, once no rows come that need its codes.
"""

from __future__ import annotations

from engine.model.spill import SpillSpace, nbytes_of
from engine.stems.owed_matches import Segments
from engine.stems.segment import SegmentView
from engine.stems.stream_strings import StreamStrings
from engine.store.matches.spilled import spill

AT_ONCE_BYTES = 64 << 20
"""So much is written before other work goes on."""


class SpilledSegments:
    """One owner, as the engine."""

    def __init__(self, segments: Segments, strings: StreamStrings, space: SpillSpace | None) -> None:
        """space: where they go; None: all stay in memory."""
        self._segments = segments
        self._strings = strings
        self._space = space

    @property
    def is_due(self) -> bool:
        """Whether memory is short."""
        return self._space is not None and self._space.wanted() > 0

    def make_room(self) -> int:
        """Spill segments while memory is short. Returns the bytes that left memory. O(segments + bytes)."""
        space, freed = self._space, 0
        if space is None or not self.is_due:
            return 0
        for leave in (self._spill_columns, self._spill_matches):
            for number in range(len(self._segments.sealed)):
                freed += leave(number, space)
                if freed >= AT_ONCE_BYTES or not space.wanted():
                    return freed
        return freed

    def _spill_columns(self, number: int, space: SpillSpace) -> int:
        part = self._segments.sealed[number]
        spilled = None if part.is_spilled else part.spilled(space)
        if spilled is None:
            return 0
        self._segments.sealed[number] = spilled
        self._segments.seen = None
        return nbytes_of(part.arrays()) + self._spill_strings(part, space)

    def _spill_matches(self, number: int, space: SpillSpace) -> int:
        return spill(self._segments.sealed[number].matches, space)

    def _spill_strings(self, part: SegmentView, space: SpillSpace) -> int:
        tables = (column.strings for column in part.columns)
        return sum(
            table.spill(space) for table in tables if table is not None and table not in self._strings.tables
        )
