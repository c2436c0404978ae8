"""Records of the control topics -> commands. Pure; a record that is no command raises a TureenError."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Literal, NotRequired, TypedDict

import orjson

from engine.model.query_name import NAME_OPTION
from topics.json_object import json_object
from topics.wording import FIELDS, Values, checked_name, planned, wording_of
from tureen.errors import LimitExceeded, QueryError, TureenError
from tureen.protocol import QUERY_ID_CHARACTERS

_QUERY_ID = re.compile(rf"[a-z2-7]{{{QUERY_ID_CHARACTERS}}}")
STREAM_NAME_BYTES_MAX = 249
GROWTH_MAX = 5
"""Written again, JSON has at most so many times the bytes: 1e15 becomes 1000000000000000.0."""

Kind = Literal["register", "refuse", "unregister", "create", "drop"]


class Command(TypedDict):
    """A change of the registry.

    ``origin``: partition and offset of its record; absent when it is said again. ``name``: query id or
    stream name. ``refuse``: a registration that is none; ``error`` says why, ``sql`` is the text that it has
    all the same. ``parameters``: of the placeholders in ``sql``, where it is a template.
    """

    kind: Kind
    name: str
    sql: NotRequired[str]
    parameters: NotRequired[Values]
    options: NotRequired[dict[str, Any]]
    error: NotRequired[dict[str, Any]]
    origin: NotRequired[tuple[int, int]]


class MalformedRecord(QueryError):
    """A record on a control topic that does not have the topic's shape."""

    code = "malformed_record"


def query_id_of(key: bytes | None) -> str:
    """The query id that a record's key is. Raises MalformedRecord."""
    text = _text(key, "key")
    if not _QUERY_ID.fullmatch(text):
        raise MalformedRecord(
            "the key is not a query id",
            hint=f"a query id has {QUERY_ID_CHARACTERS} characters of a-z2-7: tureen.query_id(handle)",
        )
    return text


def value_bytes_max(sql_bytes_max: int) -> int:
    """The largest value of a registration or a statement: its text, parameters and options, as JSON.

    JSON may double the bytes of a text by escapes, or make six of one.
    """
    return 6 * sql_bytes_max + 65_536


def entry_bytes_max(sql_bytes_max: int) -> int:
    """What the registry keeps of one at most: what it said, and what became of it."""
    return 2 * value_bytes_max(sql_bytes_max)


def check_size(size: int, sql_bytes_max: int) -> None:
    """Raise LimitExceeded for the value of a registration of this size that is too large."""
    allowed = value_bytes_max(sql_bytes_max)
    if size > allowed:
        raise LimitExceeded(
            "sql_bytes_max",
            sql_bytes_max,
            size,
            hint=f"a registration has at most {allowed:,} bytes with its parameters and options",
        )


def registration(query_id: str, value: bytes | None, sql_bytes_max: int) -> Command:
    """A record of ``.queries``, by its id. Raises MalformedRecord, LimitExceeded."""
    if value is None:
        return {"kind": "unregister", "name": query_id}
    fields = planned(_object(value, sql_bytes_max), MalformedRecord)
    options = fields.get("options")
    if options is None:
        options = {}
    if not isinstance(options, dict):
        raise MalformedRecord("options is not an object", hint='leave it out, or write {"name": "text"}')
    unknown = sorted(fields.keys() - FIELDS - {"options", "name"})
    if unknown:
        raise MalformedRecord(
            f"unknown field {unknown[0]!r}",
            hint='the fields are "sql", or "template" and "parameters", or "plan", and "options" and "name"',
        )
    if fields.get("name") is not None:
        options = options | {NAME_OPTION: checked_name(fields["name"], MalformedRecord)}
    wording = wording_of(fields, sql_bytes_max, MalformedRecord)
    command: Command = {"kind": "register", "name": query_id, "sql": wording.sql, "options": options}
    if wording.parameters is not None:
        command["parameters"] = wording.parameters
    return command


def refusal(query_id: str, value: bytes | None, sql_bytes_max: int, error: TureenError) -> Command:
    """A record of ``.queries`` that is no registration: why, and its text where it has one that is not too
    long, since that is what its user looks for.
    """
    command: Command = {"kind": "refuse", "name": query_id, "error": error.as_dict()}
    with suppress(Exception):  # whatever is wrong with it, it is refused already
        fields = _object(value or b"", sql_bytes_max)
        command["sql"] = _sql({"sql": fields.get("sql", fields.get("template"))}, sql_bytes_max)
    return command


def source(key: bytes | None, value: bytes | None, sql_bytes_max: int) -> Command:
    """A record of ``.sources``. Raises MalformedRecord, LimitExceeded."""
    name = _text(key, "key")
    if not name or len(name.encode()) > STREAM_NAME_BYTES_MAX:
        raise MalformedRecord(f"the key is not a stream name of 1 to {STREAM_NAME_BYTES_MAX} bytes")
    if value is None:
        return {"kind": "drop", "name": name}
    return {"kind": "create", "name": name, "sql": _sql(_object(value, sql_bytes_max), sql_bytes_max)}


def _text(data: bytes | None, what: str) -> str:
    if data is None:
        raise MalformedRecord(f"the record has no {what}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedRecord(f"the {what} is not UTF-8") from None


def _object(value: bytes, sql_bytes_max: int) -> dict[str, Any]:
    check_size(len(value), sql_bytes_max)
    fields = json_object(value, "the value", MalformedRecord, hint='write {"sql": "SELECT ..."}')
    if GROWTH_MAX * len(value) > value_bytes_max(sql_bytes_max):
        check_size(len(orjson.dumps(fields)), sql_bytes_max)
    return fields


def _sql(fields: dict[str, Any], sql_bytes_max: int) -> str:
    sql = fields.get("sql")
    if not isinstance(sql, str) or not sql.strip():
        raise MalformedRecord("sql is missing", hint='write {"sql": "SELECT ..."}')
    size = len(sql.encode("utf-8", "surrogatepass"))
    if size > sql_bytes_max:
        raise LimitExceeded("sql_bytes_max", sql_bytes_max, size, hint="split the query")
    return sql
