"""What a rewrite of a bound query is, and what several of them need to know.

A rule looks at one stage and those beside it, and gives other stages that mean the same: the same bag of rows
at every instant, in the same order where somebody above goes by it, and the same number of errors. So it
leaves alone what it would evaluate on other rows if that may be an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.changes.result_key import told_by
from engine.language.query import Query
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Expression, columns_of
from engine.model.source import SourceName, Stream
from engine.model.types import Kind
from engine.operators.maintained.measure import can_err

Sources = Mapping[SourceName, Stream]
"""The streams and tables that a query reads."""

Stages = tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """apply: other stages of a query instead of its own, found at the stage at a place; None: it does not fit
    there. keeps_order: rows stay in their order, not only the same bag.
    """

    name: str
    apply: Callable[[Stage, Query, int, Sources], Stages | None]
    keeps_order: bool = True


def applied(rule: Rule, query: Query, sources: Sources, *, by_order: bool = False) -> Iterator[Query]:
    """The query with the rule applied at one place, for each place where it fits, inner queries included.

    by_order: somebody above goes by the order of its rows.
    """
    for place, stage in enumerate(query.stages):
        above = by_order or any(each.goes_by_order for each in query.stages[place + 1 :])
        if rule.keeps_order or not above:
            stages = rule.apply(stage, query, place, sources)
            if stages is not None:
                yield replace(query, stages=stages)
        if stage.right_input is not None:
            for inner in applied(rule, stage.right_input, sources, by_order=above or stage.goes_by_order):
                around = query.stages[:place], query.stages[place + 1 :]
                yield replace(query, stages=(*around[0], stage.with_right_input(inner), *around[1]))


def width_of(query: Query, place: int, sources: Sources) -> int:
    """How many columns the stage at a place gets."""
    return told_by(up_to(query, place), sources)[0]


def is_distinct(query: Query, columns: Iterable[Column], sources: Sources) -> bool:
    """Whether these columns of a relation are as DISTINCT would give them: no two rows equal, and no
    -0.0, which it makes 0.0.
    """
    given = list(columns)
    places = {column.index for column in given}
    width, keys = told_by(query, sources)
    if not any(key <= places for key in keys):
        return False
    last = query.stages[-1] if query.stages else None
    if len(places) == width and last is not None and last.one_zero:
        return True
    return all(column.type.kind is not Kind.DOUBLE for column in given)


@asked_of("rewrites")
def makes_distinct(stage: Stage, query: Query, place: int) -> bool:
    """Whether equal rows that a stage gets are given once: it is a DISTINCT, or a union, with only unions
    between it and one. place: of the stage.
    """
    return False


def is_made_distinct(query: Query, place: int) -> bool:
    """Whether equal rows that the stage at a place gives are given once above it."""
    return place + 1 < len(query.stages) and makes_distinct(query.stages[place + 1], query, place + 1)


def up_to(query: Query, place: int) -> Query:
    """The relation that the stage at a place gets, as a query."""
    return replace(query, stages=query.stages[:place])


def reads(*expressions: Expression | None) -> set[int]:
    """The places of the columns in some expressions."""
    return {column.index for each in expressions if each is not None for column in columns_of(each)}


def moved(expression: Expression, places: Mapping[int, int]) -> Expression:
    """An expression over columns that stand elsewhere now."""

    def visit(node: Expression) -> Expression:
        return replace(node, index=places[node.index]) if isinstance(node, Column) else node

    return transform(expression, visit)


def none_errs(expressions: Iterable[Expression | None]) -> bool:
    """Whether no value of these may be an error."""
    return not any(map(can_err, expressions))
