"""Small plans over random rows: every relation has a BIGINT and a DOUBLE column, so that any operator fits on
any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join, JoinKind
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation, SetOperationKind
from engine.changes.context import EvaluationContext
from engine.changes.transition import NEVER, Transition
from engine.language.query import Query
from engine.model.expressions import Arithmetic, Column, Compare, Expression, Literal
from engine.model.types import BIGINT, DOUBLE
from engine.operators.pipeline import evaluate
from tests.changes.ways import LIMITS, bound

K, V = Column(0, "k", BIGINT), Column(1, "v", DOUBLE)
W = Column(0, "v", DOUBLE)
"""The column of a right input that is joined by it."""

BASES = (
    "SELECT k, v FROM s [RANGE 5 MILLISECONDS]",
    "SELECT k, v FROM s [ROWS 3]",
)
OTHER = "SELECT k, v FROM s [RANGE 3 MILLISECONDS] WHERE w = 'a'"
KEYED = "SELECT k, n FROM u [RANGE 4 MILLISECONDS]"
LAST = "SELECT v, w FROM s [PARTITION BY v ROWS 1] WHERE w = 'a'"
TABLE = "SELECT k, p FROM h"

Operator = Callable[[Query], Query]


def base(text: str) -> Query:
    return replace(bound(text), sql="", uses=())


def then(query: Query, *stages: Stage) -> Query:
    return replace(query, stages=(*query.stages, *stages))


def narrow(query: Query) -> Query:
    """With two columns, whatever it had."""
    for stage in reversed(query.stages):
        if isinstance(stage, Project | Aggregate):
            break
        if isinstance(stage, Join):
            return closed(query)
    return query


def selects(op: str, column: Column, value: float) -> Operator:
    literal = Literal(value, column.type)
    return lambda query: then(query, Filter(Compare(op, column, literal)))  # type: ignore[arg-type]


def combined(
    kind: SetOperationKind, right: str, *, all_: bool = True, on: tuple[tuple[int, int], ...] | None = None
) -> Operator:
    def apply(query: Query) -> Query:
        return then(query if on is not None else narrow(query), SetOperation(kind, base(right), all_, on))

    return apply


def joined(
    kind: JoinKind, right: str, *, places: tuple[int, int] = (0, 1), condition: Expression | None = None
) -> Operator:
    inner = base(right)
    columns = (K, V, *(Column(at, name, type_) for at, (name, type_) in enumerate(inner.columns, 2)))
    taken = [columns[place] for place in places]
    above = Project(tuple(Output(f"c{at}", column) for at, column in enumerate(taken)))
    return lambda query: then(query, Join(inner, kind, ((K, K),), condition), above)


def bare_join(kind: JoinKind, right: str) -> Operator:
    """Without a projection above it, as below another join."""
    return lambda query: then(query, Join(base(right), kind, ((K, K),)))


def among(right: str, *, negated: bool, null_aware: bool) -> Operator:
    def apply(query: Query) -> Query:
        inner = base(right)
        column = Project((Output("k", Column(0, "k", BIGINT)),))
        return then(query, SemiJoin((K,), then(inner, column), negated, null_aware))

    return apply


FAILING = Compare(">", Arithmetic("/", Literal(2, BIGINT), K, BIGINT), Literal(0, BIGINT))
"""An error where k is 0."""

OPERATORS: dict[str, Operator] = {
    "select k": selects(">", K, 0),
    "select v": selects("<", V, 1.0),
    "select 2/k": lambda query: then(query, Filter(FAILING)),
    "distinct": lambda query: then(query, Distinct()),
    "group": lambda query: then(query, Aggregate((Output("k", K), Output("v", V)), ())),
    "union": combined("union", OTHER),
    "union of unions": lambda query: then(
        narrow(query), SetOperation("union", then(base(OTHER), SetOperation("union", base(BASES[1]))))
    ),
    "union of distinct": lambda query: then(
        narrow(query), SetOperation("union", then(base(OTHER), Distinct()))
    ),
    "except all": combined("except", OTHER),
    "except": combined("except", OTHER, all_=False),
    "except all on k": combined("except", KEYED, on=((0, 0),)),
    "intersect all": combined("intersect", OTHER),
    "intersect": combined("intersect", OTHER, all_=False),
    "not in": among(KEYED, negated=True, null_aware=True),
    "not exists": among(KEYED, negated=True, null_aware=False),
    "in": among(KEYED, negated=False, null_aware=True),
    "join": joined("inner", KEYED),
    "join if": joined("inner", KEYED, condition=Compare("<", Column(2, "", BIGINT), Column(3, "", BIGINT))),
    "join, giving n": joined("inner", KEYED, places=(3, 1)),
    "join by v": lambda query: then(
        narrow(query), Join(base("SELECT v, w FROM s [RANGE 2 MILLISECONDS]"), "inner", ((V, W),))
    ),
    "join by v with its last": lambda query: then(
        narrow(query),
        Join(base("SELECT v, w FROM s [PARTITION BY v ROWS 1] WHERE w = 'a'"), "inner", ((V, W),)),
    ),
    "join with a table": joined("inner", TABLE),
    "left join with a table": joined("left", TABLE),
    "bare join": bare_join("inner", KEYED),
    "bare join with a table": bare_join("inner", TABLE),
    "bare left join": bare_join("left", TABLE),
    "limit": lambda query: then(query, Limit(2)),
}


def small_plans(depth: int) -> Iterator[tuple[str, Query]]:
    """All of so many operators over a base."""
    for text, names in product(BASES, product(OPERATORS, repeat=depth)):
        query = base(text)
        for name in names:
            query = OPERATORS[name](query)
        yield f"{text.rpartition(' FROM ')[2]}: {', '.join(names)}", closed(query)


def closed(query: Query) -> Query:
    """With a projection on top, which a query has that ends in a join."""
    return then(query, Project((Output("k", K), Output("v", V))))


Snapshot = tuple[list[str], int]
"""Rows in their order and how many errors were met."""


def snapshots(query: Query, transition: Transition) -> dict[int, Snapshot]:
    """The answer of a query at every half instant of a transition."""
    context = EvaluationContext(transition, LIMITS)
    interval = context.interval
    first = -5 if interval.since == NEVER else interval.since
    found = {}
    for instant in range(first, interval.until + 1):
        at = {source: context.standing(source, instant) for source in query.sources}
        answer = evaluate(query, at, 100_000)
        rows = [repr(tuple(row.values())) for row in answer.table.to_pylist()]
        found[instant] = rows, answer.errors
    return found
