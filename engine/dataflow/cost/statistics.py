"""What is known of the sources of a plan, by which its edges are estimated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt

from engine.language.query import Scan
from engine.model.source import SourceName

Place = int


@dataclass(frozen=True, slots=True)
class ValueSample:
    """Values of some columns in rows of a scan, evenly spread over its window. rows: how many were looked at;
    counts: in how many of them a value is, by its hash.
    """

    rows: int
    counts: Mapping[int, int]

    def distinct(self, rows: float) -> float:
        """How many values so many rows have: those met more than once, and of those met once as many more as
        the square root of the rows for each sampled one (the estimator GEE, which is within that factor).
        """
        if not self.rows:
            return 0.0
        once = sum(count == 1 for count in self.counts.values())
        often = len(self.counts) - once
        return min(max(rows, 0.0), often + once * sqrt(max(1.0, rows / self.rows)))

    def partners(self, other: ValueSample) -> float:
        """How large a share of all pairs of a row here and one of the other are equal."""
        if not self.rows or not other.rows:
            return 0.0
        found = other.counts
        equal = sum(count * found.get(value, 0) for value, count in self.counts.items())
        return equal / (self.rows * other.rows)

    def unevenness(self, other: ValueSample) -> float:
        """By how much more the partners scatter that these rows find there than those of values drawn at
        random: the variance of their number over the square of its mean, less what chance alone makes.
        """
        found = other.counts
        each = [(count, found[value]) for value, count in self.counts.items() if value in found]
        equal = sum(count * partners for count, partners in each)
        pairs = sum(count * partners * (partners - 1) for count, partners in each)
        return max(0.0, self.rows * pairs / equal**2 - 1.0) if equal else 0.0

    def shared_with(self, other: ValueSample) -> float:
        """The share of these rows whose value the other has too."""
        if not self.rows:
            return 0.0
        return sum(count for value, count in self.counts.items() if value in other.counts) / self.rows

    def without(self, other: ValueSample) -> ValueSample:
        """What is left if each row there takes one of its value away: of samples that are alike in size."""
        found = other.counts
        more = {value: count - found.get(value, 0) for value, count in self.counts.items()}
        left = {value: count for value, count in more.items() if count > 0}
        return ValueSample(sum(left.values()), left)

    def outside(self, other: ValueSample) -> ValueSample:
        """The rows whose value the other does not have."""
        left = {value: count for value, count in self.counts.items() if value not in other.counts}
        return ValueSample(sum(left.values()), left)

    def surplus(self, other: ValueSample) -> float:
        """By how much, over all values, more rows here have it than there, as a share of the rows here: of
        samples that are the whole windows.
        """
        return self.without(other).rows / self.rows if self.rows else 0.0


def _nothing(_scan: Scan, _places: tuple[Place, ...]) -> ValueSample | None:
    return None


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of the sources of a query."""

    rows_per_s: Mapping[SourceName, float]
    """Rows of each that come."""
    steps_per_s: Mapping[SourceName, float]
    """Steps that bring them: expiry is up to date at the end of each."""
    widths: Mapping[SourceName, int]
    """How many columns a scan of each gives."""
    held: Callable[[Scan], float]
    """How many rows a scan gives at present."""
    window: Callable[[Scan], float]
    """How many rows its window holds, those included that its predicate does not accept."""
    sample: Callable[[Scan, tuple[Place, ...]], ValueSample | None] = field(default=_nothing)
    """Values of columns of a scan; None: they are not known."""
