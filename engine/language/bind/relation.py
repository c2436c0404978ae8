"""What FROM and the clauses after it have made so far: a scan, stages, and columns that wait to be computed.

Columns are kept as expressions over what the last stage gives and are computed only where something needs
them computed. So a subquery that merely selects vanishes: its conditions become the scan's, and its
expressions stand wherever its columns are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from engine.language.expressions import And, Column, Compare, Expression, Literal, children
from engine.language.query import (
    Aggregate,
    Distinct,
    Filter,
    Output,
    Project,
    Query,
    RowNumber,
    Scan,
    SemiJoin,
    Stage,
)
from engine.language.rules import rewrite
from engine.model.source import SourceName, Stream
from engine.model.types import TIMESTAMP
from engine.windows.assignment import WINDOW_COLUMNS, Assignment, Hop
from engine.windows.clauses import UNBOUNDED, RowWindow, TimeWindow, Window


@dataclass(frozen=True, slots=True)
class Relation:
    """where: what rows of the scan must satisfy, not yet rewritten. columns: over what the last stage gives.

    stages_count: stages here and in all inner queries. joins_depth: how deep semi-joins nest.
    """

    stream: Stream
    columns: tuple[Output, ...]
    where: tuple[Expression, ...] = ()
    window: Window = UNBOUNDED
    assignment: Assignment | None = None
    stages: tuple[Stage, ...] = ()
    stages_count: int = 0
    joins_depth: int = 0

    @property
    def is_open(self) -> bool:
        """Whether a window may still be put over its rows: a selection from all that is retained."""
        return not self.stages and self.window == UNBOUNDED

    def then(self, *stages: Stage) -> Relation:
        """With more stages."""
        count, depth = self.stages_count + len(stages), self.joins_depth
        return replace(self, stages=(*self.stages, *stages), stages_count=count, joins_depth=depth)

    def semi_joined(self, join: SemiJoin, inner: Relation) -> Relation:
        """With a semi-join with an inner relation."""
        return replace(
            self,
            stages=(*self.stages, join),
            stages_count=self.stages_count + inner.stages_count + 1,
            joins_depth=max(self.joins_depth, inner.joins_depth + 1),
        )

    @property
    def width(self) -> int:
        """How many columns the last stage gives."""
        more = 0
        for stage in reversed(self.stages):
            match stage:
                case RowNumber():
                    more += 1
                case Project(outputs):
                    return more + len(outputs)
                case Aggregate(keys, calls):
                    return more + len(keys) + len(calls)
                case _:
                    pass
        return more + len(self.stream.schema) + (0 if self.assignment is None else len(WINDOW_COLUMNS))

    def computed(self) -> Relation:
        """With its columns computed by the last stage."""
        if self._gives_columns():
            return self
        outputs = tuple(Output(output.name, rewrite(output.expression)) for output in self.columns)
        columns = tuple(
            Output(output.name, Column(place, output.name, output.type))
            for place, output in enumerate(self.columns)
        )
        return replace(self.then(Project(outputs)), columns=columns)

    def _gives_columns(self) -> bool:
        """Whether the columns are what the last stage gives, under their names."""
        for stage in reversed(self.stages):
            match stage:
                case RowNumber():
                    return False
                case Project(outputs):
                    names = [output.name for output in outputs]
                case Aggregate(keys, calls):
                    names = [*(key.name for key in keys), *(call.name for call in calls)]
                case _:
                    continue
            return names == [output.name for output in self.columns] and all(
                isinstance(output.expression, Column) and output.expression.index == place
                for place, output in enumerate(self.columns)
            )
        return False

    def distinct(self) -> Relation:
        """Without equal rows."""
        return self.computed().then(Distinct())

    def windowed(self, window: Window) -> Relation:
        """With a window over an open relation. What was selected before a window of rows counts for it."""
        if isinstance(window, RowWindow) and self.where and self.assignment is None:
            parts = [*self.where, *(() if window.filter is None else (window.filter,))]
            window = replace(window, filter=rewrite(conjunction(parts)))
            return replace(self, window=window, where=())
        return replace(self, window=window)

    def assigned(self, assignment: Assignment) -> Relation:
        """With a table function over an open relation."""
        first = len(self.stream.schema)
        columns = tuple(
            Output(name, Column(first + place, name, TIMESTAMP)) for place, name in enumerate(WINDOW_COLUMNS)
        )
        return replace(self, assignment=assignment, columns=(*self.columns, *columns))

    def narrowed(self, conditions: Iterable[Expression]) -> Relation:
        """Only rows where all conditions, over what the last stage gives, are TRUE."""
        relation, above = self, []
        for condition in conditions:
            if not self.stages and self._for_scan(condition):
                relation = replace(relation, where=(*relation.where, condition))
                continue
            topped = relation._topped(condition)
            if topped is None:
                above.append(condition)
            else:
                relation, rest = topped
                above += rest
        if above:
            relation = relation.then(Filter(rewrite(conjunction(above))))
        return relation

    def _for_scan(self, condition: Expression) -> bool:
        if self.assignment is None:
            return True
        if not isinstance(self.assignment, Hop) or not isinstance(self.window, TimeWindow):
            return False
        own = len(self.stream.schema)
        return all(column.index < own for column in columns_of(condition))

    def _topped(self, condition: Expression) -> tuple[Relation, list[Expression]] | None:
        """``n <= 3`` over a ROW_NUMBER() that comes last: the first of each, and what is left of it."""
        last = self.stages[-1] if self.stages else None
        if not isinstance(last, RowNumber) or last.count is not None:
            return None
        match rewrite(condition):
            case Compare(op, Column(index=index), Literal() as literal) if (
                index == self.width - 1 and op in ("<", "<=", "=") and literal.type.is_integer
            ):
                value = literal.value
            case _:
                return None
        if not isinstance(value, int):
            return None
        count = value - 1 if op == "<" else value
        if count < 1:
            return None
        top = replace(self, stages=(*self.stages[:-1], replace(last, count=count)))
        return top, [condition] if op == "=" and count > 1 else []

    def query(self, sql: str, uses: tuple[SourceName, ...] = ()) -> Query:
        """The whole of it."""
        relation = self.computed()
        predicate = rewrite(conjunction(relation.where)) if relation.where else None
        scan = Scan(relation.stream.name, relation.window, predicate, relation.assignment)
        return Query(sql, scan, relation.stages, uses)


def conjunction(conditions: Iterable[Expression]) -> Expression:
    """All conditions, of which there is one at least."""
    operands = tuple(conditions)
    return operands[0] if len(operands) == 1 else And(operands)


def columns_of(expression: Expression) -> Iterator[Column]:
    """The columns in an expression, each as often as it stands there."""
    if isinstance(expression, Column):
        yield expression
    for child in children(expression):
        yield from columns_of(child)


def base(stream: Stream) -> Relation:
    """All rows of a stream."""
    columns = tuple(
        Output(field.name, Column(place, field.name, field.type)) for place, field in enumerate(stream.schema)
    )
    return Relation(stream, columns)
