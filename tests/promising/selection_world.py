"""A stream with a summary and a group of selections over it, without an engine; and what a plain evaluation
of every row gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from engine.algebra.project.stage import Output, Project
from engine.language.evaluate import truth
from engine.language.preference import ATTRIBUTE, COUNT, Preference, PreferenceOrder, Priority, PriorityForm
from engine.language.query import Query, Scan
from engine.model.batch import Batch, Column
from engine.model.capacities import SMALLEST
from engine.model.expressions import Column as ColumnOf
from engine.model.expressions import Expression
from engine.model.lazy_columns import readable
from engine.model.limits import Limits
from engine.model.source import Field, Schema, SourceName
from engine.model.state_tree import as_tree, of_tree
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import BIGINT, DOUBLE, STRING, TIMESTAMP
from engine.operators.scan import ScanAt
from engine.promising.group import GroupKey, Member
from engine.promising.selections import PromisingSelection, SelectionState
from engine.stems.data_stem import DataStem
from engine.stems.query_stem import QueryStem
from engine.summaries.summary import Summary
from engine.windows.clauses import NOW, UNBOUNDED, Instant, TimeWindow

NAME = SourceName("s")
SCHEMA = Schema((Field("k", BIGINT), Field("d", DOUBLE), Field("t", STRING), Field("ts", TIMESTAMP)))
K, D, T = (ColumnOf(place, SCHEMA.field(place).name, SCHEMA.field(place).type) for place in range(3))
ATTRIBUTES = {"k": K, "d": D, "t": T}

Row = tuple[int | None, float | None, str | None]


def batch(rows: Sequence[Row], stamps: Sequence[int], first: int) -> Batch:
    """Rows of SCHEMA; offsets count from ``first``."""
    columns = []
    for place, each in enumerate(zip(*rows, strict=True) if rows else ((), (), ())):
        type_ = SCHEMA.field(place).type
        columns.append(Column.from_arrow(type_, pa.array(each, type_.arrow, from_pandas=False)))
    timestamp = np.array(stamps, np.int64)
    offset = np.arange(first, first + len(rows))
    columns.append(Column(TIMESTAMP, timestamp))
    return Batch(SCHEMA, tuple(columns), np.zeros(len(rows), np.int32), offset, timestamp)


def definition(
    attribute: str, granularity_ms: int, rate: int, depth: int, **settings: Any
) -> SummaryDefinition:
    """The definition of a summary of the stream."""
    chosen = SummarySettings(**settings)
    return SummaryDefinition("sum", NAME, attribute, granularity_ms, rate, depth, chosen)


def priority_of(attribute: str, expression: Expression | None = None) -> Priority:
    """Estimate.Count of the attribute, or another expression."""
    column = ATTRIBUTES[attribute]
    return Priority(0, NAME, "sum", column.index, expression or ColumnOf(COUNT, "count", BIGINT))


VALUE = {name: ColumnOf(ATTRIBUTE, name, column.type) for name, column in ATTRIBUTES.items()}


def window(ms: int | None) -> TimeWindow:
    """[RANGE ms], or all."""
    return UNBOUNDED if ms is None else TimeWindow(Instant(relative=True, ms=-ms), NOW)


@dataclass
class World:
    """Rows enter, NOW is the last row's instant, and the group is told as an engine would."""

    summarised: SummaryDefinition
    order: PreferenceOrder = "desc"
    form: PriorityForm = "count"
    fade: float = 1.0
    expression: Expression | None = None
    entries_max: int = 1_000_000
    stamps: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    predicates: dict[str, tuple[Expression | None, int | None]] = field(default_factory=dict)
    now_ms: int | None = None

    def __post_init__(self) -> None:
        self.data = DataStem(SCHEMA, QueryStem(SCHEMA))
        attribute = self.summarised.attribute
        self.summary = Summary(self.summarised, ATTRIBUTES[attribute].type, SMALLEST)
        self.priority = priority_of(attribute, self.expression)
        self.group = PromisingSelection(
            GroupKey.of("selection", (NAME,), None, self.preference(None)),
            {"sum": self.summary},
            Limits(promising_entries_max=self.entries_max),
        )

    def preference(self, window_ms: int | None) -> Preference:
        return Preference(self.order, (self.priority,), self.fade, self.form, window_ms)

    @property
    def at(self) -> dict[SourceName, ScanAt]:
        return {NAME: ScanAt.now(self.data.rows(), self.now_ms, None)}

    def member(
        self, name: str, predicate: Expression | None, window_ms: int | None, weight: float = 1.0
    ) -> Member:
        stage = Project((Output("k", K),))
        scan = Scan(NAME, window(window_ms), predicate)
        return Member(name, Query("", scan, (stage,), preference=self.preference(window_ms)), weight)

    def add(
        self, name: str, predicate: Expression | None, window_ms: int | None, weight: float = 1.0
    ) -> None:
        self.group.add(self.member(name, predicate, window_ms, weight), self.at)
        self.predicates[name] = predicate, window_ms
        self.group.arrive(self.at, self.now_ms)

    def remove(self, name: str) -> None:
        self.group.remove(name)
        del self.predicates[name]

    def feed(self, rows: Sequence[Row], stamps: Sequence[int]) -> None:
        """Rows enter in one step, in order."""
        first = len(self.rows)
        entering = self.data.coded(batch(rows, stamps, first))
        self.data.append(entering)
        self.rows += rows
        self.stamps += stamps
        self.now_ms = stamps[-1] if stamps else self.now_ms
        column = SCHEMA.index(self.summarised.attribute)
        assert column is not None
        self.summary.enter(entering.columns[column], entering.timestamp, first)
        assert self.now_ms is not None
        self.summary.advance(self.now_ms)
        self.group.arrive(self.at, self.now_ms)

    def restart(self) -> None:
        """The group comes back from its state as stored."""
        state = of_tree(SelectionState, deepcopy(as_tree(self.group.state())))
        members = list(self.group.members.values())
        self.group = PromisingSelection.restored(
            self.group.key,
            {"sum": self.summary},
            members,
            state,
            Limits(promising_entries_max=self.entries_max),
        )

    def retain(self, rows: int) -> None:
        """So many rows more are let go of."""
        base = min(self.data.base + rows, len(self.rows))
        self.data.drop_below(base)
        self.summary.drop_below(base)
        self.group.drop_below(NAME, base)

    def spend(self, units: int) -> int:
        return self.group.spend(units, self.at)

    def spend_all(self) -> None:
        """An unlimited grant."""
        self.spend(1 << 60)
        assert not self.group.left

    def accepted(self, name: str) -> np.ndarray:
        """int64: the ordinals in the window that the predicate accepts, row by row."""
        predicate, window_ms = self.predicates[name]
        where = np.arange(self.data.base, len(self.rows))
        if self.now_ms is None or not len(where):
            return where[:0]
        held = batch(self.rows[self.data.base :], self.stamps[self.data.base :], self.data.base)
        true = np.ones(len(held), np.bool_)
        if predicate is not None:
            true, _ = truth(predicate, readable(held), len(held))
        if window_ms is not None:
            true = true & (held.timestamp >= self.now_ms - window_ms)
        return where[true]

    def found(self, name: str) -> np.ndarray:
        """int64: what the group found, of the rows in the window."""
        found = self.group.found(name).rows
        _, window_ms = self.predicates[name]
        first = self.data.base
        if window_ms is not None and self.now_ms is not None:
            first = max(first, int(np.searchsorted(self.stamps, self.now_ms - window_ms)))
        return found[found >= first]
