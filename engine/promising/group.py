"""Promising groups: queries with a preference that share a promising set, and what an engine asks of them.

A group stands beside the ordinary paths of its queries: it sees the rows that became visible, keeps what is
promising in them as entries of a promising set, and visits stored rows in the order of its preference until
the units that it is given are spent. What it found is all that the answers of its queries are made of. One
unit is one stored row that is visited; of a join, for one row that looks for partners there.

The order of calls is that of steps: ``arrive`` after rows entered and their summaries took them in, then
``spend``, at any number of times; ``drop_below`` when retention lets rows go. A group reads no clock and
nothing random, so the same calls give the same finds; and cutting the units of one ``spend`` into several,
between the same arrivals, changes nothing.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries: Stream Query Processing using Promising Tuples*,
sections 2 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, Protocol

from engine.joins.shape import JoinEdge
from engine.language.preference import Preference, PreferenceOrder, Priority, PriorityForm
from engine.language.query import Query
from engine.model.source import SourceName
from engine.operators.scan import ScanAt
from engine.promising.found import FoundPairs, FoundRows

GroupKind = Literal["join", "selection"]


@dataclass(frozen=True, slots=True)
class Member:
    """A query of a group. query: bound, with its preference, in which its options took effect; weight > 0."""

    query_id: str
    query: Query
    weight: float = 1.0

    @property
    def preference(self) -> Preference:
        """The preference of its query."""
        assert self.query.preference is not None
        return self.query.preference


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What queries have in common that share a group; their windows and constants may differ."""

    kind: GroupKind
    # The sources of the scans, in the order of FROM; one perhaps more than once.
    sources: tuple[SourceName, ...]
    # By what a join of two inputs is made; None of a selection.
    edge: JoinEdge | None
    # One a scan.
    priorities: tuple[Priority, ...]
    order: PreferenceOrder
    # In (0, 1].
    fade: float
    form: PriorityForm

    @classmethod
    def of(
        cls, kind: GroupKind, sources: tuple[SourceName, ...], edge: JoinEdge | None, preference: Preference
    ) -> GroupKey:
        """The key of a query with this preference."""
        return cls(
            kind, sources, edge, preference.priorities, preference.order, preference.fade, preference.form
        )


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """What a group did since it began, and what it has before it.

    Always ``entries == done + entries_left + cut + lapsed`` and
    ``rows == visited + short + rows_cut + rows_lapsed``. Of a join, a stored row counts once for each row
    that looks for partners there.
    """

    # Entries that were put into the promising set.
    entries: int = 0
    # Entries whose rows were all visited.
    done: int = 0
    # Entries that have rows to be visited.
    entries_left: int = 0
    # Entries that were dropped because the set was full.
    cut: int = 0
    # Entries whose rows, or all that look for them, left the windows before they were visited.
    lapsed: int = 0
    # Stored rows that all entries led to.
    rows: int = 0
    # Stored rows that were visited; each took a unit.
    visited: int = 0
    # Stored rows that are still to be visited: the units that are short.
    short: int = 0
    # Stored rows of the entries that were cut.
    rows_cut: int = 0
    # Stored rows that left the windows, or all that looked for them, before they were visited.
    rows_lapsed: int = 0
    # Entries that the pyramid of a summary ruled out; they are visited last.
    pruned: int = 0
    # Entries whose priority was NaN, NULL or an error; they are visited after others.
    unranked: int = 0
    # Pairs, or rows, that were found.
    hits: int = 0
    # How many more are estimated to be found.
    estimate_left: float = 0.0
    # Units that were spent.
    spent: int = 0

    def with_left(self, entries_left: int, short: int, estimate_left: float) -> GroupCounts:
        """These counts with what the group has left to visit now."""
        return replace(self, entries_left=entries_left, short=short, estimate_left=estimate_left)


def total_counts(counts: Iterable[GroupCounts]) -> GroupCounts:
    """The sum of the counts of several groups."""
    names = [field.name for field in fields(GroupCounts)]
    each = list(counts)
    return GroupCounts(*(sum(getattr(one, name) for one in each) for name in names))


class RunningCounts:
    """Counts that go on; those of what is left are not among them."""

    def __init__(self, counts: GroupCounts | None = None) -> None:
        """counts: those to go on from."""
        self._counted = asdict(counts or GroupCounts())

    def count(self, **more: int) -> None:
        """Some have become more."""
        for name, by in more.items():
            self._counted[name] += by

    def counts(self) -> GroupCounts:
        """As they stand."""
        return GroupCounts(**self._counted)


class PromisingGroup(Protocol):
    """Queries that share a promising set. ``at``: how each source stands, by its name."""

    @property
    def key(self) -> GroupKey: ...

    @property
    def members(self) -> Mapping[str, Member]: ...

    @property
    def weight(self) -> float:
        """The sum of the members' weights."""
        ...

    @property
    def left(self) -> bool:
        """Whether there is anything to spend units on."""
        ...

    @property
    def counts(self) -> GroupCounts: ...

    @property
    def nbytes(self) -> int:
        """Bytes of the set and of what was found."""
        ...

    def add(self, member: Member, at: Mapping[SourceName, ScanAt]) -> None:
        """A query comes; it sees all retained rows. To be followed by :meth:`arrive`."""
        ...

    def remove(self, query_id: str) -> None:
        """A query goes."""
        ...

    def reweigh(self, query_id: str, weight: float) -> None:
        """A query has another weight."""
        ...

    def arrive(self, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        """Take in the rows that became visible since, and let go of what left all windows at NOW.

        The summaries of the sources have taken in the same rows and are at NOW.
        """
        ...

    def spend(self, units: int, at: Mapping[SourceName, ScanAt]) -> int:
        """Visit rows; returns the units that were used: all of them, or less and nothing is left."""
        ...

    def found(self, query_id: str) -> FoundRows | FoundPairs:
        """What was found for a query, perhaps for others too; immutable."""
        ...

    def estimate_left(self, query_id: str) -> float:
        """How many more of its matches in its windows the summaries estimate."""
        ...

    def is_whole(self, query_id: str) -> bool:
        """Whether nothing is left, or was cut, that its windows hold: its answer is then the exact one."""
        ...

    def drop_below(self, source: SourceName, ordinal: int) -> None:
        """Rows of a source below this ordinal are gone."""
        ...

    def forget(self) -> None:
        """The rows of a source begin elsewhere, or a summary was made anew: begin anew at the next
        :meth:`arrive`. What was found goes, too.
        """
        ...

    def _check(self) -> None:
        """Every invariant."""
        ...

    def state(self) -> object:
        """All that the next calls depend on besides rows, members and summaries: arrays and numbers."""
        ...


def expected_precision(found: int, left: float) -> float:
    """The share of an answer that was found: found / (found + estimated left); 1 where there is nothing."""
    return found / (found + left) if found else float(left <= 0.0)
