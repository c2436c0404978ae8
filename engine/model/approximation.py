"""What of an answer is not exact, and why: the tags that every snapshot, feed message and status carries.

An answer without a tag is exact. A tag says what was done (a sample, a shorter window, a compressed synopsis,
rows shed, a constraint that did not hold, rows that a preference left for later), where, on whose word, how
much, and from which position on. A join and a view have the tags of all that they read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from engine.model.step import Position

ApproximationKind = Literal["sample", "window", "synopsis", "shed", "constraint", "preference"]
Origin = Literal["declared", "static", "dynamic"]


@dataclass(frozen=True, slots=True)
class Expected:
    """The precision that is expected of an answer.

    fp: share of its rows that are wrong; fn: share of the rows due that are missing; both long-run means in
    [0, 1]. error: half the width of the 95 % interval of an aggregate, relative to its value. fn_changes: as
    fn, of the rows that come and leave, where that differs. rank_error: of an approximate quantile, by how
    large a share of the values it is off in 95 of 100 cases. None: nothing is known.
    """

    fp: float | None = None
    fn: float | None = None
    error: float | None = None
    fn_changes: float | None = None
    rank_error: float | None = None

    def as_dict(self) -> dict[str, float]:
        """The figures that are known, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


NOT_KNOWN = Expected()


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a query with a preference lacked time for, as far as it concerns the rows of its windows."""

    # Entries of its promising set that are not, or not wholly, visited.
    entries_left: int
    # Entries that never were in the set, since it was full, or went before they were visited.
    entries_cut: int
    # Stored rows that are still to be visited, one unit of work each.
    units_short: int

    def as_dict(self) -> dict[str, int]:
        """As JSON has it."""
        return {
            "entries_left": self.entries_left,
            "entries_cut": self.entries_cut,
            "units_short": self.units_short,
        }


INTERVALS_MAX = 8
"""The most intervals of one tag: they all have to fit into a header."""


def few_intervals(intervals: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """At most INTERVALS_MAX intervals, ascending, that cover the instants of these: where there are more,
    those with the least gap between them become one, gap included.
    """
    found = sorted(intervals)
    while len(found) > INTERVALS_MAX:
        gaps = [later[0] - before[1] for before, later in pairwise(found)]
        at = gaps.index(min(gaps))
        found[at : at + 2] = [(found[at][0], max(found[at][1], found[at + 1][1]))]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows of a source that are not there. due: as many would be within the reach of the windows. intervals:
    first and last instants, ms since 1970, of what is missing of them.
    """

    rows: int
    due: int
    intervals: tuple[tuple[int, int], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        found: dict[str, Any] = {"rows_missing": self.rows, "rows_due": self.due}
        return found | ({"intervals": [list(one) for one in self.intervals]} if self.intervals else {})


@dataclass(frozen=True, slots=True)
class Approximation:
    """One tag.

    where: the source, or the operator as EXPLAIN names it. origin: ``declared`` by the text itself,
    ``static`` at registration within the tolerance, ``dynamic`` while it runs. amount: what is given, in
    ``unit`` (percent, ms, bytes, rows); asked: what exactness would take, None where that has no number.
    since: the position from which on it holds; None: from the beginning. contiguous: rows next to each other
    are missing, so that what is left is no fair sample. unscaled: columns of aggregates over a sample that
    are what they are over its rows, since nothing tells what the others would make of them. visited: columns
    of an answer of one row that estimates of rows not visited yet are a part of, with what they are without.
    missing: of ``shed``, which rows, as counted.
    """

    kind: ApproximationKind
    where: str
    origin: Origin
    amount: float
    unit: str
    asked: float | None = None
    since: Position | None = None
    expected: Expected = NOT_KNOWN
    contiguous: bool = False
    unscaled: tuple[str, ...] = ()
    unfinished: Unfinished | None = None
    visited: tuple[tuple[str, float | None], ...] = ()
    missing: Missing | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        found: dict[str, Any] = {
            "kind": self.kind,
            "where": self.where,
            "origin": self.origin,
            "amount": self.amount,
            "unit": self.unit,
        }
        if self.asked is not None:
            found["asked"] = self.asked
        if self.since is not None:
            found["since"] = str(self.since)
        if expected := self.expected.as_dict():
            found["expected"] = expected
        if self.contiguous:
            found["contiguous"] = True
        if self.unscaled:
            found["unscaled"] = list(self.unscaled)
        if self.missing is not None:
            found |= self.missing.as_dict()
        if self.unfinished is not None:
            found |= self.unfinished.as_dict()
        if self.visited:
            found["visited"] = dict(self.visited)
        return found
