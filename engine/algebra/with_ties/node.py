"""FETCH FIRST n ROWS WITH TIES in a graph: the rows whose keys are among those of the first n.

SELECT v FROM s ORDER BY v FETCH FIRST 3 ROWS WITH TIES
SELECT v FROM s WHERE v IN (SELECT v FROM s ORDER BY v LIMIT 3)        but that NULL equals NULL here
"""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.limit.stage import Limit
from engine.algebra.project.stage import Output, Project
from engine.algebra.with_ties.stage import WithTies
from engine.dataflow.operators.join import Matching
from engine.dataflow.operators.ranked import RankedSpec
from engine.dataflow.operators.rows import FilterSpec, ProjectSpec
from engine.dataflow.plan import (
    NO_IDS,
    Asked,
    Joined,
    OperatorOver,
    Plan,
    distinct,
    ranked,
    read_by,
    reason_of,
    with_ids,
)
from engine.language.null_equality import equal_keys
from engine.language.query import Query
from engine.model.expressions import Column, Literal
from engine.model.types import BOOLEAN
from engine.operators.maintained.measure import can_err


def plan_over(stage: WithTies, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    if stage.count == 0:
        return OperatorOver(FilterSpec(Literal(False, BOOLEAN)), (), below, stage)
    if any(map(can_err, stage.expressions())):
        return "FETCH ... WITH TIES: an error counts as NULL"
    read = read_by(query.stages[place + 1 :])
    rows: Plan | str | None = with_ids(below)
    if stage.offset:
        kept = None if read is None or stage.places_read is None else read | stage.places_read
        rest = RankedSpec((), stage.keys, stage.offset, None, False, kept)
        rows = ranked(rest, below, Limit(None, stage.offset))
    if rows is None:
        return f"FETCH ... WITH TIES: {NO_IDS}, by {reason_of(below)}"
    if isinstance(rows, str):
        return rows
    columns = [Column(at, f"key_{at + 1}", key.type) for at, key in enumerate(stage.expressions())]
    pairs = zip(stage.expressions(), columns, strict=True)
    equal = tuple(key for one, other in pairs for key in equal_keys(one, other))
    matching = Matching("semi", equal, None, read)
    return Joined(matching, rows, _first(stage, rows, columns), stage)


def _first(stage: WithTies, rows: Plan, columns: list[Column]) -> Plan:
    """The keys of the first rows, each once."""
    pairs = list(zip(stage.keys, columns, strict=True))
    keys = Project(tuple(Output(column.name, key.expression) for key, column in pairs))
    order = tuple(replace(key, expression=column) for key, column in pairs)
    first = RankedSpec((), order, 0, stage.count, False, None)
    keyed = OperatorOver(ProjectSpec(keys.outputs), (), rows, keys)
    given = tuple(Output(column.name, column) for column in columns)
    return distinct(OperatorOver(first, (), keyed, Limit(stage.count)), given)
