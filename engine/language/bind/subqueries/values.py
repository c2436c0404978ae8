"""The subqueries of one SELECT that stand in the place of values: a join each, and the column it gives.

One that uses no column around has one row for all, so that rows meet it by a cross join. One that has
``its column = column around`` among its conditions is grouped by its columns, and joined on them; a row
without a partner stays. How many rows there may be is settled by the rules of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.language.bind.conditions import Correlation, Subselect, check_columns, fit, nested
from engine.language.bind.environment import Environment
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scalar import bind_scalar
from engine.language.bind.scope import Scope
from engine.language.bind.subqueries.joined_value import SubqueryValue
from engine.language.bind.subqueries.membership import (
    are_any,
    compares_with_any,
    count_of_equals,
    extreme,
    is_member,
    nulls_among,
)
from engine.language.bind.subqueries.one_row import one_row
from engine.language.bind.subqueries.rejecting import rejecting
from engine.language.bind.subqueries.row_membership import is_row_member, rows_that_might
from engine.language.grammar import nodes
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Expression, IsNull, Not
from tureen.errors import NotSupported, TypeMismatch

Outer = tuple[Expression, ...]
GROUP_VALUES = -3_000_000
"""Columns of values over groups count down from here until they are settled."""


class SubqueryValues:
    """``joined`` takes a value that was bound and gives what stands for it. Each node is bound once."""

    def __init__(
        self,
        env: Environment,
        subselect: Subselect,
        joined: Callable[[SubqueryValue], Expression],
        domain: BoundRelation | None = None,
    ) -> None:
        """domain: the relation of FROM around them; None: what is around them is groups of it."""
        self.domain = domain
        self._env = env
        self._subselect = subselect
        self._joined = joined
        self._bound: dict[int, Expression] = {}
        self._rejecting: set[int] = set()

    def reject_missing(self, condition: exp.Expr) -> None:
        """Rows must satisfy this condition."""
        self._rejecting |= set(rejecting(condition))

    def knows(self, node: exp.Expr) -> bool:
        """Whether this subquery was bound here."""
        return id(node) in self._bound

    def bind(self, node: exp.Expr, scope: Scope) -> Expression:
        """What stands for a subquery. Raises QueryError and LimitExceeded with a place."""
        found = self._bound.get(id(node))
        if found is None:
            if isinstance(node, nodes.InQuery):
                found = self._member(node, scope)
            elif isinstance(node, nodes.AnyQuery):
                found = self._any(node, scope)
            elif isinstance(node, nodes.ExistsQuery):
                found = self._exists(node, scope)
            else:
                found = self._joined(self._value(node, scope))
            self._bound[id(node)] = found
        return found

    def _rows(self, node: exp.Expr, scope: Scope) -> tuple[BoundRelation, list[Output], list[Output], Outer]:
        """The relation of a subquery, what it selects, what must equal, and what that must equal."""
        correlation = Correlation(replace(scope, values=None), domain=self.domain)
        relation = nested(node, self._subselect(node.args["query"], self._env, correlation), scope)
        outer = tuple(around for _, around in correlation.pairs)
        count = len(relation.columns) - len(outer)
        return relation, list(relation.columns[:count]), list(relation.columns[count:]), outer

    def _exists(self, node: exp.Expr, scope: Scope) -> Expression:
        relation, _, equal, outer = self._rows(node, scope)
        return are_any(self._joined(count_of_equals(relation, equal, outer)))

    def _member(self, node: exp.Expr, scope: Scope) -> Expression:
        if isinstance(node.this, nodes.RowValue):
            return self._row_member(node, scope)
        relation, selected, equal, outer = self._rows(node, scope)
        check_columns(node, len(selected), 1, scope)
        key, value = fit(node, bind_scalar(node.this, scope), selected[0].expression, scope)
        column = replace(selected[0], expression=value)
        count = self._joined(count_of_equals(relation, [column, *equal], [key, *outer]))
        kind = self._joined(nulls_among(relation, column, equal, outer))
        return is_member(key, Not(IsNull(count)), kind)

    def _row_member(self, node: exp.Expr, scope: Scope) -> Expression:
        written = node.this.expressions
        if self.domain is None or scope.grouping is not None:
            raise scope.place(node).refuse(
                NotSupported,
                "over groups (a, b) IN (SELECT ...) is supported only as a separate condition of HAVING",
                hint="join it to the other conditions by AND, or write "
                "SELECT ... FROM (SELECT ... GROUP BY ...) WHERE (a, b) IN (SELECT ...)",
            )
        relation, selected, equal, outer = self._rows(node, scope)
        check_columns(node, len(selected), len(written), scope)
        fitted = [
            fit(node, bind_scalar(part, scope), output.expression, scope)
            for part, output in zip(written, selected, strict=True)
        ]
        keys = [key for key, _ in fitted]
        values = [replace(one, expression=value) for one, (_, value) in zip(selected, fitted, strict=True)]
        found = self._joined(count_of_equals(relation, [*values, *equal], [*keys, *outer]))
        might = [
            rows_that_might(
                relation, values, equal, keys, outer, self.domain, self._env.text.sql, has_null=has_null
            )
            for has_null in (True, False)
        ]
        return is_row_member(found, [self._joined(each) for each in might if each is not None])

    def _any(self, node: exp.Expr, scope: Scope) -> Expression:
        relation, selected, equal, outer = self._rows(node, scope)
        check_columns(node, len(selected), 1, scope)
        key, value = fit(node, bind_scalar(node.this, scope), selected[0].expression, scope)
        column, op = replace(selected[0], expression=value), node.args["op"]
        wanted = {"<": "MAX", "<=": "MAX", ">": "MIN", ">=": "MIN"}.get(op)
        ends = {
            function: self._joined(extreme(relation, column, equal, outer, function))
            for function in ("MIN", "MAX")
            if wanted in (None, function)
        }
        least, greatest = ends.get("MIN", ends.get("MAX")), ends.get("MAX", ends.get("MIN"))
        assert least is not None
        assert greatest is not None
        kind = self._joined(nulls_among(relation, column, equal, outer))
        return is_member(key, compares_with_any(op, key, least, greatest), kind)

    def _value(self, node: exp.Expr, scope: Scope) -> SubqueryValue:
        query = node.args["query"]
        correlation = Correlation(replace(scope, values=None), domain=self.domain, is_value=True)
        relation = nested(node, self._subselect(query, self._env, correlation), scope)
        outer = tuple(around for _, around in correlation.pairs)
        value, *equal = relation.columns
        count = len(relation.columns) - len(outer)
        if count != 1:
            raise scope.place(query).refuse(
                TypeMismatch,
                f"a subquery in the place of a value has one column, this one has {count}",
                hint="select one column; for a comparison of several write (a, b) IN (SELECT ...)",
            )
        whole = bool(outer) and not (id(node) in self._rejecting and correlation.empty is None)
        if correlation.rows == "one" or (outer and correlation.rows == "at most one"):
            found = Column(0, value.name, value.type)
            places = tuple(range(1, 1 + len(outer)))
            return SubqueryValue(relation, outer, places, found, correlation.empty_of(value.type), whole)
        relation, computed = one_row(relation, is_single=correlation.rows == "at most one")
        places = tuple(range(len(equal)))
        return SubqueryValue(relation, outer, places, computed, correlation.empty_of(value.type), whole)


class ValuesOfGroups:
    """The values that stand over groups: columns that count down until it is known where the groups' end."""

    def __init__(self) -> None:
        self._waiting: list[SubqueryValue] = []
        self._found: dict[int, Expression] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, value: SubqueryValue) -> Expression:
        """What stands for a value until the groups are made."""
        self._waiting.append(value)
        return Column(GROUP_VALUES - len(self._waiting), "value", value.value.type)

    def joined(
        self, relation: BoundRelation, named: Callable[[Expression], Expression], sql: str
    ) -> BoundRelation:
        """The relation of the groups, joined with all of them. named: gives groups' columns their names."""
        for place, value in enumerate(self._waiting, start=1):
            outer = tuple(self.settled(named(expression)) for expression in value.outer)
            relation, found = replace(value, outer=outer).joined(relation, sql)
            self._found[GROUP_VALUES - place] = found
        return relation

    def settled(self, expression: Expression) -> Expression:
        """An expression over what the joins give."""

        def found(node: Expression) -> Expression:
            return self._found.get(node.index, node) if isinstance(node, Column) else node

        return transform(expression, found) if self._found else expression
