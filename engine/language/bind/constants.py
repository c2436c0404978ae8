"""VALUES, and SELECT without FROM: rows of constants, and the source that says when there are answers.

Rows of constants need no source, but every scan has one, by whose NOW its query is answered. While a text is
bound it is none of the catalogue (:data:`NO_SOURCE`); then it is one that the query reads anyway, of which
no row is read, so that constants delay and retain nothing. A query of constants alone is answered beside the
first table or stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.constant_rows.stage import ConstantRows
from engine.algebra.project.stage import Output
from engine.language.bind.bound_scan import BoundScan
from engine.language.bind.calls import coerce
from engine.language.bind.environment import Environment
from engine.language.bind.relation import BoundRelation, Extent
from engine.language.bind.scalar import bind_scalar
from engine.language.bind.scope import Scope
from engine.language.evaluate import constant_value
from engine.language.literals import instant_literal
from engine.language.promotion import common
from engine.language.query import Query
from engine.language.rules import rewrite
from engine.model.expressions import Column, Expression, Literal, calls_user
from engine.model.source import Schema, SourceName, Stream
from engine.model.types import BOOLEAN, INTEGER, STRING, Kind, Type
from engine.windows.clauses import NOW, UNBOUNDED, Instant, TimeWindow
from tureen.errors import NotSupported, TypeMismatch

NO_SOURCE = Stream(SourceName(""), Schema(()), "")
"""No name is empty."""
_AT_NOW = TimeWindow(Instant(relative=True, ms=0), NOW)
NO_CONSTANT = "this value is an error, or a function of yours"
COMPUTED = "rows of constants take constants; compute in SELECT"
_FALSE = Literal(False, BOOLEAN)


def constant_relation(
    names: Sequence[str], types: Sequence[Type], rows: Sequence[Sequence[Literal]]
) -> BoundRelation:
    """The relation of these rows."""
    columns = tuple(zip(names, types, strict=True))
    stage = ConstantRows(columns, tuple(map(tuple, rows)))
    outputs = tuple(Output(name, Column(place, name, type_)) for place, (name, type_) in enumerate(columns))
    return BoundRelation(
        BoundScan(NO_SOURCE, (_FALSE,), _AT_NOW), outputs, stages=(stage,), extent=Extent(1, 0)
    )


def bind_rows(tree: exp.Expr, env: Environment) -> BoundRelation:
    """What ValueRows gives: columns of the types that all rows have in common.

    Raises TypeMismatch, NotSupported for what is no constant, and what binding expressions raises.
    """
    rows: list[exp.Expr] = tree.expressions
    if not rows:
        relation = constant_relation(("one",), (INTEGER,), ((Literal(1, INTEGER),),))
        return replace(relation, columns=())
    scope = constant_scope(env, "VALUES")
    columns = [
        _column(place, [row.expressions[place] for row in rows], scope)
        for place in range(len(rows[0].expressions))
    ]
    names = [f"column_{place + 1}" for place in range(len(columns))]
    found = zip(*(column for _, column in columns), strict=True)
    return constant_relation(names, [type_ for type_, _ in columns], [*found])


def _column(place: int, written: Sequence[exp.Expr], scope: Scope) -> tuple[Type, list[Literal]]:
    """The type of a column, and its values."""
    type_, values = column_of_rows(place, written, scope)
    found: list[Literal] = []
    for value, node in zip(values, written, strict=True):
        constant = constant_of(value, type_)
        if constant is None:
            raise scope.place(node).refuse(NotSupported, NO_CONSTANT, hint=COMPUTED)
        found.append(constant)
    return type_, found


def column_of_rows(place: int, written: Sequence[exp.Expr], scope: Scope) -> tuple[Type, list[Expression]]:
    """The type that a column of VALUES has, and its values, of their own types. Raises TypeMismatch."""
    values = [bind_scalar(node, scope) for node in written]
    type_ = common([value.type for value in values if not _is_text(value)])
    if type_ is not None and type_.kind in (Kind.DATE, Kind.TIMESTAMP):
        values = [
            instant_literal(value, type_, scope.place(node))
            if isinstance(value, Literal) and value.type == STRING
            else value
            for value, node in zip(values, written, strict=True)
        ]
    type_ = values[0].type
    for value, node in zip(values, written, strict=True):
        joined = common([type_, value.type])
        if joined is None:
            raise scope.place(node).refuse(
                TypeMismatch,
                f"column {place + 1} of VALUES is {type_} before and {value.type} here",
                hint="cast one of them: CAST(x AS TYPE)",
            )
        type_ = joined
    return type_, values


def constant_scope(env: Environment, clause: str) -> Scope:
    """Where expressions stand that name no column."""
    return env.scope(constant_relation((), (), ((),)), None).at(clause)


def constant_of(expression: Expression, type_: Type) -> Literal | None:
    """The value of an expression without columns, as one of a type; None for an error or a user's
    function.
    """
    return None if calls_user(expression) else constant_value(rewrite(coerce(expression, type_)))


def _is_text(value: Expression) -> bool:
    return isinstance(value, Literal) and value.type == STRING


def is_constant(relation: BoundRelation) -> bool:
    """Whether its rows are those of constants, joined with nothing."""
    return relation.stream is NO_SOURCE and not relation.joins


def refuse_clauses_of_constants(relation: BoundRelation, item: exp.Expr, env: Environment) -> None:
    """Raise NotSupported for a window, a SAMPLE or a stream operator over rows that never come or go."""
    if not is_constant(relation):
        return
    for what, part in (("no window", "window"), ("no SAMPLE", "sample")):
        if item.args.get(part) is not None:
            raise env.text.of_node(item.args[part]).refuse(
                NotSupported, f"rows of constants have {what}", hint="leave it out"
            )
    if relation.operator is not None:
        raise env.text.of_node(item).refuse(
            NotSupported,
            f"rows of constants never change: there is no {relation.operator.upper()} of them",
            hint="leave it out",
        )


def with_source(query: Query, env: Environment) -> Query:
    """The query with a source for its constants. Raises NotSupported where there is none."""
    if NO_SOURCE.name not in query.sources:
        return query
    named = [name for name in query.sources if name != NO_SOURCE.name]
    known = {name: one for name, one in env.catalogue.items() if isinstance(one, Stream)}
    if not named:
        tables = sorted(name for name, one in known.items() if one.is_table)
        named = [SourceName(name) for name in (*tables, *sorted(known.keys() - set(tables)))]
    if not named:
        raise env.text.at(0).refuse(
            NotSupported,
            "a query of constants alone is answered beside a stream or a table, and there is none",
            hint="make one with CREATE STREAM first",
        )
    source = known[named[0]]
    env.met.setdefault(source.name, env.text.at(0))
    return _moved(query, source)


def _moved(query: Query, source: Stream) -> Query:
    scan = query.scan
    if scan.source == NO_SOURCE.name:
        window = UNBOUNDED if source.is_table else scan.window
        scan = replace(scan, source=source.name, window=window)
    stages = [
        stage if stage.right_input is None else stage.with_right_input(_moved(stage.right_input, source))
        for stage in query.stages
    ]
    return replace(query, scan=scan, stages=tuple(stages))
