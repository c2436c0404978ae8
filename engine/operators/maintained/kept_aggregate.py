"""A query's answers from kept partials: the rows at the two ends of a window, whole blocks and nodes between.

To the bit what :mod:`engine.operators.aggregate` gives for the same rows. O(rows of two blocks + nodes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.kernels import aggregates, folds
from engine.language.expressions import Expression
from engine.language.query import Aggregate, AggregateCall, Scan
from engine.model.batch import Column, Int64Array
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.operators.aggregates import moments, totals
from engine.operators.aggregates.members import Members, select
from engine.operators.gather import rows_at
from engine.operators.keys import order_keys
from engine.operators.maintained.accumulator import State
from engine.operators.maintained.bank import BLOCK, FAN, Bank, Partials
from engine.operators.maintained.measure import Measure, Statistic, measures_of_call
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt

Argument = tuple[Expression | None, Expression | None]
"""What an aggregate is of, and its filter."""

Doubles = npt.NDArray[np.float64]
Three = tuple[Doubles, Doubles, Doubles]


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
            of = call.arguments[0] if call.arguments else None, call.filter
            self._calls.append((call, of, {measure.statistic: banks[measure] for measure in measures}))
        self._counts_rows = all(of == (None, None) for _, of, _ in self._calls)

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
            n = folds.window_total(
                known.blocks[0], known.above[0], known.places[self._word], self._slot, known.first, inner
            )
            n += scan_at.count(scan.predicate, window.start, low * BLOCK)
            n += scan_at.count(scan.predicate, high * BLOCK, window.stop)
            counted = Column(BIGINT, np.array([n]))
            return Relation([counted for _ in self._calls], 1), 0, window.complete_from_ms
        places: list[Any] = []
        if window.start < low * BLOCK:
            places += scan_at.matching(scan.predicate, window.start, low * BLOCK)
        if high * BLOCK < window.stop:
            places += scan_at.matching(scan.predicate, high * BLOCK, window.stop)
        ends = rows_at(scan_at.rows.schema, places)
        reading = _Reading(self._word, self._slot, inner, read, ends)
        columns, errors = [], 0
        for call, of, banks in self._calls:
            column, wrong = reading.column(call, of, banks)
            columns.append(column)
            errors += wrong
        return Relation(columns, 1), errors, window.complete_from_ms


@dataclass(slots=True)
class _Reading:
    """One slot's results over one window. inner: as :func:`engine.kernels.folds.window_sum` takes it; ends:
    the matching rows before and behind the whole blocks.
    """

    word: int
    slot: int
    inner: Int64Array
    partials: Mapping[Bank, Partials]
    ends: Relation
    _of: Argument | None = None
    _members: tuple[Members, int] | None = None

    def column(
        self, call: AggregateCall, of: Argument, banks: Mapping[Statistic, Bank]
    ) -> tuple[Column, int]:
        """The value of a call, one row, and how many errors it met."""
        if self._members is None or (self._of is not of and self._of != of):
            self._of, self._members = of, select(self.ends, *of)
        members, errors = self._members
        if (bank := banks.get(Statistic.ERRORS)) is not None:
            errors += self._counted(bank)
        if (bank := banks.get(Statistic.SPREAD)) is not None:
            return self._spread(bank, members, call), errors
        counts = np.array([self._counted(banks[Statistic.COUNT]) + members.m])
        if (bank := banks.get(Statistic.SUM)) is not None:
            column, wrong = self._total(bank, members, counts, call)
            return column, errors + wrong
        if (bank := banks.get(Statistic.LEAST)) is not None:
            return self._extreme(bank, members, counts, call, negate=False), errors
        if (bank := banks.get(Statistic.GREATEST)) is not None:
            return self._extreme(bank, members, counts, call, negate=True), errors
        return Column(BIGINT, counts), errors

    def _total_of(self, partials: Partials, part: int) -> int:
        """The total of one array of whole numbers over the inner nodes."""
        place = partials.places[self.word]
        blocks, above = partials.blocks[part], partials.above[part]
        return folds.window_total(blocks, above, place, self.slot, partials.first, self.inner)

    def _counted(self, bank: Bank) -> int:
        return self._total_of(self.partials[bank], 0)

    def _total(
        self, bank: Bank, members: Members, counts: Int64Array, call: AggregateCall
    ) -> tuple[Column, int]:
        known = self.partials[bank]
        type_ = members.values.type
        some = None if counts[0] else np.zeros(1, np.bool_)
        if type_.kind is Kind.DOUBLE:
            values, place = members.values.values, known.places[self.word]
            total = np.array(
                [
                    folds.window_sum(
                        known.blocks[0],
                        known.above[0],
                        place,
                        self.slot,
                        known.first,
                        self.inner,
                        members.ordinals(),
                        values,
                    )
                ]
            )
            return Column(DOUBLE, totals.divided(total, counts) if call.function == "AVG" else total, some), 0
        high, low = np.empty(1, np.int64), np.empty(1, np.int64)
        values = members.values.values.astype(np.int64, copy=False)
        aggregates.sums(values, np.array([0, len(values)]), high, low)
        low += self._total_of(known, 1)
        high += self._total_of(known, 0) + (low >> aggregates.LOW_BITS)
        low &= aggregates.LOW_MASK
        if call.function == "AVG":
            return Column(DOUBLE, totals.quotients(high, low, counts, type_.scale), some), 0
        return totals.fitted(high, low, counts, call.type)

    def _spread(self, bank: Bank, members: Members, call: AggregateCall) -> Column:
        known = self.partials[bank]
        count, _, squares = folds.window_moments(
            *_three(known.blocks, known.above),
            known.places[self.word],
            self.slot,
            known.first,
            self.inner,
            members.ordinals(),
            moments.doubles(members),
        )
        return moments.finished(np.array([squares]), np.array([int(count)]), call)

    def _extreme(
        self, bank: Bank, members: Members, counts: Int64Array, call: AggregateCall, negate: bool
    ) -> Column:
        """Of values at the ends and the results of inner nodes, in order, the first least or greatest."""
        if not counts[0]:
            return Column(call.type, np.zeros(1, call.type.dtype), np.zeros(1, np.bool_))
        inner = self._inner_values(self.partials[bank])
        cut = int(members.ordinals().searchsorted(self.inner[0] * BLOCK))
        ends = members.values.values.astype(inner.dtype, copy=False)
        values = np.concatenate([ends[:cut], inner, ends[cut:]])
        keys = order_keys(Column(DOUBLE if values.dtype == np.float64 else BIGINT, values))
        place = np.argmin(~keys if negate else keys)
        return Column(call.type, values[place : place + 1].astype(call.type.dtype))

    def _inner_values(self, partials: Partials) -> npt.NDArray[Any]:
        """What the inner nodes hold, in order."""
        low, up, down, high = self.inner.tolist()
        first, top, place = partials.first, partials.first // FAN, partials.places[self.word]
        own = partials.blocks[0][place, :, self.slot]
        if up == down:
            return own[low - first : high - first]
        nodes = partials.above[0][place, up - top : down - top, self.slot]
        return np.concatenate(
            [own[low - first : up * FAN - first], nodes, own[down * FAN - first : high - first]]
        )


def _three(blocks: State, above: State) -> tuple[Three, Three]:
    """Counts, means and squares."""
    return (blocks[0], blocks[1], blocks[2]), (above[0], above[1], above[2])
