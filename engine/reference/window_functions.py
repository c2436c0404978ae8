"""Window functions over lists of rows: of each row its frame is looked for, and its value made of that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from engine.algebra.sort.stage import SortKey
from engine.algebra.window_functions.stage import Frame, WindowFunctionCall, WindowFunctions
from engine.model.expressions import Column, Value
from engine.model.types import Kind
from engine.reference.aggregates import aggregate, taken_of_rows
from engine.reference.expressions import evaluate
from engine.reference.joins import values_of
from engine.reference.ordering import compare, sort
from engine.reference.rows import Placed, Values
from engine.reference.values import ERROR, Identity, Outcome, identity, order


@dataclass(frozen=True)
class _Partition:
    """Rows of a partition in order, and of each the values of the sort keys."""

    rows: list[Placed]
    keys: list[Values]
    order: tuple[SortKey, ...]

    def are_peers(self, one: int, other: int) -> bool:
        """Whether two rows, by place, are equal in ORDER BY."""
        return compare(self.order, self.keys[one], self.keys[other]) == 0

    def group(self, place: int) -> int:
        """How many groups of peers begin up to a row."""
        return sum(at == 0 or not self.are_peers(at - 1, at) for at in range(place + 1))


def window_functions(stage: WindowFunctions, rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    """The rows with the value of each call, and how many errors were met."""
    partitions: dict[Identity, list[Placed]] = {}
    errors = 0
    for row in rows:
        key, met = values_of(stage.keys, row.values)
        partitions.setdefault(identity(key), []).append(row)
        errors += met
    made: dict[int, list[Value]] = {id(row): [] for row in rows}
    for members in partitions.values():
        ordered, met = sort(stage.order, members)
        errors += met
        keys = [values_of([key.expression for key in stage.order], row.values)[0] for row in ordered]
        partition = _Partition(ordered, keys, stage.order)
        for call in stage.calls:
            values, met = _call(call, partition)
            errors += met
            for row, value in zip(ordered, values, strict=True):
                made[id(row)].append(value)
    return [replace(row, values=(*row.values, *made[id(row)])) for row in rows], errors


def _call(call: WindowFunctionCall, partition: _Partition) -> tuple[list[Value], int]:
    """The value of a call for each row of a partition, and how many errors were met."""
    if call.aggregate is not None:
        return _aggregated(call, partition)
    if call.function in ("RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"):
        return [_ranked(call, partition, place) for place in range(len(partition.rows))], 0
    outcomes = [evaluate(call.arguments[0], row.values) for row in partition.rows]
    values = [None if outcome is ERROR else outcome for outcome in outcomes]
    errors = sum(outcome is ERROR for outcome in outcomes)
    if call.function in ("LAG", "LEAD"):
        return _at_distance(call, partition, values, errors)
    number = _number(call, 1, 1)
    made: list[Value] = []
    for place in range(len(values)):
        found = [values[at] for at in _frame(call.frame, partition, place)]
        if call.ignore_nulls:
            found = [value for value in found if value is not None]
        if call.function == "LAST_VALUE":
            found.reverse()
        made.append(found[number - 1] if number <= len(found) else None)
    return made, errors


def _number(call: WindowFunctionCall, place: int, default: int) -> int:
    if place >= len(call.arguments):
        return default
    value = evaluate(call.arguments[place], ())
    assert isinstance(value, int)
    return value


def _ranked(call: WindowFunctionCall, partition: _Partition, place: int) -> Value:
    count = len(partition.rows)
    before = next(at for at in range(count) if partition.are_peers(at, place))
    match call.function:
        case "RANK":
            return before + 1
        case "DENSE_RANK":
            return partition.group(place)
        case "PERCENT_RANK":
            return before / (count - 1) if count > 1 else 0.0
        case "CUME_DIST":
            return (before + sum(partition.are_peers(at, place) for at in range(count))) / count
    parts = _number(call, 0, 1)
    sizes = [count // parts + (part < count % parts) for part in range(parts)]
    return next(part + 1 for part in range(parts) if place < sum(sizes[: part + 1]))


def _at_distance(
    call: WindowFunctionCall, partition: _Partition, values: Sequence[Value], errors: int
) -> tuple[list[Value], int]:
    distance = _number(call, 1, 1)
    made: list[Value] = []
    for place, row in enumerate(partition.rows):
        default: Outcome = None
        if len(call.arguments) > 2:
            default = evaluate(call.arguments[2], row.values)
            errors += default is ERROR
        ahead = values[place + 1 :] if call.function == "LEAD" else list(reversed(values[:place]))
        if call.ignore_nulls:
            ahead = [value for value in ahead if value is not None]
        if distance == 0:
            made.append(values[place])
        elif distance <= len(ahead):
            made.append(ahead[distance - 1])
        else:
            made.append(None if default is ERROR else default)
    return made, errors


def _aggregated(call: WindowFunctionCall, partition: _Partition) -> tuple[list[Value], int]:
    """What counts of each row is looked at once; then the aggregate is of the frame's rows that count."""
    of_rows = call.aggregate
    assert of_rows is not None
    taken = taken_of_rows(of_rows)
    counting: list[Placed | None] = []
    errors = 0
    for row in partition.rows:
        passes = True if call.filter is None else evaluate(call.filter, row.values)
        values = [evaluate(one, row.values) for one in taken] if passes is True else []
        errors += passes is ERROR or ERROR in values
        plain = tuple(None if value is ERROR else value for value in values)
        counting.append(Placed(None, plain) if passes is True and ERROR not in values else None)
    own = tuple(Column(at, "value", one.type) for at, one in enumerate(taken))
    over = replace(of_rows, arguments=(*own, *call.arguments[len(own) :]), filter=None)
    made: list[Value] = []
    for place in range(len(partition.rows)):
        found = [counting[at] for at in _frame(call.frame, partition, place)]
        outcome, met = aggregate(over, [row for row in found if row is not None])
        assert outcome is not ERROR
        made.append(outcome)
        errors += met
    return made, errors


def _frame(frame: Frame, partition: _Partition, place: int) -> list[int]:
    """The places of the rows of a frame, ascending."""

    def is_out(at: int) -> bool:
        match frame.exclude:
            case "current row":
                return at == place
            case "group":
                return partition.are_peers(at, place)
            case "ties":
                return at != place and partition.are_peers(at, place)
        return False

    inside = [at for at in range(len(partition.rows)) if _is_in(frame, partition, place, at)]
    return [at for at in inside if not is_out(at)]


def _is_in(frame: Frame, partition: _Partition, place: int, at: int) -> bool:
    """Whether a row is between the first and the last one of the frame of another."""
    if frame.unit == "range":
        return _reaches(frame, partition, place, at)
    distance = at - place
    if frame.unit == "groups":
        distance = partition.group(at) - partition.group(place)
    return (frame.start is None or distance >= frame.start) and (frame.end is None or distance <= frame.end)


def _reaches(frame: Frame, partition: _Partition, place: int, at: int) -> bool:
    """RANGE: rows in the order of the key, from one value to another; NULL and NaN have no distance."""
    for bound, is_start in ((frame.start, True), (frame.end, False)):
        if bound is None:
            continue
        own = partition.keys[place][0] if partition.order else None
        if bound == 0 or own is None or (isinstance(own, float) and math.isnan(own)):
            if partition.are_peers(at, place):
                continue
            if (at < place) is is_start:
                return False
            continue
        other = partition.keys[at][0]
        key = partition.order[0]
        if other is None:
            if key.nulls_first is is_start:
                return False
            continue
        assert isinstance(own, int | float | Decimal)
        type_ = key.expression.type
        step = -bound if key.descending else bound
        target: float | Decimal
        if type_.kind is Kind.DOUBLE:
            target = float(own) + float(step)
        else:
            target = Decimal(own) + Decimal(step)
        stands = _order(other, target, key)
        stands = -stands if key.descending else stands
        if (stands < 0) if is_start else (stands > 0):
            return False
    return True


def _order(value: Value, target: float | Decimal, key: SortKey) -> int:
    """How a value stands to one at a distance, which may be of none of the type's values."""
    if isinstance(target, Decimal):
        assert isinstance(value, int | Decimal)
        exact = Decimal(value)
        return int(exact > target) - int(exact < target)
    return order(value, key.expression.type, target, key.expression.type)
