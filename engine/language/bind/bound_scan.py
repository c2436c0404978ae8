"""The scan of a relation while it is bound: which rows of its source it gives, and how.

Conditions wait as they were bound, and are rewritten when the scan is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.language.column_names import another
from engine.language.query import Scan
from engine.language.rules import rewrite
from engine.language.sampling import kept
from engine.model.expressions import Expression, columns_of, conjunction
from engine.model.sample import Sample
from engine.model.source import Stream
from engine.model.types import BOOLEAN, TIMESTAMP, Type
from engine.windows.assignment import WINDOW_COLUMNS, Assignment, Hop
from engine.windows.clauses import UNBOUNDED, RowWindow, TimeWindow, Window


@dataclass(frozen=True, slots=True)
class BoundScan:
    """A scan of one source; fields are as of :class:`engine.language.query.Scan`."""

    stream: Stream
    # What its rows must satisfy, all of it, not yet rewritten.
    where: tuple[Expression, ...] = ()
    window: Window = UNBOUNDED
    assignment: Assignment | None = None
    history: bool = False
    # Its comparison is in ``where``, or in the window.
    sample: Sample | None = None
    window_down_to_ms: int | None = None

    def columns(self) -> list[tuple[str, Type]]:
        """The names and types that it gives."""
        found: list[tuple[str, Type]] = [(field.name, field.type) for field in self.stream.schema]
        if self.assignment is not None:
            found += [(name, TIMESTAMP) for name in WINDOW_COLUMNS]
        if self.history:
            found.append((another("deleted", {name for name, _ in found}), BOOLEAN))
        return found

    def narrowed(self, condition: Expression) -> BoundScan:
        """Only rows where a condition that it :meth:`takes` is TRUE."""
        return replace(self, where=(*self.where, condition))

    def takes(self, condition: Expression) -> bool:
        """Whether rows may be left out by a condition before they are put into windows."""
        if self.assignment is None:
            return True
        if not isinstance(self.assignment, Hop) or not isinstance(self.window, TimeWindow):
            return False
        own = len(self.stream.schema)
        return all(column.index < own for column in columns_of(condition))

    def windowed(self, window: Window, down_to_ms: int | None) -> BoundScan:
        """With a window; what was selected before a window of rows counts for it."""
        if isinstance(window, RowWindow) and self.where and self.assignment is None:
            parts = [*self.where, *(() if window.filter is None else (window.filter,))]
            return replace(self, window=replace(window, filter=rewrite(conjunction(parts))), where=())
        return replace(self, window=window, window_down_to_ms=down_to_ms)

    def sampled(self, sample: Sample) -> BoundScan:
        """With a sample of its rows."""
        condition = kept(sample, self.stream)
        where = self.where if condition is None else (condition, *self.where)
        return replace(self, sample=sample, where=where)

    def versions(self) -> BoundScan:
        """All versions of the rows of a table, whatever its conditions."""
        return replace(self, where=(), history=True)

    def made(self) -> Scan:
        """The scan of a query."""
        return Scan(
            self.stream.name,
            self.window,
            rewrite(conjunction(self.where)) if self.where else None,
            self.assignment,
            self.history,
            self.sample,
            self.window_down_to_ms,
        )
