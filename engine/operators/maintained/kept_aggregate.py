"""A query's answers from kept partials: the rows at the two ends of a window, whole blocks and nodes between.

What :mod:`engine.operators.aggregate` gives for the same rows. O(rows of two blocks + nodes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.kernels import aggregates
from engine.kernels.window_totals import window_parts
from engine.language.aggregates import Statistic
from engine.language.query import Scan
from engine.model.batch import Column, Int64Array
from engine.model.expressions import Expression
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.operators.aggregates import moments, totals
from engine.operators.aggregates.members import Members, select
from engine.operators.gather import rows_at
from engine.operators.keys import order_keys, with_one_zero
from engine.operators.maintained.bank import BLOCK, FAN, Bank, Partials
from engine.operators.maintained.doubles import DoubleSums, WindowSums
from engine.operators.maintained.measure import Measure, measures_of_call
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt

Argument = tuple[tuple[Expression, ...], Expression | None]
"""What an aggregate is of, nothing of COUNT(*), and its filter."""


class KeptAggregate:
    """The first stage of a query, an aggregate without keys. Immutable; for any number of readers."""

    __slots__ = ("_banks", "_calls", "_counts_rows", "_slot", "_word")

    def __init__(self, stage: Aggregate, slot: int, banks: Mapping[Measure, Bank]) -> None:
        """banks: those of all its measures, in which the slot takes part."""
        self._word, self._slot = slot >> 6, slot & 63
        self._banks: dict[Measure, Bank] = {}
        self._calls: list[tuple[AggregateCall, Argument, dict[Statistic, Bank]]] = []
        for call in stage.calls:
            measures = list(measures_of_call(call))
            self._banks.update((measure, banks[measure]) for measure in measures)
            of = call.of_rows, call.filter
            self._calls.append((call, of, {measure.statistic: banks[measure] for measure in measures}))
        self._counts_rows = all(of == ((), None) for _, of, _ in self._calls)

    def relation(self, scan: Scan, scan_at: ScanAt) -> tuple[Relation, int, int | None] | None:
        """One row, errors, and from when the window is complete; None where the rows are the better way: the
        window holds no whole block, or less is kept than it asks for.

        scan: with the query's predicate and any window that is a range of ordinals.
        """
        window = scan_at.window(scan)
        low, high = -(-window.start // BLOCK), window.stop // BLOCK
        read: dict[Bank, Partials] = {}
        for bank in self._banks.values():
            known = read[bank] = bank.partials
            place = known.places.get(self._word)
            if place is None or not int(known.masks[place]) >> self._slot & 1:
                return None
            low = max(low, known.first, -(-int(known.since[place, self._slot]) // BLOCK))
            high = min(high, known.stop)
        if low >= high:
            return None
        up, down = -(-low // FAN), high // FAN
        inner = np.array([low, up, max(up, down), high], np.int64)
        if self._counts_rows:
            (known,) = read.values()
            at = known.places[self._word], self._slot, known.first
            n = int(window_parts(known.blocks[0], known.above[0], *at, inner).sum())
            n += scan_at.count(scan.predicate, window.start, low * BLOCK)
            n += scan_at.count(scan.predicate, high * BLOCK, window.stop)
            counted = Column(BIGINT, np.array([n]))
            return Relation([counted for _ in self._calls], 1), 0, window.complete_from_ms
        ends = [
            rows_at(scan_at.rows.schema, scan_at.matching(scan.predicate, *end) if end[0] < end[1] else [])
            for end in ((window.start, low * BLOCK), (high * BLOCK, window.stop))
        ]
        reading = _Reading(self._word, self._slot, inner, read, ends)
        columns, errors = [], 0
        for call, of, banks in self._calls:
            column, wrong = reading.column(call, of, banks)
            columns.append(column)
            errors += wrong
        return Relation(columns, 1), errors, window.complete_from_ms


@dataclass(slots=True)
class _Reading:
    """One slot's results over one window. inner: as :mod:`engine.kernels.window_totals` takes it; ends: the
    matching rows before and behind the whole blocks.
    """

    word: int
    slot: int
    inner: Int64Array
    partials: Mapping[Bank, Partials]
    ends: list[Relation]
    _of: Argument | None = None
    _members: tuple[list[Members], int] | None = None

    def column(
        self, call: AggregateCall, of: Argument, banks: Mapping[Statistic, Bank]
    ) -> tuple[Column, int]:
        """The value of a call, one row, and how many errors it met."""
        if self._members is None or (self._of is not of and self._of != of):
            selected = [select(end, *of) for end in self.ends]
            met = sum(wrong for _, wrong in selected)
            self._of, self._members = of, ([each for each, _ in selected], met)
        members, errors = self._members
        if (bank := banks.get(Statistic.ERRORS)) is not None:
            errors += int(self._parts(self.partials[bank], 0).sum())
        count = sum(each.m for each in members)
        count += int(self._parts(self.partials[banks[Statistic.COUNT]], 0).sum())
        if (bank := banks.get(Statistic.SUM)) is not None:
            column, wrong = self._total(bank, members, count, call)
            return column, errors + wrong
        if (bank := banks.get(Statistic.SPREAD)) is not None:
            variance = self._sums(bank, members, squares=True).variance(count, moments.less(call))
            return moments.finished(variance, np.array([count]), call), errors
        if (bank := banks.get(Statistic.LEAST)) is not None:
            return self._extreme(bank, members, count, call, negate=False), errors
        if (bank := banks.get(Statistic.GREATEST)) is not None:
            return self._extreme(bank, members, count, call, negate=True), errors
        return Column(BIGINT, np.array([count])), errors

    def _parts(self, partials: Partials, array: int) -> npt.NDArray[Any]:
        """What one array of a state has of the inner nodes, in order."""
        blocks, above = partials.blocks[array], partials.above[array]
        return window_parts(blocks, above, partials.places[self.word], self.slot, partials.first, self.inner)

    def _total(
        self, bank: Bank, members: list[Members], count: int, call: AggregateCall
    ) -> tuple[Column, int]:
        known, counts = self.partials[bank], np.array([count])
        type_ = members[0].values.type
        if type_.kind is Kind.DOUBLE:
            sums = self._sums(bank, members, squares=False)
            values = sums.mean(count) if call.aggregate.is_mean else sums.total()
            return Column(DOUBLE, values, None if count else np.zeros(1, np.bool_)), 0
        ends = np.concatenate([each.values.values for each in members]).astype(np.int64, copy=False)
        high, low = np.empty(1, np.int64), np.empty(1, np.int64)
        aggregates.sums(ends, np.array([0, len(ends)]), high, low)
        low += self._parts(known, 1).sum()
        high += self._parts(known, 0).sum() + (low >> aggregates.LOW_BITS)
        low &= aggregates.LOW_MASK
        if call.aggregate.is_mean:
            means = totals.quotients(high, low, counts, type_.scale)
            return Column(DOUBLE, means, None if count else np.zeros(1, np.bool_)), 0
        return totals.fitted(high, low, counts, call.type)

    def _sums(self, bank: Bank, members: list[Members], *, squares: bool) -> WindowSums:
        known, sums = self.partials[bank], WindowSums()
        assert isinstance(known.kind, DoubleSums)
        place = known.places[self.word]
        sums.add_blocks(known.kind, known.blocks, known.above, place, self.slot, known.first, self.inner)
        for each in members:
            sums.add(moments.doubles(each.values), squares=squares)
        return sums

    def _extreme(
        self, bank: Bank, members: list[Members], count: int, call: AggregateCall, negate: bool
    ) -> Column:
        """The least of the values at the ends and the results of inner nodes; ``negate``: the greatest."""
        if not count:
            return Column(call.type, np.zeros(1, call.type.dtype), np.zeros(1, np.bool_))
        inner = self._parts(self.partials[bank], 0)
        before, behind = (each.values.values.astype(inner.dtype, copy=False) for each in members)
        values = np.concatenate([before, inner, behind])
        keys = order_keys(Column(DOUBLE if values.dtype == np.float64 else BIGINT, values))
        place = np.argmin(~keys if negate else keys)
        return with_one_zero(Column(call.type, values[place : place + 1].astype(call.type.dtype)))
