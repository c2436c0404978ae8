"""INSERT of rows: the records that they are, as JSON has them. Whether these fit, their reader says.

Literals are written as they stand, so that what is wrong with one is told as of any record. Other values are
constants of their columns' types: ``ARRAY[1, 2]``, ``STRUCT(1 AS n)``, ``DATE '2024-01-31' + INTERVAL '1'
DAY``. Of a column that holds JSON, an ARRAY, a STRUCT or a MAP text in quotes is the JSON of its value.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from engine.language.bind.calls import coerce
from engine.language.bind.constants import COMPUTED, NO_CONSTANT, constant_of, constant_scope
from engine.language.bind.environment import Environment
from engine.language.bind.scalar import bind_scalar
from engine.language.instants import date_text, timestamp_text
from engine.language.lengths import as_answered
from engine.language.literals import number_literal
from engine.language.places import Place, shown
from engine.language.promotion import common
from engine.language.query import Insert, InsertedRow, JsonValue
from engine.model.expressions import Expression, Literal
from engine.model.nested.array_literals import elements_of_text
from engine.model.paths import Path, placed
from engine.model.record_format import METADATA, USUAL
from engine.model.source import Derived, Field, SourceName, Stream
from engine.model.types import BYTES, Kind, Logical, Type
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch

_WHOLE = (Kind.INTEGER, Kind.BIGINT, Kind.TIMESTAMP)
_WHOLE_DIGITS_MAX = 40
"""Numbers with more digits before the point fit no type, and are told as they are written."""


def bind_insert(tree: exp.Expr, env: Environment) -> Insert:
    """Raises UnknownSource, UnknownColumn, NotSupported, SyntaxRefused, TypeMismatch."""
    source = target(tree.this, env)
    fields = target_fields(tree.args["columns"], tree.this, source, env)
    rows = tuple(_row(row, fields, source, env.text.of_node(row), env) for row in tree.args["rows"])
    return Insert(source, rows)


def target(node: exp.Expr, env: Environment) -> Stream:
    """The stream or the table that a name stands for, whose records are JSON objects.

    Raises UnknownSource, NotSupported.
    """
    name, place = SourceName(str(node.this)), env.text.of_node(node)
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
    return source


def target_fields(
    names: Sequence[exp.Expr] | None, node: exp.Expr, stream: Stream, env: Environment
) -> tuple[Field, ...]:
    """The columns that are given, in order: all that records hold where none are named.

    Raises UnknownColumn, SyntaxRefused, NotSupported.
    """
    known = {field.name: field for field in stream.schema}
    if names is None:
        found = [field for field in stream.schema if not _tells_of_records(field, stream)]
    else:
        found = []
    for name in names or ():
        text, place = str(name.this), env.text.of_node(name)
        if text not in known:
            raise place.unknown_column(text, known)
        if known[text] in found:
            raise place.refuse(SyntaxRefused, f"{shown(text)} is given twice", hint="leave one of them out")
        if _tells_of_records(known[text], stream):
            raise place.refuse(
                NotSupported,
                f"{shown(text)} tells of the record, which Kafka makes",
                hint="leave it out; records with keys and headers are produced to the topic",
            )
        found.append(known[text])
    try:
        placed([(path_of(field), None) for field in found])
    except ValueError:
        raise env.text.of_node(node).refuse(
            NotSupported,
            f"columns of {shown(stream.name)} are read by PATHs that lead through one another",
            hint="name those columns whose PATHs are beside each other, or produce records to the topic",
        ) from None
    return tuple(found)


def path_of(field: Field) -> Path:
    """Where a column's value stands in a record."""
    return (field.name,) if field.path is None else field.path


def _tells_of_records(field: Field, stream: Stream) -> bool:
    return field.name in METADATA and field.path is None and field.name not in stream.keyed


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
    given = [
        (field, _value(value, field, env.text.of_node(value), env))
        for field, value in zip(fields, values, strict=True)
    ]
    members = placed(
        [
            (path_of(field), value)
            for field, value in given
            if value is not None and field.name not in stream.keyed
        ]
    )
    return InsertedRow(
        _key(stream, {field.name: value for field, value in given}), members, place.line, place.column
    )


def _key(stream: Stream, given: Mapping[str, JsonValue]) -> Any:
    """The key of a record as JSON has it: the value, of several columns a list; None: it has none."""
    values = [given.get(name) for name in stream.keyed]
    if not stream.is_table and all(value is None for value in values):
        return None
    return values if len(values) > 1 else values[0] if values else None


def _value(node: exp.Expr, field: Field, place: Place, env: Environment) -> JsonValue:
    if isinstance(node, exp.Null):
        return None
    if not isinstance(node, exp.Boolean | exp.Literal):
        return _constant(node, field, place, env)
    text = str(node.this)
    if not isinstance(node, exp.Boolean) and node.is_string:
        return text if not field.type.is_nested else _parsed(text, field, place)
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
    if field.type.kind in _WHOLE and (whole := _whole(text)) is not None:
        return whole
    return int(text) if digits.isdecimal() else float(text)


def _whole(text: str) -> int | None:
    """A number that has a point or an exponent and is whole all the same, as 8.0; None: it is none."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    small = value.adjusted() <= _WHOLE_DIGITS_MAX
    return int(value) if small and value == value.to_integral_value() else None


def _parsed(text: str, field: Field, place: Place) -> JsonValue:
    """What JSON is, or an array as PostgreSQL writes it, ``{1,2}``."""
    element = field.type.element
    if field.type.logical is Logical.ARRAY and element is not None and text.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):
            return [_element(one, element) for one in elements_of_text(text)]
    try:
        found: JsonValue = json.loads(text)
    except ValueError:
        is_array = field.type.logical is Logical.ARRAY
        raise place.refuse(
            TypeMismatch,
            f"{shown(field.name)} is a {field.type}, and this is no {'array' if is_array else 'JSON'}",
            hint=_ARRAY_HINT if is_array else _JSON_HINT,
        ) from None
    return found


_ARRAY_HINT = (
    """write ARRAY[1, 2]; or '{1,2}', with an element in double quotes where it has a comma; or '[1, 2]'"""
)
_JSON_HINT = """write '{"a": [1, 2]}', a text in double quotes: '"text"', or ARRAY[1, 2]"""


def _element(text: str | None, type_: Type) -> JsonValue:
    """An element of an array that is written as PostgreSQL does. Raises ValueError."""
    if text is None or (type_.kind in (Kind.STRING, Kind.DATE, Kind.TIMESTAMP) and type_.logical is None):
        return text
    if type_.kind is Kind.BOOLEAN:
        return {"t": True, "true": True, "f": False, "false": False}.get(text.lower(), text)
    if type_.is_nested or type_.kind in (*_WHOLE, Kind.DOUBLE):
        found: JsonValue = json.loads(text)
        return found
    return text


def _constant(node: exp.Expr, field: Field, place: Place, env: Environment) -> JsonValue:
    scope = constant_scope(env, "VALUES")
    value = fitting(bind_scalar(node, scope), field, place)
    found = constant_of(value, field.type)
    if found is None:
        raise place.refuse(NotSupported, NO_CONSTANT, hint=COMPUTED)
    return _as_json(found)


def fitting(value: Expression, field: Field, place: Place) -> Expression:
    """A value of a column's type. Raises TypeMismatch where it would have to be cast."""
    value = as_answered(value)
    if value.type != field.type and common([value.type, field.type]) != field.type:
        raise place.refuse(
            TypeMismatch,
            f"{shown(field.name)} is {field.type}, this is {value.type}",
            hint=f"cast it: CAST(x AS {field.type})",
        )
    return coerce(value, field.type)


def _as_json(constant: Literal) -> JsonValue:
    """What a record has for a value."""
    value: Any = constant.value
    if value is None:
        return None
    if constant.type.is_nested:
        value = json.loads(value)
    elif constant.type == BYTES:
        value = base64.b64encode(bytes.fromhex(value)).decode()
    elif constant.type.kind is Kind.DECIMAL:
        value = str(value)
    elif constant.type.kind is Kind.DATE:
        value = date_text(value)
    elif constant.type.kind is Kind.TIMESTAMP:
        value = timestamp_text(value)
    found: JsonValue = value
    return found
