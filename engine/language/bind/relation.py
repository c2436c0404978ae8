"""What FROM and the clauses after it have made so far: a scan, stages, joins, and columns that wait to be
computed.

Columns are kept as expressions over what the last stage gives and are computed only where something needs
them computed. So a subquery that merely selects vanishes: its conditions become the scan's, and its
expressions stand wherever its columns are named. Joins wait too, behind the stages, since conditions may
still go into them (:mod:`engine.language.bind.placing`); the next stage makes stages of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import JoinKind
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.streamed.stage import Streamed, StreamOperator
from engine.language.bind.bound_scan import BoundScan
from engine.language.bind.joined import BoundJoin
from engine.language.column_names import another, with_inner
from engine.language.lengths import as_answered
from engine.language.preference import Preference
from engine.language.query import Query, has_streams
from engine.language.rules import rewrite
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Compare, Expression, Literal, columns_of, conjunction
from engine.model.sample import Sample
from engine.model.source import SourceName, Stream
from engine.model.types import INTERVAL, TIME, TIMESTAMP, Type
from engine.windows.assignment import WINDOW_COLUMNS, Assignment
from engine.windows.clauses import UNBOUNDED, RowWindow, Window


class Extent(NamedTuple):
    """How large a relation is. stages: how many there are. depth: how deep semi-joins nest."""

    stages: int
    depth: int

    def over(self, stages: int, inner: Extent | None = None) -> Extent:
        """With more stages, and an inner relation."""
        if inner is None:
            return Extent(self.stages + stages, self.depth)
        return Extent(self.stages + inner.stages + stages, max(self.depth, inner.depth))

    def nested(self) -> Extent:
        """As an inner relation of a semi-join."""
        return Extent(self.stages, self.depth + 1)


_EMPTY = Extent(0, 0)


@dataclass(frozen=True, slots=True)
class BoundRelation:
    """A scan, stages and joins. columns: over what the last stage, or the last of the joins behind it, gives.

    extent: of it, with all inner queries. joins: behind the stages.
    operator: which of its changes its text says it is, where it is a query by itself that somebody names.
    preference: what is wanted first of it, where it is a query by itself.
    below: where its last stage is an UNNEST, and no join is behind it but those in ``joins``: the relation
    that it is over, which conditions on its columns go to.
    """

    scan: BoundScan
    columns: tuple[Output, ...]
    stages: tuple[Stage, ...] = ()
    extent: Extent = _EMPTY
    joins: tuple[BoundJoin, ...] = ()
    operator: StreamOperator | None = None
    preference: Preference | None = None
    below: BoundRelation | None = None

    @property
    def stream(self) -> Stream:
        """The source of its scan."""
        return self.scan.stream

    @property
    def is_open(self) -> bool:
        """Whether a window may still be put over its rows: a selection from all that is retained."""
        return not self.stages and not self.joins and self.scan.window == UNBOUNDED

    @property
    def is_plain(self) -> bool:
        """Whether its columns are columns of what the last stage gives, as they are."""
        return all(isinstance(output.expression, Column) for output in self.columns)

    def then(self, *stages: Stage) -> BoundRelation:
        """With more stages."""
        settled = self.settled()
        extent = settled.extent.over(len(stages))
        return replace(settled, stages=(*settled.stages, *stages), extent=extent)

    def semi_joined(self, join: SemiJoin, inner: BoundRelation) -> BoundRelation:
        """With a semi-join with an inner relation."""
        settled = self.settled()
        return replace(
            settled,
            stages=(*settled.stages, join),
            extent=settled.extent.over(1, inner.extent.nested()),
        )

    def combined(self, operation: SetOperation, inner: BoundRelation) -> BoundRelation:
        """With a set operation with an inner relation; the columns of both are computed."""
        return replace(
            self,
            stages=(*self.stages, operation),
            extent=self.extent.over(1, inner.extent),
        )

    def settled(self) -> BoundRelation:
        """With its joins as stages, behind which nothing goes below them any more."""
        if not self.joins:
            return self if self.below is None else replace(self, below=None)
        stages = (*self.stages, *(join.stage() for join in self.joins))
        return replace(self, stages=stages, joins=(), below=None)

    def joined(self, inner: BoundRelation, kind: JoinKind, sql: str) -> BoundRelation:
        """With one more join, so far without conditions. Columns are those of both sides, even of a join that
        gives its left ones only.
        """
        left = self if self.is_plain or kind not in ("right", "full") else self.computed()
        is_flat = not inner.stages and not inner.joins and (inner.is_plain or kind not in ("left", "full"))
        wanted = inner.given() if is_flat else [output.expression for output in inner.columns]
        given = left.given()
        taken = {column.name for column in given}
        own: list[Column] = []
        for column in inner.given() if is_flat else inner.columns:
            name = another(column.name, taken)
            taken.add(name)
            own.append(Column(len(given) + len(own), name, column.type))

        def moved(node: Expression) -> Expression:
            return own[node.index] if isinstance(node, Column) else node

        columns = [*left.columns]
        names = {output.name for output in columns}
        for place, output in enumerate(inner.columns):
            name = another(output.name, names)
            names.add(name)
            columns.append(Output(name, transform(output.expression, moved) if is_flat else own[place]))
        join = BoundJoin(inner, tuple(wanted), kind, len(given), sql, is_flat)
        return replace(
            left,
            columns=tuple(columns),
            joins=(*left.joins, join),
            extent=left.extent.over(2, inner.extent),
        )

    def with_column(self, name: str, expression: Expression) -> BoundRelation:
        """With one more column, called like this or nearly."""
        column = Output(another(name, {output.name for output in self.columns}), expression)
        return replace(self, columns=(*self.columns, column))

    @property
    def inputs(self) -> int:
        """How many scans its joins read."""
        return _inputs(self.stages) + sum(join.inner.inputs for join in self.joins)

    def given(self) -> tuple[Column, ...]:
        """The columns that the last stage, or the last join behind it, gives."""
        given: Sequence[tuple[str, Type]] = self.scan.columns()
        for stage in self.stages:
            given = stage.columns_above(given)
        for join in self.joins:
            if join.gives:
                given = with_inner(given, join.columns())
        return tuple(Column(place, name, type_) for place, (name, type_) in enumerate(given))

    @property
    def width(self) -> int:
        """How many columns the last stage, or the last join behind it, gives."""
        return len(self.given())

    def computed(self) -> BoundRelation:
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
        if self.joins:
            return False
        naming = (stage for stage in reversed(self.stages) if stage.widens or stage.computed is not None)
        last = next(naming, None)
        if last is None or last.computed is None:
            return False
        names = [name for name, _ in last.computed]
        return names == [output.name for output in self.columns] and all(
            isinstance(output.expression, Column) and output.expression.index == place
            for place, output in enumerate(self.columns)
        )

    def distinct(self) -> BoundRelation:
        """Without equal rows."""
        return self.computed().then(Distinct())

    def windowed(self, window: Window, down_to_ms: int | None = None) -> BoundRelation:
        """With a window over an open relation. What was selected before a window of rows counts for it.
        down_to_ms: how short it may become.
        """
        return replace(self, scan=self.scan.windowed(window, down_to_ms))

    @property
    def open_stream(self) -> int | None:
        """The place of the stage that makes a stream of what is below, if a window may still be put over
        that: nothing but conditions are behind it. None: there is none.
        """
        for place in range(len(self.stages) - 1, -1, -1):
            stage = self.stages[place]
            if stage.stream is not None:
                return place if stage.stream.window == UNBOUNDED and not self.joins else None
            if stage.condition_of_rows is None:
                return None
        return None

    @property
    def has_streams(self) -> bool:
        """Whether a stage makes a stream of what is below, here or in an inner query."""
        return any(join.inner.has_streams for join in self.joins) or has_streams(self.stages)

    def streamed(self, operator: StreamOperator) -> BoundRelation:
        """The changes of the relation as a stream, of which everything is held."""
        if self.is_open and operator == "istream" and not self.stream.is_table:
            return self  # a stream already
        return self.computed().then(Streamed(operator, UNBOUNDED))

    def stream_sampled(self, sample: Sample) -> BoundRelation:
        """With a sample of the elements of its open stream."""
        before, stream, behind = self._at_open_stream()
        return replace(self, stages=(*before, replace(stream, sample=sample), *behind))

    @property
    def stream_sample(self) -> Sample | None:
        """The sample of its open stream."""
        return None if self.open_stream is None else self._at_open_stream()[1].sample

    def stream_windowed(self, window: Window) -> BoundRelation:
        """With a window over its open stream. Conditions behind it come before rows are counted."""
        before, stream, behind = self._at_open_stream()
        if isinstance(window, RowWindow) and behind:
            parts = [each.condition_of_rows for each in behind if each.condition_of_rows is not None]
            parts += [] if window.filter is None else [window.filter]
            window, behind = replace(window, filter=rewrite(conjunction(parts))), ()
        return replace(self, stages=(*before, replace(stream, window=window), *behind))

    def _at_open_stream(self) -> tuple[Sequence[Stage], Streamed, Sequence[Stage]]:
        """The stages before its open stream, that which makes it, and the conditions behind."""
        place = self.open_stream
        assert place is not None
        stream = self.stages[place].stream
        assert stream is not None
        return self.stages[:place], stream, self.stages[place + 1 :]

    @property
    def is_many_one(self) -> bool:
        """Whether each of its rows is one row of the stream of its scan, joined with what that equals."""
        plain = not self.stages and self.scan.assignment is None and not self.stream.is_table
        return plain and all(join.is_many_one for join in self.joins)

    def sampled(self, sample: Sample) -> BoundRelation:
        """With a sample of the rows of an open relation, before its table function, or of one each of whose
        rows is one of its stream.
        """
        return replace(self, scan=self.scan.sampled(sample))

    def assigned(self, assignment: Assignment) -> BoundRelation:
        """With a table function over an open relation."""
        first = len(self.stream.schema)
        columns = tuple(
            Output(name, Column(first + place, name, TIMESTAMP)) for place, name in enumerate(WINDOW_COLUMNS)
        )
        scan = replace(self.scan, assignment=assignment)
        return replace(self, scan=scan, columns=(*self.columns, *columns))

    def narrowed(self, conditions: Iterable[Expression]) -> BoundRelation:
        """Only rows where all conditions, over what the last stage gives, are TRUE; there are no joins."""
        from engine.language.bind.placing import narrowed  # which places conditions among joins of a relation

        assert not self.joins
        if self.below is not None:
            width = self.below.width
            under, conditions = _parted(conditions, width)
            if under:
                return over(self, narrowed(self.below, under)).narrowed(conditions)
        relation, above = self, []
        for condition in conditions:
            if not self.stages and self.scan.takes(condition):
                relation = replace(relation, scan=relation.scan.narrowed(condition))
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

    def _topped(self, condition: Expression) -> tuple[BoundRelation, list[Expression]] | None:
        """``n <= 3`` over a ROW_NUMBER() that comes last: the first of each, and what is left of it."""
        if not self.stages:
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
        top = self.stages[-1].up_to_number(count)
        if top is None:
            return None
        relation = replace(self, stages=(*self.stages[:-1], top))
        return relation, [condition] if op == "=" and count > 1 else []

    def answered(self) -> BoundRelation:
        """With the milliseconds of each INTERVAL in its place, and the text of each TIME."""
        if all(output.type not in (INTERVAL, TIME) for output in self.columns):
            return self
        columns = tuple(Output(output.name, as_answered(output.expression)) for output in self.columns)
        return replace(self, columns=columns)

    def query(self, sql: str, uses: tuple[SourceName, ...] = ()) -> Query:
        """The whole of it."""
        relation = self.computed()
        return Query(sql, relation.scan.made(), relation.stages, uses, preference=relation.preference)


def over(relation: BoundRelation, below: BoundRelation) -> BoundRelation:
    """The relation, whose last stage is an UNNEST, with another one of the same columns below that."""
    return replace(
        below.then(relation.stages[-1]), columns=relation.columns, joins=relation.joins, below=below
    )


def _parted(conditions: Iterable[Expression], width: int) -> tuple[list[Expression], list[Expression]]:
    """Those over the first ``width`` columns alone, and the others."""
    sides: tuple[list[Expression], list[Expression]] = [], []
    for condition in conditions:
        sides[any(column.index >= width for column in columns_of(condition))].append(condition)
    return sides


def _inputs(stages: Iterable[Stage]) -> int:
    """How many scans the joins among these read, and the one below."""
    joins = (stage.join for stage in stages if stage.join is not None)
    return 1 + sum(_inputs(join.inner.stages) for join in joins)


def base(stream: Stream) -> BoundRelation:
    """All rows of a stream."""
    columns = tuple(
        Output(field.name, Column(place, field.name, field.type)) for place, field in enumerate(stream.schema)
    )
    return BoundRelation(BoundScan(stream), columns)


def is_not_null(relation: BoundRelation, expression: Expression) -> bool:
    """Whether an expression over what a relation gives is known to be never NULL: a column declared so."""
    if relation.stages or relation.joins or not isinstance(expression, Column):
        return False
    fields = relation.stream.schema.fields
    return expression.index < len(fields) and not fields[expression.index].nullable
