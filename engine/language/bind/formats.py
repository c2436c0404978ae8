"""What WITH says of how records are written, to a :class:`~engine.model.record_format.RecordFormat`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from engine.language.bind.options import WithOptions
from engine.language.places import Place, shown
from engine.model.record_format import DELIMITER, FormatName, KeyFormat, RecordFormat
from engine.model.source import Field
from engine.model.types import BIGINT, BYTES, INTEGER, JSON, STRING, TIMESTAMP, Kind, Logical, Type
from tureen.errors import NotSupported, SyntaxRefused

_OF_FORMAT: Mapping[str, tuple[FormatName, ...]] = {
    "delimiter": ("csv",),
    "schema": ("avro", "protobuf"),
    "message": ("protobuf",),
    "framed": ("avro",),
    "changelog": ("debezium",),
}
"""Options -> the formats that have them."""

_METADATA_TYPES: Mapping[str, tuple[tuple[Type, ...], str]] = {
    "_key": ((STRING, BYTES), "STRING or BYTES"),
    "_partition": ((INTEGER, BIGINT), "INTEGER or BIGINT"),
    "_offset": ((BIGINT,), "BIGINT"),
    "_timestamp": ((TIMESTAMP, BIGINT), "TIMESTAMP or BIGINT"),
    "_headers": ((JSON,), "MAP<STRING, STRING>, MAP<STRING, BYTES> or JSON"),
}


def bind_format(
    options: WithOptions, fields: Sequence[Field], key: Sequence[str], name: Place, *, is_table: bool
) -> RecordFormat:
    """fields: all columns. key: those that are read from the key. name: where the statement's name stands.

    Raises SyntaxRefused, TypeMismatch, NotSupported.
    """
    written = written_format(options)
    apart = {*key, *(field.name for field in fields if _is_metadata(field, key, name))}
    others = [field for field in fields if field.name not in apart]
    if written.value in ("csv", "raw"):
        _check_flat(written.value, others, name)
    if written.value == "debezium" and written.changelog == is_table:
        raise options.place("changelog" if written.changelog else "format").refuse(
            SyntaxRefused,
            "change events are the rows of a table, or of a stream of changes",
            hint="write CREATE TABLE without changelog, or CREATE STREAM with changelog = true",
        )
    if written.key is not None and not key:
        raise options.place("key_format").refuse(
            SyntaxRefused,
            "no column is read from the keys of the records",
            hint="leave it out, or write KEY behind the columns that are",
        )
    return written


def written_format(options: WithOptions) -> RecordFormat:
    """What options say, whatever the columns are. Raises SyntaxRefused, TypeMismatch."""
    value: FormatName = options.choice("format", get_args(FormatName), "json")  # type: ignore[assignment]
    for option, formats in _OF_FORMAT.items():
        if option in options and value not in formats:
            raise options.place(option).refuse(
                SyntaxRefused,
                f"{option} has no meaning in the format {value}",
                hint=f"leave it out, or write format = {' or '.join(map(repr, formats))}",
            )
    schema = _schema(options, value) if "schema" in options else None
    message = _message(options, schema)
    framed = options.flag("framed", default=schema is None)
    if schema is None and not framed:
        raise options.place("framed").refuse(
            SyntaxRefused,
            "records that name no schema are read by one that is given",
            hint="write schema = '...', or leave framed = false out",
        )
    changelog = options.flag("changelog", default=False)
    key_format = key_format_of(options)
    return RecordFormat(value, _delimiter(options), schema, message, framed, changelog, key_format)


def key_format_of(options: WithOptions) -> KeyFormat | None:
    """The format of keys as it is given. Raises TypeMismatch."""
    if "key_format" not in options:
        return None
    return options.choice("key_format", get_args(KeyFormat), "json")  # type: ignore[return-value]


def _schema(options: WithOptions, value: FormatName) -> str:
    given = options.string("schema")
    if not given:
        example = """'syntax = "proto3"; ...'""" if value == "protobuf" else """'{"type": "record", ...}'"""
        raise options.wrong("schema", f"write schema = {example}")
    return given


def _message(options: WithOptions, schema: str | None) -> str | None:
    if "message" not in options:
        return None
    if schema is None:
        raise options.place("message").refuse(
            SyntaxRefused,
            "records that name a schema say which of its messages they are",
            hint="leave it out, or write schema = '...'",
        )
    given = options.string("message")
    if not given:
        raise options.wrong("message", "write message = 'Name', or 'package.Name'")
    return given


def _is_metadata(field: Field, key: Sequence[str], place: Place) -> bool:
    """Whether a column tells of the record. Raises NotSupported where its type does not."""
    if field.name not in _METADATA_TYPES or field.path is not None or field.name in key:
        return False
    types, said = _METADATA_TYPES[field.name]
    if field.type not in types and not (field.name == "_headers" and field.type.logical is Logical.MAP):
        raise place.refuse(
            NotSupported,
            f"{field.name} tells of the record, and is {said}, not {field.type}",
            hint=f"declare it so, or write PATH '$.{field.name}' to read a member of this name",
        )
    return True


def _check_flat(value: FormatName, fields: Sequence[Field], name: Place) -> None:
    """Refuse columns that a record of the format does not have."""
    pathed = next((field.name for field in fields if field.path is not None), None)
    if pathed is not None:
        raise name.refuse(
            NotSupported,
            f"the column {shown(pathed)!r} has a PATH, and records in the format {value} have no members",
            hint="leave PATH out",
        )
    if value == "raw" and (len(fields) != 1 or not _is_raw(fields[0])):
        raise name.refuse(
            NotSupported,
            "a record in the format raw is one column, a STRING or BYTES",
            hint=f"declare one such column, as {shown(fields[0].name) if fields else 'value'} STRING",
        )
    if not fields:
        raise name.refuse(
            NotSupported, "a record in the format csv has at least one column", hint="declare one"
        )


def _is_raw(field: Field) -> bool:
    return field.type.kind is Kind.STRING and field.type.logical in (None, Logical.BYTES)


def _delimiter(options: WithOptions) -> str:
    if "delimiter" not in options:
        return DELIMITER
    given = options.string("delimiter")
    if given is None or len(given) != 1 or not given.isascii() or given in '"\r\n\0':
        raise options.wrong("delimiter", "write one character of ASCII, as ';', that is no quote")
    return given
