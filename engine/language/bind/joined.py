"""A join that is no stage yet: conditions may still go into it, and to the scans below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.algebra.join.stage import Join, JoinKind, Latest
from engine.algebra.project.stage import Output
from engine.language.bind.calls import coerce
from engine.language.promotion import common
from engine.language.render import inner_name
from engine.language.rules import rewrite
from engine.language.rules.tree import transform
from engine.model.expressions import (
    Cast,
    Column,
    Compare,
    Expression,
    Function,
    Literal,
    children,
    columns_of,
    conjunction,
)
from engine.model.types import Kind, Type

if TYPE_CHECKING:
    from engine.language.bind.relation import BoundRelation


@dataclass(frozen=True, slots=True)
class BoundJoin:
    """inner: what is joined; own: its columns, as expressions over what its last stage gives. is_flat: these
    are just what that gives; else they are computed first. offset: where they begin among the join's.

    conditions: over the columns before and inner's, numbered on; not rewritten. alone: the same, over inner's
    alone, for its scan. latest: its ``inner`` is over inner's columns. asked: like conditions, but of the
    partner that ``latest`` chose. key: of a table whose versions are joined, the places of its key's columns:
    only what equals in them may choose among versions.
    """

    inner: BoundRelation
    own: tuple[Expression, ...]
    kind: JoinKind
    offset: int
    sql: str
    is_flat: bool
    conditions: tuple[Expression, ...] = ()
    alone: tuple[Expression, ...] = ()
    latest: Latest | None = None
    asked: tuple[Expression, ...] = ()
    key: tuple[int, ...] | None = None

    @property
    def gives(self) -> bool:
        """Whether inner's columns are among those of the join."""
        return self.kind not in ("semi", "anti")

    @property
    def is_many_one(self) -> bool:
        """Whether a row before it is there once at most behind it: it is kept or not, or joined with the one
        row of a table that equals it in the table's key.
        """
        if self.kind in ("semi", "anti") or (self.latest is not None and self.kind in ("inner", "left")):
            return True
        inner, stream = self.inner, self.inner.stream
        if self.kind not in ("inner", "left") or not stream.is_table:
            return False
        if inner.stages or inner.joins or not self.is_flat:
            return False
        pairs = [pair for condition in self.conditions if (pair := self.pair(condition)) is not None]
        equal = {own.name for _, own in pairs if isinstance(own, Column)}
        return equal >= set(stream.key)

    def columns(self) -> list[tuple[str, Type]]:
        """Inner's, by name and type."""
        given = self.inner.given() if self.is_flat else self.inner.columns
        return [(column.name, column.type) for column in given]

    def sides(self, condition: Expression) -> tuple[bool, bool]:
        """Whether columns before the join stand in it, and whether inner's do."""
        indexes = {column.index for column in columns_of(condition)}
        return any(index < self.offset for index in indexes), any(index >= self.offset for index in indexes)

    def chooses_by(self, condition: Expression) -> bool:
        """Whether a condition over inner's columns may be asked before the partner is chosen."""
        key = self.key
        return key is None or all(column.index - self.offset in key for column in columns_of(condition))

    def pair(self, condition: Expression) -> tuple[Expression, Expression] | None:
        """The sides of ``before = inner`` over their own columns, None where it is something else; or where a
        subquery's rows are counted, which errs for partners alone.
        """
        if not isinstance(condition, Compare) or condition.op != "=" or counts_rows(condition):
            return None
        left, right = condition.left, condition.right
        if self.sides(left) == (False, True):
            left, right = right, left
        if self.sides(left) != (True, False) or self.sides(right) != (False, True):
            return None
        return fitted(left, self.inside(right)) if self.chooses_by(right) else None

    def inside(self, expression: Expression) -> Expression:
        """An expression over inner's columns alone, numbered as inner's query gives them."""
        return self._over(expression, [Column(at, *column) for at, column in enumerate(self.columns())])

    def stage(self) -> Join:
        """The join as it stands now."""
        from engine.language.bind.placing import narrowed  # a relation holds joins, which hold relations

        inner = narrowed(self.inner, [self._over(condition, self.own) for condition in self.alone])
        if self.is_flat:
            inner = replace(inner, columns=tuple(Output(name, column) for name, column in self._plain()))
        keys: dict[tuple[Expression, Expression], None] = {}
        rest: list[Expression] = []
        for condition in self.conditions:
            pair = self.pair(condition)
            if pair is None:
                rest.append(condition)
            else:
                keys[rewrite(pair[0]), rewrite(pair[1])] = None
        rest += self.asked
        query = inner.query(self.sql)
        remaining = self._named(rewrite(conjunction(rest)), inner_name(query)) if rest else None
        return Join(query, self.kind, tuple(keys), remaining, self.latest)

    def _named(self, condition: Expression, name: str) -> Expression:
        """With this name and a dot before the names of inner's columns."""
        columns = [
            Column(self.offset + at, f"{name}.{of}", type_) for at, (of, type_) in enumerate(self.columns())
        ]

        def named(node: Expression) -> Expression:
            if isinstance(node, Column) and node.index >= self.offset:
                return columns[node.index - self.offset]
            return node

        return transform(condition, named)

    def _plain(self) -> list[tuple[str, Column]]:
        return [(column.name, column) for column in self.inner.given()]

    def _over(self, expression: Expression, columns: Sequence[Expression]) -> Expression:
        def moved(node: Expression) -> Expression:
            return columns[node.index - self.offset] if isinstance(node, Column) else node

        return transform(expression, moved)


def counts_rows(expression: Expression) -> bool:
    """Whether it is an error where a subquery has several rows. O(nodes)."""
    if isinstance(expression, Function) and expression.name == "SINGLE":
        return True
    return any(counts_rows(child) for child in children(expression))


def fitted(left: Expression, right: Expression) -> tuple[Expression, Expression] | None:
    """Both expressions in the type that they share, so that they are equal there just where they are equal;
    None: there is none. A value that the type does not hold becomes NULL: nothing of the other equals it.
    """
    type_ = common([left.type, right.type])
    if type_ is None:
        return None

    def cast(expression: Expression) -> Expression:
        if type_.kind is Kind.DECIMAL and expression.type != type_ and not isinstance(expression, Literal):
            return Cast(expression, type_, lenient=True)
        return coerce(expression, type_)

    return cast(left), cast(right)
