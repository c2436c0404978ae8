"""INSERT: the records that its rows are, as JSON has them. Whether these fit, their reader says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from engine.language.bind.environment import Environment
from engine.language.literals import number_literal
from engine.language.places import Place, shown
from engine.language.query import Insert, InsertedRow
from engine.model.record_format import USUAL
from engine.model.source import Derived, Field, SourceName, Stream
from engine.model.types import Kind
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch

JsonValue = bool | int | float | str | None


def bind_insert(tree: exp.Expr, env: Environment) -> Insert:
    """Raises UnknownSource, UnknownColumn, NotSupported, SyntaxRefused, TypeMismatch."""
    name, place = SourceName(str(tree.this.this)), env.text.of_node(tree.this)
    source = env.catalogue.get(name)
    if source is None:
        raise place.unknown_source(name, env.catalogue)
    if isinstance(source, Derived):
        raise place.refuse(
            NotSupported,
            f"rows of the {source.kind} {shown(name)} come from its SELECT",
            hint="insert into the stream or the table that it selects from",
        )
    if source.format != USUAL:
        raise place.refuse(
            NotSupported,
            f"INSERT writes JSON, and records of {shown(name)} are in the format {source.format.value}",
            hint="produce records to its topic",
        )
    fields = _fields(tree.args["columns"], source, env)
    if any(field.path is not None for field in fields):
        raise place.refuse(
            NotSupported,
            f"columns of {shown(name)} are read by a PATH from nested records",
            hint="produce records to its topic",
        )
    rows = tuple(_row(row, fields, source, env.text.of_node(row), env) for row in tree.args["rows"])
    return Insert(source, rows)


def _fields(names: Sequence[exp.Expr] | None, stream: Stream, env: Environment) -> tuple[Field, ...]:
    """The columns that are given, in order: all where none are named."""
    if names is None:
        return stream.schema.fields
    known = {field.name: field for field in stream.schema}
    found: list[Field] = []
    for node in names:
        name, place = str(node.this), env.text.of_node(node)
        if name not in known:
            raise place.unknown_column(name, known)
        if known[name] in found:
            raise place.refuse(SyntaxRefused, f"{shown(name)} is given twice", hint="leave one of them out")
        found.append(known[name])
    return tuple(found)


def _row(
    row: exp.Expr, fields: Sequence[Field], stream: Stream, place: Place, env: Environment
) -> InsertedRow:
    values = row.expressions
    if len(values) != len(fields):
        raise place.refuse(
            SyntaxRefused,
            f"this row has {len(values):,} values for {len(fields):,} columns",
            hint="columns, in order: " + ", ".join(field.name for field in fields),
        )
    given = {
        field.name: _value(value, field, env.text.of_node(value))
        for field, value in zip(fields, values, strict=True)
    }
    members = {name: value for name, value in given.items() if value is not None and name not in stream.key}
    return InsertedRow(_key(stream, given), members, place.line, place.column)


def _key(stream: Stream, given: Mapping[str, JsonValue]) -> Any:
    """What the message key of a table's record is, as JSON has it: the value, of several columns a list."""
    values = [given.get(name) for name in stream.key]
    return values if len(values) > 1 else values[0] if values else None


def _value(node: exp.Expr, field: Field, place: Place) -> JsonValue:
    if isinstance(node, exp.Null):
        return None
    text = str(node.this)
    if not isinstance(node, exp.Boolean) and node.is_string:
        return text
    if field.type.kind is Kind.STRING:
        raise place.refuse(
            TypeMismatch, f"{shown(field.name)} is a STRING", hint="write the value in single quotes"
        )
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    digits = text.removeprefix("-")
    number_literal(digits, text != digits, place)
    if field.type.kind is Kind.DECIMAL:
        return text
    return int(text) if digits.isdecimal() else float(text)
