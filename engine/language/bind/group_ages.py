"""HAVING MAX(at) < NOW() - INTERVAL '5' MINUTE: groups by the age of their last or first row.

The last row of a group is young where any row is, so the condition is a semi-join of the groups with the rows
that are young, whose window tells when a row comes and goes:

    MAX(at) >= t    rows of the group with at >= t        MIN(at) <= t    rows with at <= t
    MAX(at) <  t    none with at >= t                     MIN(at) >  t    none with at <= t

Without GROUP BY there is one group, which has a last row only where there are rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.algebra.project.stage import Output
from engine.language.bind.conditions import Condition, SubqueryJoin
from engine.language.bind.grouping import Grouping
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scalar import TRUE
from engine.language.bind.temporal_filters import TemporalFilter, filtered
from engine.language.null_equality import equal_keys
from engine.model.expressions import Column, Expression, IsNull, Not
from tureen.errors import NotSupported


def with_ages(having: Sequence[Condition], grouping: Grouping | None, rows: BoundRelation) -> list[Condition]:
    """The conditions of HAVING, with joins in the places of those about NOW(). rows: what is grouped.

    Raises NotSupported where one is not about MIN or MAX of the time of a stream.
    """
    found: list[Condition] = []
    for condition in having:
        if not isinstance(condition, TemporalFilter) or grouping is None:
            found.append(condition)
            continue
        join = _join(condition, grouping, rows)
        found += [Not(IsNull(condition.column))] if join.negated and not join.keys else []
        found.append(join)
    return found


def _join(wanted: TemporalFilter, grouping: Grouping, rows: BoundRelation) -> SubqueryJoin:
    extreme = grouping.extreme(wanted.column)
    begin_ms, end_ms = wanted.begin_ms, wanted.end_ms
    if extreme is None or grouping.sets is not None or (begin_ms is not None and end_ms is not None):
        raise wanted.place.refuse(
            NotSupported,
            "NOW() in HAVING is compared with MIN or MAX of the time column of a stream, by < or >",
            hint="write HAVING MAX(at) < NOW() - INTERVAL '5' MINUTE",
        )
    name, column = extreme
    is_last = name == "MAX"
    negated = (end_ms if is_last else begin_ms) is not None
    if negated:
        begin_ms, end_ms = (
            (None if end_ms is None else end_ms + 1),
            (None if begin_ms is None else begin_ms - 1),
        )
    inner = filtered(rows, [replace(wanted, column=column, begin_ms=begin_ms, end_ms=end_ms)])
    keys: list[Expression] = []
    outputs: list[Output] = []
    for place, expression in enumerate(grouping.keys):
        group = Column(place, f"key_{place + 1}", expression.type)
        pairs = [(group, expression)] if _is_there(expression, rows) else equal_keys(group, expression)
        for one, other in pairs:
            keys.append(one)
            outputs.append(Output(f"key_{len(keys)}", other))
    columns = tuple(outputs) or (Output("found", TRUE),)
    return SubqueryJoin(tuple(keys), replace(inner, columns=columns), negated, null_aware=False)


def _is_there(expression: Expression, rows: BoundRelation) -> bool:
    """Whether an expression over rows is a column of their scan that is never NULL."""
    fields = rows.stream.schema.fields
    if not isinstance(expression, Column) or any(join.kind in ("right", "full") for join in rows.joins):
        return False
    return not rows.stages and expression.index < len(fields) and not fields[expression.index].nullable
