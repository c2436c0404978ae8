"""WHERE and HAVING: conditions over rows, and IN (SELECT ...) and EXISTS (SELECT ...) among them.

The conditions joined by AND are bound one by one. A subquery that is one of them becomes a semi-join with
that query. Inside a subquery, ``inner column = outer column`` among the conditions of its
WHERE correlates the two: the inner column becomes one more column of the subquery, and the two are keys of
the semi-join. It may hold any other condition with columns around it: it then is a join of kind semi or anti,
which has conditions. So is a NOT IN that compares several columns, or is correlated: a row stays where none
of the subquery's equals it, nor might do so if NULLs were known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.algebra.semi_join.stage import SemiJoin
from engine.language.bind.calls import coerce
from engine.language.bind.environment import Environment
from engine.language.bind.group_windows import expanded_equality
from engine.language.bind.placing import asked_of_pairs, narrowed
from engine.language.bind.relation import BoundRelation, Extent
from engine.language.bind.scalar import TRUE, bind_condition, bind_scalar
from engine.language.bind.scope import OUTER, Around, Scope, of_outer
from engine.language.bind.temporal_filters import (
    WITH_NOW,
    TemporalFilter,
    filtered,
    names_now,
    temporal_filters,
)
from engine.language.grammar import nodes
from engine.language.promotion import common
from engine.language.rules import rewrite
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Compare, CompareOp, Expression, IsNull, Literal, Or
from engine.model.types import Kind, Type
from tureen.errors import NotSupported, TypeMismatch

JOINS_DEPTH_MAX = 16


@dataclass(frozen=True, slots=True)
class SubqueryJoin:
    """A subquery among the conditions: keys over the rows around it, as many as it has columns."""

    keys: tuple[Expression, ...]
    inner: BoundRelation
    negated: bool
    null_aware: bool


@dataclass(frozen=True, slots=True)
class BoundSubquery:
    """A subquery with conditions over its rows and those around it, whose columns are those of OUTER."""

    inner: BoundRelation
    negated: bool
    conditions: tuple[Expression, ...]

    def applied(self, relation: BoundRelation, sql: str) -> BoundRelation:
        """Rows of the relation that have such a row, or have none."""
        plain = tuple(Output(column.name, column) for column in self.inner.given())
        inner = replace(self.inner, columns=plain)
        joined = relation.joined(inner, "anti" if self.negated else "semi", sql)
        given, own = relation.given(), joined.columns[len(relation.columns) :]

        def settled(node: Expression) -> Expression:
            if not isinstance(node, Column):
                return node
            return given[OUTER - node.index] if node.index <= OUTER else own[node.index].expression

        joined = asked_of_pairs(joined, [transform(condition, settled) for condition in self.conditions])
        extent = Extent(joined.extent.stages, relation.extent.over(0, inner.extent.nested()).depth)
        return replace(joined, columns=relation.columns, extent=extent)


RowsMany = OneOf["one", "at most one", "several"]


@dataclass(slots=True)
class Correlation:
    """The scope around a subquery; pairs: (inner, outer) expressions that must be equal, as they are met.

    mixed: other conditions with columns of both, where they may stand (None: they may not). The subquery has
    one more column for each pair, behind those that it selects.
    domain: the relation around it, where its columns may stand anywhere in the subquery
    (:mod:`engine.language.bind.subqueries.domain`).
    is_lateral: it is joined to what is around. Then empties: of an aggregate without GROUP BY what its
    columns are over no rows.
    is_value: it stands in the place of a value. Then rows: how many there may be, for each value of the
    pairs; empty: the value over no rows, None: NULL.
    """

    around: Scope
    pairs: list[tuple[Expression, Expression]] = field(default_factory=list)
    mixed: list[Expression] | None = None
    domain: BoundRelation | None = None
    is_value: bool = False
    is_lateral: bool = False
    empties: list[Expression] = field(default_factory=list)
    rows: RowsMany = "several"
    empty: Expression | None = None

    @property
    def is_used(self) -> bool:
        return bool(self.pairs or self.mixed)

    def empty_of(self, type_: Type) -> Expression:
        """The value over no rows."""
        return Literal(None, type_) if self.empty is None else self.empty


Condition = Expression | SubqueryJoin | BoundSubquery | TemporalFilter
Subselect = Callable[[exp.Expr, Environment, Correlation], BoundRelation]


def bind_conditions(
    node: exp.Expr | None,
    scope: Scope,
    env: Environment,
    subselect: Subselect,
    correlation: Correlation | None = None,
) -> list[Condition]:
    """The conditions that AND joins; ``subselect`` binds a subquery."""
    if node is None:
        return []
    found: list[Condition] = []
    for part in conjuncts(node, scope):
        if scope.values is not None:
            scope.values.reject_missing(part)
        if correlation is not None and _correlate(part, scope, correlation):
            continue
        join = _join(part, scope, env, subselect)
        found += bind_parts(part, scope) if join is None else [join]
    return found


def bind_parts(node: exp.Expr, scope: Scope) -> list[Expression | TemporalFilter]:
    """A condition of WHERE, ON or HAVING: the filters with NOW() that it is made of, and the rest."""
    if not names_now(node):
        return [bind_condition(node, scope)]
    return temporal_filters(bind_condition(node, scope.at(WITH_NOW)), node, scope)


def apply(relation: BoundRelation, conditions: Sequence[Condition], sql: str) -> BoundRelation:
    """The rows that satisfy all: first what is looked at row by row, then the subqueries in order."""
    relation = filtered(relation, [c for c in conditions if isinstance(c, TemporalFilter)])
    plain = [c for c in conditions if not isinstance(c, SubqueryJoin | BoundSubquery | TemporalFilter)]
    relation = narrowed(relation, plain)
    for join in conditions:
        if isinstance(join, BoundSubquery):
            relation = join.applied(relation, sql)
        elif isinstance(join, SubqueryJoin):
            inner = join.inner.computed()
            keys = tuple(rewrite(key) for key in join.keys)
            stage = SemiJoin(keys, inner.query(sql), join.negated, join.null_aware)
            relation = relation.semi_joined(stage, inner)
    return relation


def and_operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """The parts that AND joins, from left to right."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        inside = part.unnest()
        if isinstance(inside, exp.And):
            waiting += [inside.expression, inside.this]
        else:
            yield part


def conjuncts(node: exp.Expr, scope: Scope) -> Iterator[exp.Expr]:
    """The parts that AND joins, from left to right; the equality of two windows as two."""
    for part in and_operands(node):
        yield from expanded_equality(part, scope)


def holds_query(node: exp.Expr) -> bool:
    """Whether a subquery stands in an expression."""
    return next(node.find_all(*nodes.SUBQUERIES), None) is not None


def _correlate(node: exp.Expr, scope: Scope, correlation: Correlation) -> bool:
    """Whether this holds columns around in a way that is served, which is then noted."""
    if _is_equal(node.unnest(), scope, correlation):
        return True
    if correlation.mixed is None or not _is_mixed(node, scope, correlation.around):
        return False
    within = replace(scope, outer=Around(correlation.around, is_mixed=True))
    correlation.mixed.append(bind_condition(node, within))
    return True


def _is_mixed(node: exp.Expr, scope: Scope, around: Scope) -> bool:
    """Whether columns around stand in a condition; one with a subquery in it is none of these."""
    if holds_query(node):
        return False
    columns = node.find_all(exp.Column)
    return any(scope.find(column) is None and around.find(column) is not None for column in columns)


def _is_equal(node: exp.Expr, scope: Scope, correlation: Correlation) -> bool:
    """Whether this is ``inner = outer``, which is then noted."""
    sides = _equal_sides(node, scope, correlation)
    if sides is None:
        return False
    around = bind_scalar(sides[1], replace(correlation.around, values=None))
    key, value = fit(node, around, bind_scalar(sides[0], scope), scope)
    correlation.pairs.append((value, key))
    return True


def is_equality(node: exp.Expr, scope: Scope, correlation: Correlation) -> bool:
    """Whether this is ``inner = outer``."""
    return _equal_sides(node, scope, correlation) is not None


def _equal_sides(node: exp.Expr, scope: Scope, correlation: Correlation) -> tuple[exp.Expr, exp.Expr] | None:
    """The inner and the outer side of an equality."""
    if not isinstance(node, exp.EQ):
        return None
    around = correlation.around
    for inner, outer in ((node.this, node.expression), (node.expression, node.this)):
        if _is_around(outer, scope, around) and not _is_mixed(inner, scope, around):
            return inner, outer
    return None


def _domain(scope: Scope) -> BoundRelation | None:
    """The relation that these names are of, where subqueries may have its columns anywhere."""
    return None if scope.values is None or scope.grouping is not None else scope.values.domain


def _is_around(node: exp.Expr, scope: Scope, around: Scope) -> bool:
    """Whether an expression is over columns around a subquery alone."""
    if not _is_mixed(node, scope, around):
        return False
    return all(scope.find(column) is None for column in node.find_all(exp.Column))


def _join(
    node: exp.Expr, scope: Scope, env: Environment, subselect: Subselect
) -> SubqueryJoin | BoundSubquery | None:
    negated = False
    inside = node.unnest()
    while isinstance(inside, exp.Not):
        negated = not negated
        inside = inside.this.unnest()
    if isinstance(inside, nodes.ExistsQuery):
        return _exists(inside, negated, scope, env, subselect)
    if isinstance(inside, nodes.InQuery):
        return _in(inside, negated, scope, env, subselect)
    if isinstance(inside, nodes.AnyQuery) and scope.grouping is None:
        return _any(inside, negated, scope, env, subselect)
    return None


def _exists(
    node: exp.Expr, negated: bool, scope: Scope, env: Environment, subselect: Subselect
) -> SubqueryJoin | BoundSubquery:
    correlation = Correlation(scope, mixed=[] if scope.grouping is None else None, domain=_domain(scope))
    inner = nested(node, subselect(node.args["query"], env, correlation), scope)
    if correlation.mixed:
        return BoundSubquery(inner, negated, _conditions(correlation, inner))
    keys, columns = _pairs(correlation, inner)
    if not keys:
        columns = [Output("found", TRUE)]
    return SubqueryJoin(tuple(keys), replace(inner, columns=tuple(columns)), negated, null_aware=False)


def _in(
    node: exp.Expr, negated: bool, scope: Scope, env: Environment, subselect: Subselect
) -> SubqueryJoin | BoundSubquery:
    written = node.this.expressions if isinstance(node.this, nodes.RowValue) else [node.this]
    correlation = Correlation(scope, mixed=[] if scope.grouping is None else None, domain=_domain(scope))
    inner = nested(node, subselect(node.args["query"], env, correlation), scope)
    selected = inner.columns[: len(inner.columns) - len(correlation.pairs)]
    check_columns(node, len(selected), len(written), scope)
    compared = [
        fit(node, bind_scalar(part, scope), output.expression, scope)
        for part, output in zip(written, selected, strict=True)
    ]
    three_valued = negated and (correlation.pairs or len(written) > 1)
    if correlation.mixed or three_valued:
        if scope.grouping is not None:
            raise scope.place(node).refuse(
                NotSupported,
                "HAVING has no NOT IN with several columns, or with a column of the query around",
                hint="write SELECT * FROM (SELECT ... GROUP BY ...) WHERE (a, b) NOT IN (SELECT ...)",
            )
        same = [_same(transform(key, of_outer), value, or_unknown=negated) for key, value in compared]
        return BoundSubquery(inner, negated, (*same, *_conditions(correlation, inner)))
    keys = [key for key, _ in compared]
    columns = [Output(output.name, value) for output, (_, value) in zip(selected, compared, strict=True)]
    more_keys, more_columns = _pairs(correlation, inner)
    inner = replace(inner, columns=(*columns, *more_columns))
    return SubqueryJoin((*keys, *more_keys), inner, negated, null_aware=negated)


def _any(
    node: exp.Expr, negated: bool, scope: Scope, env: Environment, subselect: Subselect
) -> BoundSubquery:
    correlation = Correlation(scope, mixed=[], domain=_domain(scope))
    inner = nested(node, subselect(node.args["query"], env, correlation), scope)
    check_columns(node, len(inner.columns) - len(correlation.pairs), 1, scope)
    key, value = fit(node, bind_scalar(node.this, scope), inner.columns[0].expression, scope)
    holds = _same(transform(key, of_outer), value, or_unknown=negated, op=node.args["op"])
    return BoundSubquery(inner, negated, (holds, *_conditions(correlation, inner)))


def _same(key: Expression, value: Expression, *, or_unknown: bool, op: CompareOp = "=") -> Expression:
    """Whether two values are equal, or compare so, or might, as one of them is NULL."""
    holds = Compare(op, key, value)
    return Or((holds, IsNull(key), IsNull(value))) if or_unknown else holds


def _conditions(correlation: Correlation, inner: BoundRelation) -> tuple[Expression, ...]:
    """All that correlates, over the subquery's rows and those of OUTER."""
    keys, columns = _pairs(correlation, inner)
    equal = [
        Compare("=", transform(key, of_outer), column.expression)
        for key, column in zip(keys, columns, strict=True)
    ]
    return *equal, *(correlation.mixed or ())


def _pairs(correlation: Correlation, inner: BoundRelation) -> tuple[list[Expression], list[Output]]:
    """Keys, and columns of the subquery, of what correlates."""
    keys = [around for _, around in correlation.pairs]
    return keys, list(inner.columns[len(inner.columns) - len(keys) :])


def check_columns(node: exp.Expr, selected: int, wanted: int, scope: Scope) -> None:
    """Raise TypeMismatch where IN has other columns before it than behind."""
    if selected != wanted:
        raise scope.place(node.args["query"]).refuse(
            TypeMismatch,
            f"the subquery has {selected} columns, before {_word(node)} there are {wanted}",
            hint=f"select as many columns as there are before {_word(node)}",
        )


def _word(node: exp.Expr) -> str:
    return "IN" if isinstance(node, nodes.InQuery) else "ANY or ALL"


def fit(node: exp.Expr, left: Expression, right: Expression, scope: Scope) -> tuple[Expression, Expression]:
    """Both expressions, cast to the type that they share. Raises TypeMismatch."""
    type_ = common([left.type, right.type])
    if type_ is None:
        raise scope.place(node).refuse(
            TypeMismatch,
            f"{left.type} cannot be compared with {right.type} of the subquery",
            hint="cast one of them: CAST(x AS TYPE)",
        )
    if type_.kind is Kind.NULL:
        type_ = TRUE.type
    return coerce(left, type_), coerce(right, type_)


def nested(node: exp.Expr, inner: BoundRelation, scope: Scope) -> BoundRelation:
    """The relation of a subquery. Raises LimitExceeded where subqueries nest too deep."""
    if inner.extent.depth >= JOINS_DEPTH_MAX:
        raise scope.place(node).exceeded(
            "subqueries_depth_max", JOINS_DEPTH_MAX, hint="nest fewer subqueries in conditions and values"
        )
    return inner
