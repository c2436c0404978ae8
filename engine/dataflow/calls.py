"""What the calls of a GROUP BY are made of, besides plain sums (:mod:`engine.dataflow.totals`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.algebra.aggregate.stage import AggregateCall
from engine.dataflow.distinct_sums import DistinctSums
from engine.dataflow.extremes import Extremes
from engine.dataflow.part import Part
from engine.dataflow.recomputed import Recomputed
from engine.language.aggregates import Statistic
from engine.model.capacities import USUAL, Capacities
from engine.model.expressions import Expression

_BY_VALUE = {Statistic.LEAST: False, Statistic.GREATEST: True}
_BY_ROW = {Statistic.FIRST: False, Statistic.LAST: True}
"""The greatest, or the least?"""


def is_recomputed(call: AggregateCall) -> bool:
    """Whether a call is made again from all rows of a group when one enters or leaves."""
    statistic = call.aggregate.statistic
    if call.order or len(call.of_rows) > 1:
        return True
    if call.aggregate.invertible or statistic in _BY_ROW:
        return False
    return statistic not in _BY_VALUE


@dataclass(slots=True)
class _Ends:
    """The places of the calls that want either end of an order."""

    least: list[int] = field(default_factory=list)
    greatest: list[int] = field(default_factory=list)


def parts_of(calls: Sequence[AggregateCall], id_words: int, capacities: Capacities = USUAL) -> list[Part]:
    """The parts of the calls of groups that are no plain sums. id_words: how many the ids of rows have."""
    distinct: dict[tuple[Expression, Expression | None], list[int]] = {}
    extremes: dict[tuple[Expression, Expression | None, int], _Ends] = {}
    again: list[int] = []
    for place, call in enumerate(calls):
        statistic = call.aggregate.statistic
        if is_recomputed(call):
            again.append(place)
        elif statistic in _BY_VALUE or statistic in _BY_ROW:
            words = id_words if statistic in _BY_ROW else 0
            ends = extremes.setdefault((call.arguments[0], call.filter, words), _Ends())
            (ends.greatest if (_BY_VALUE | _BY_ROW)[statistic] else ends.least).append(place)
        elif call.distinct:
            distinct.setdefault((call.arguments[0], call.filter), []).append(place)
    found: list[Part] = [
        DistinctSums(places, [calls[place] for place in places], capacities) for places in distinct.values()
    ]
    found += [
        Extremes(ends.least, ends.greatest, argument, condition, words, capacities)
        for (argument, condition, words), ends in extremes.items()
    ]
    if again:
        found.append(Recomputed(again, [calls[place] for place in again], id_words, capacities))
    return found
