"""Scans of tables at an instant: the latest version of each key, without those that are taken away.

A table has no windows; whatever stands over it, its scan is the whole table as it stood, in (timestamp,
partition, offset) order of the versions. A *history* scan is all versions that are retained, each with a
column more that says whether it takes its key's row away.

No answer may depend on when superseded versions are let go of; so what was superseded at or before
``retained_from`` is in no answer, gone or not, and a scan at an earlier instant says that it is incomplete,
once there was such a version.

Cost: as for a stream, and one comparison a row.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.query import Scan
from engine.model.batch import Int64Array
from engine.model.expressions import Expression
from engine.model.source import Schema
from engine.operators.gather import rows_at
from engine.operators.places import Places
from engine.operators.scan import Chosen, ScanAt, Scanned
from engine.operators.window_range import WindowRange
from engine.stems.rows import Rows
from engine.stems.segment import SegmentView
from engine.stems.table_stem import TableRows


def scan_now(rows: Rows, now_ms: int | None, retained_from_ms: int | None) -> ScanAt:
    """All that is visible of a stream or a table; no matches are kept."""
    kind = TableAt if isinstance(rows, TableRows) else ScanAt
    return kind.now(rows, now_ms, retained_from_ms)


def scan_earlier(rows: Rows, at_ms: int, retained_from_ms: int | None) -> ScanAt:
    """A stream or a table as of an instant before NOW, over the rows that are known now."""
    kind = TableAt if isinstance(rows, TableRows) else ScanAt
    return kind.earlier(rows, at_ms, retained_from_ms)


@dataclass(frozen=True, slots=True)
class TableAt(ScanAt):
    """The versions of a table as they stood at an instant."""

    # --- any scan ---------------------------------------------------------------------------------

    def relation(self, scan: Scan) -> Scanned:
        """The rows that a scan gives, in order."""
        chosen = self.places(scan)
        schema = self.rows.schema
        if not scan.history:
            schema = Schema(schema.fields[:-1])
        return Scanned(rows_at(schema, chosen.places), chosen.complete_from_ms)

    def places(self, scan: Scan) -> Chosen:
        """The places of the versions that satisfy a scan's predicate."""
        if self.now_ms is None:
            return Chosen([])
        if scan.history:
            found = ScanAt.matching(self, scan.predicate, self.rows.base, self.end)
            return Chosen(self._not_superseded(found, self._retained))
        window = self.window(scan)
        return Chosen(self.matching(scan.predicate, window.start, window.stop), window.complete_from_ms)

    def is_complete(self, scan: Scan, last_ms: int | None = None) -> bool:
        """Whether the versions of this instant, and so of all later ones, are there for certain. O(1)."""
        gone_ms = self.gone_before_ms
        return self.now_ms is None or gone_ms is None or self.now_ms >= gone_ms

    @property
    def gone_before_ms(self) -> int | None:
        """The instant before which versions may be gone; None where none are."""
        assert isinstance(self.rows, TableRows)
        first_ms, retained_ms = self.rows.first_loss_ms, self.retained_from_ms
        if first_ms is None or retained_ms is None or first_ms > retained_ms:
            return None
        return retained_ms

    # --- windows that are a range -----------------------------------------------------------------

    def window(self, scan: Scan) -> WindowRange:
        """All ordinals that are visible; some of them are of rows that are no more."""
        base = self.rows.base
        if self.now_ms is None:
            return WindowRange(base, base)
        if self.is_complete(scan):
            return WindowRange(base, max(base, self.end))
        return WindowRange(base, max(base, self.end), complete=False, complete_from_ms=self.gone_before_ms)

    def matching(
        self, predicate: Expression | None, start: int, stop: int
    ) -> list[tuple[SegmentView, Int64Array]]:
        """The table's rows start <= ordinal < stop that a predicate accepts."""
        found = ScanAt.matching(self, predicate, start, stop)
        return self._not_superseded(found, max(self.end, self._retained))

    def count(self, predicate: Expression | None, start: int, stop: int) -> int:
        """How many rows start <= ordinal < stop a predicate accepts."""
        return sum(len(where) for _, where in self.matching(predicate, start, stop))

    @property
    def _retained(self) -> int:
        """What an ordinal below this one superseded is in no answer, whether it is gone by now or not."""
        retained_ms = self.retained_from_ms
        return self.rows.base if retained_ms is None else self.rows.first_at_or_after(retained_ms + 1)

    def _not_superseded(self, places: Places, end: int) -> list[tuple[SegmentView, Int64Array]]:
        assert isinstance(self.rows, TableRows)
        found = []
        for part, where in places:
            kept = self.rows.not_superseded(part.first + where, end) - part.first
            if len(kept):
                found.append((part, kept))
        return found
