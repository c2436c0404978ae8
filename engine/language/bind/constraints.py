"""``CONSTRAINT ...`` of CREATE STREAM to what a stream promises."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.language.bind.environment import Environment
from engine.language.grammar.constraints import FORMS
from engine.language.places import shown
from engine.model.constraint import (
    Clustered,
    Constraint,
    ManyOne,
    Ordered,
    References,
    Unique,
    columns_of,
    target_of,
)
from engine.model.source import Stream
from engine.model.types import Kind, Type
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch

_ORDERED_KINDS = (Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP)


def bind_constraints(written: Sequence[exp.Expr], stream: Stream, env: Environment) -> tuple[Constraint, ...]:
    """What the clauses promise, in their order.

    Raises UnknownColumn, UnknownSource, SyntaxRefused for promises that contradict or repeat each other or
    refer to the stream itself, TypeMismatch, NotSupported, LimitExceeded.
    """
    found: list[Constraint] = []
    for node in written:
        constraint = _bound(node, stream, env)
        for other in found:
            _refuse_together(other, constraint, node, env)
        found.append(constraint)
    return tuple(found)


def _bound(node: exp.Expr, stream: Stream, env: Environment) -> Constraint:
    columns = _columns(node.args["columns"], stream, env)
    rows = node.args.get("rows")
    rows_max = env.limits.constraint_rows_max
    if rows is not None and rows.this > rows_max:
        raise env.text.of_node(rows).exceeded("constraint_rows_max", rows_max, rows.this)
    within_rows = 0 if rows is None else int(rows.this)
    match node.args["kind"]:
        case "ORDERED":
            return Ordered(_ordered(node, columns, stream, env), within_rows)
        case "CLUSTERED":
            return Clustered(columns, within_rows)
        case "UNIQUE":
            return Unique(columns)
    target, target_columns = _target(node, columns, stream, env)
    if node.args["kind"] == "MANY":
        return ManyOne(columns, target.name, target_columns)
    duration = node.args.get("duration")
    if duration is None:
        return References(columns, target.name, target_columns, within_rows)
    if duration.this > env.limits.window_ms_max:
        raise env.text.of_node(duration).exceeded("window_ms_max", env.limits.window_ms_max, duration.this)
    return References(columns, target.name, target_columns, None, int(duration.this))


def _columns(names: Sequence[exp.Expr], stream: Stream, env: Environment) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        column = str(name.this)
        if stream.schema.index(column) is None:
            raise env.text.of_node(name).unknown_column(column, (field.name for field in stream.schema))
        if column in found:
            raise env.text.of_node(name).refuse(
                SyntaxRefused, f"{shown(column)!r} is twice in the constraint", hint="leave one of them out"
            )
        found.append(column)
    return tuple(found)


def _ordered(node: exp.Expr, columns: tuple[str, ...], stream: Stream, env: Environment) -> str:
    """The one column of ORDERED."""
    if len(columns) > 1:
        raise env.text.of_node(node.args["columns"][1]).refuse(
            NotSupported, "ORDERED has one column", hint="write a constraint for each column"
        )
    type_ = _type(stream, columns[0])
    if type_.kind not in _ORDERED_KINDS:
        raise env.text.of_node(node.args["columns"][0]).refuse(
            TypeMismatch,
            f"ORDERED needs a number, a date or a timestamp, {shown(columns[0])!r} is {type_}",
            hint="leave it out, or order by another column",
        )
    return columns[0]


def _target(
    node: exp.Expr, columns: tuple[str, ...], stream: Stream, env: Environment
) -> tuple[Stream, tuple[str, ...]]:
    """The other stream and the columns of it that ours equal, in our order."""
    place = env.text.of_node(node.args["target"])
    name = str(node.args["target"].this)
    if name == stream.name:
        raise place.refuse(
            SyntaxRefused,
            f"{shown(name)} would refer to itself",
            hint="name another stream, or leave the constraint out",
        )
    target = env.catalogue.get(name)
    if target is None:
        raise place.unknown_source(name, env.catalogue)
    if not isinstance(target, Stream) or target.is_table:
        raise place.refuse(
            NotSupported,
            f"{shown(name)} is no stream with columns of its own",
            hint="constraints speak of streams; of a table's key there is one row anyway",
        )
    if target.event_time != stream.event_time:
        raise place.refuse(
            NotSupported,
            f"{shown(name)} has another kind of time than {shown(stream.name)}: no query joins them",
            hint="declare a timestamp column of both, or of neither",
        )
    target_columns = _columns(node.args["target_columns"], target, env)
    if len(target_columns) != len(columns):
        raise env.text.of_node(node.args["target_columns"][0]).refuse(
            SyntaxRefused,
            f"{len(columns)} columns refer to {len(target_columns)}",
            hint="name as many of each",
        )
    for ours, theirs, written in zip(columns, target_columns, node.args["target_columns"], strict=True):
        if not _comparable(_type(stream, ours), _type(target, theirs)):
            raise env.text.of_node(written).refuse(
                TypeMismatch,
                f"{shown(ours)} is {_type(stream, ours)}, {shown(theirs)} of {shown(name)} is "
                f"{_type(target, theirs)}",
                hint="refer to a column of the same type",
            )
    unique = {frozenset(one.columns) for one in target.constraints if isinstance(one, Unique)}
    if frozenset(target_columns) not in unique:
        raise env.text.of_node(node.args["target_columns"][0]).refuse(
            SyntaxRefused,
            f"nothing says that one row of {shown(name)} at most has the same values of these columns",
            hint=f"create {shown(name)} with CONSTRAINT UNIQUE ({', '.join(map(shown, target_columns))})",
        )
    return target, target_columns


def _type(stream: Stream, column: str) -> Type:
    place = stream.schema.index(column)
    assert place is not None
    return stream.schema.fields[place].type


def _comparable(ours: Type, theirs: Type) -> bool:
    """Whether equal values are held alike."""
    return ours == theirs or (ours.is_integer and theirs.is_integer)


def _refuse_together(before: Constraint, after: Constraint, node: exp.Expr, env: Environment) -> None:
    """Raise SyntaxRefused where two promises are the same, or say different things of the same columns."""
    place, form = env.text.of_node(node), FORMS[node.args["kind"]]
    if frozenset(columns_of(before)) != frozenset(columns_of(after)):
        return
    kinds = (ManyOne, References)
    same_kind = type(before) is type(after) or (isinstance(before, kinds) and isinstance(after, kinds))
    if same_kind and target_of(before) == target_of(after):
        what = "is given twice" if before == after else "contradicts an earlier one"
        raise place.refuse(SyntaxRefused, f"this constraint {what}", hint=f"keep one of them: {form}")
    pair = {type(before), type(after)}
    if pair == {Unique, Clustered}:
        raise place.refuse(
            SyntaxRefused,
            "UNIQUE values are CLUSTERED anyway: none comes twice",
            hint="keep UNIQUE, and leave CLUSTERED out",
        )
