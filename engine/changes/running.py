"""GROUP BY of counts and exact sums, gone on with from step to step.

What is known of each group at the beginning of a way, and the rows that come and go on it, are enough to tell
the rest, and what will be known at its end. So a step costs O(groups + rows that move), hashing, and not the
rows of the window. Totals of whole numbers and decimals are exact, so that nothing depends on how they were
arrived at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.changes.lives import Input, Lives, Way
from engine.changes.memory import Remembered
from engine.changes.pieces import Pieces, Placed, cut
from engine.kernels import pieces as kernels
from engine.kernels.aggregates import LOW_BITS, LOW_MASK
from engine.language.expressions import Expression
from engine.language.query import Aggregate, AggregateCall, Stage
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.operators.aggregates import totals
from engine.operators.aggregates.members import select
from engine.operators.keys import alike, encode
from engine.operators.relation import Relation

GROUPS_MAX = 100_000
"""Of more groups none is gone on with, nor of those of a query that had as many."""

Argument = tuple[Expression | None, Expression | None]
"""What a call is of, and its filter."""


def runs_on(stage: Aggregate) -> bool:
    """Whether its values can be told from what they were and from rows that come and go. It gives rows in no
    order.
    """
    if any(key.type.kind is Kind.DOUBLE for key in stage.keys):  # which of two zeros
        return False
    return all(_adds_up(call) for call in stage.calls)


def _adds_up(call: AggregateCall) -> bool:
    if call.distinct or call.function not in ("COUNT", "SUM", "AVG"):
        return False
    return call.function == "COUNT" or call.arguments[0].type.kind is not Kind.DOUBLE


def gone_on(stage: Aggregate, of: Stage, below: Input, remembered: Remembered) -> Lives | None:
    """The rows of groups that change, in no order; None where there are too many groups. of: what is
    remembered is known by it.
    """
    known: Standing | str | None = remembered.get(of)
    if known is None:
        known = standing_of(stage, below.alive(), below.way)
    if isinstance(known, str) or len(known) > GROUPS_MAX:
        remembered.put(of, "too many")
        return None
    lives, after = run_on(stage, known, below.changed(), below.way)
    remembered.put(of, after)
    return lives


@dataclass(frozen=True, slots=True)
class Standing:
    """Groups at an instant.

    keys: a column each. sums: int64[statistics, groups], of the rows that are there: how many they are, then
    what :func:`_statistics` says.
    """

    keys: tuple[Column, ...]
    sums: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.sums.shape[1])


def standing_of(stage: Aggregate, rows: Lives, way: Way) -> Standing:
    """The groups at the beginning of a way. rows: all that are there on it."""
    there = rows.where(rows.begins <= way.since_ms).relation
    keys, _ = there.values_of(key.expression for key in stage.keys)
    codes, firsts = (
        encode(keys, len(there)) if keys else (np.zeros(len(there), np.int64), np.zeros(1, np.int64))
    )
    statistics = list(_statistics(stage, there))
    sums = np.zeros((len(statistics), len(firsts)), np.int64)
    for values, out in zip(statistics, sums, strict=True):
        kernels.add_by_group(values, codes, out)
    return Standing(tuple(_compact(key.take(firsts)) for key in keys), sums)


def run_on(stage: Aggregate, standing: Standing, moved: Lives, way: Way) -> tuple[Lives, Standing]:
    """The rows of groups that change, in no order, and the groups at the end. moved: the rows that come or
    go.
    """
    n = len(moved)
    keys, _ = moved.relation.values_of(key.expression for key in stage.keys)
    codes, firsts = encode(keys, n) if keys else (np.zeros(n, np.int64), np.zeros(1, np.int64))
    own = [key.take(firsts) for key in keys]
    places = _places(standing, own, len(firsts))
    known = places >= 0
    placed = cut(moved, codes, len(firsts), way)
    pieces = placed.pieces
    found = []
    for values, sums in zip(_statistics(stage, moved.relation), standing.sums, strict=True):
        before = np.where(known, sums[places], 0) if len(sums) else np.zeros(len(places), np.int64)
        found.append(_sums(values, placed, before))
    kept = np.flatnonzero(found[0] > 0) if stage.keys else np.arange(len(pieces))
    of_keys = np.repeat(np.arange(pieces.groups), np.diff(pieces.starts))[kept]
    columns = [key.take(of_keys) for key in own]
    columns += _values(stage, [sums[kept] for sums in found])
    lives = Lives(Relation(columns, len(kept)), pieces.begins[kept], pieces.ends[kept])
    return lives, _after(
        stage, standing, own, places, np.array([sums[pieces.starts[1:] - 1] for sums in found])
    )


# --- what is added up ---------------------------------------------------------------------------------


def _arguments(stage: Aggregate) -> dict[Argument, bool]:
    """What calls are over, each once, and whether its total is wanted."""
    found: dict[Argument, bool] = {}
    for call in stage.calls:
        argument = _argument(call)
        if argument != (None, None):
            found[argument] = found.get(argument, False) or call.function != "COUNT"
    return found


def _argument(call: AggregateCall) -> Argument:
    return call.arguments[0] if call.arguments else None, call.filter


def _statistics(stage: Aggregate, relation: Relation) -> Iterator[Int64Array]:
    """int64[n] each: 1; for each argument whether a row counts, and where totals are wanted its value in two
    limbs.
    """
    n = len(relation)
    yield np.ones(n, np.int64)
    for (argument, condition), totalled in _arguments(stage).items():
        members, _ = select(relation, argument, condition, False, np.arange(n), n)
        rows = members.codes
        counts = np.zeros(n, np.int64)
        counts[rows] = 1
        yield counts
        if totalled:
            values = np.zeros(n, np.int64)
            values[rows] = members.values.values
            yield values >> LOW_BITS
            yield values & LOW_MASK


def _values(stage: Aggregate, sums: list[Int64Array]) -> Iterator[Column]:
    """A column a call. sums: of the rows that are there, as ``_statistics`` says."""
    place, places = 1, {}
    for argument, totalled in _arguments(stage).items():
        places[argument] = place
        place += 3 if totalled else 1
    for call in stage.calls:
        place = places.get(_argument(call), 0)
        counts = sums[place]
        if call.function == "COUNT":
            yield Column(BIGINT, counts)
            continue
        high, low = sums[place + 1] + (sums[place + 2] >> LOW_BITS), sums[place + 2] & LOW_MASK
        if call.function == "SUM":
            yield totals.fitted(high, low, counts, call.type)[0]
        else:
            means = totals.quotients(high, low, counts, call.arguments[0].type.scale)
            some: BoolArray = counts > 0
            yield Column(DOUBLE, means, None if some.all() else some)


def _sums(values: Int64Array, placed: Placed, before: Int64Array) -> Int64Array:
    """int64[pieces]. before: int64[groups], in their first pieces."""
    pieces: Pieces = placed.pieces
    out = np.empty(len(pieces) + 1, np.int64)
    kernels.run_on(values, placed.moving, placed.low, placed.high, pieces.starts, placed.codes, before, out)
    return out[:-1]


# --- groups -------------------------------------------------------------------------------------------


def _places(standing: Standing, keys: list[Column], n: int) -> Int64Array:
    """int64[n]: where groups stand; -1 where they do not."""
    if not keys:
        return np.zeros(n, np.int64)
    here, there, width = alike(standing.keys, keys, len(standing), n)
    known = np.full(width, -1)
    known[here] = np.arange(len(standing))
    return known[there]


def _after(
    stage: Aggregate,
    standing: Standing,
    keys: list[Column],
    places: Int64Array,
    last: npt.NDArray[np.int64],
) -> Standing:
    """Groups without rows go, new ones come. last: int64[statistics, groups that changed]."""
    sums = standing.sums.copy()
    known = places >= 0
    sums[:, places[known]] = last[:, known]
    if not stage.keys:
        return Standing((), sums)
    stay, come = np.flatnonzero(sums[0] > 0), np.flatnonzero(~known & (last[0] > 0))
    if len(stay) == len(standing) and not len(come):
        return Standing(standing.keys, sums)
    columns = [
        _compact(concatenate_columns(old.type, [old.take(stay), _compact(new.take(come))]))
        for old, new in zip(standing.keys, keys, strict=True)
    ]
    return Standing(tuple(columns), np.concatenate([sums[:, stay], last[:, come]], axis=1))


def _compact(column: Column) -> Column:
    """Without strings that do not occur."""
    return column.short() if column.type.kind is Kind.STRING else column
