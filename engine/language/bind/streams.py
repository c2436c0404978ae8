"""CREATE STREAM and CREATE TABLE to a stream or a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.language import known_options
from engine.language.bind.constraints import bind_constraints
from engine.language.bind.environment import Environment
from engine.language.bind.formats import bind_format
from engine.language.bind.options import WithOptions
from engine.language.bind.typenames import bind_type
from engine.language.grammar import nodes
from engine.language.places import Place, Text, shown
from engine.language.query import CreateStream, DropStream
from engine.model.paths import NoPath, Path, parse_path
from engine.model.source import (
    FUTURE_DEFAULT_MS,
    IDLE_TIMEOUT_DEFAULT_MS,
    RETAIN_DEFAULT_MS,
    Field,
    Schema,
    SourceName,
    Stream,
)
from engine.model.types import Kind, Type
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch

PARTITIONS_MAX = 10_000
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def _fields(tree: exp.Expr, text: Text) -> list[Field]:
    """The columns as they are declared. Raises SyntaxRefused, TypeMismatch."""
    fields: dict[str, Field] = {}
    for column in tree.args["columns"]:
        name = str(column.this.this)
        if name in fields:
            raise text.of_node(column).refuse(
                SyntaxRefused, f"the column {shown(name)!r} is declared twice", hint="rename one of them"
            )
        kind = bind_type(column.args["kind"], text, declared=True)
        nullable = not column.args.get("not_null")
        fields[name] = Field(name, kind, nullable, _path(column.args.get("path"), kind, text))
    return list(fields.values())


def _path(written: exp.Expr | None, type_: Type, text: Text) -> Path | None:
    """PATH '...' of a column. Raises SyntaxRefused."""
    if written is None:
        return None
    place, hint = text.of_node(written), 'write $.member.inner, $.list[0], or $."a name" for other names'
    try:
        path = parse_path(str(written.this))
    except NoPath as error:
        raise place.refuse(SyntaxRefused, f"this is no path: {error}", hint=hint) from None
    if not path and not type_.is_nested:
        raise place.refuse(SyntaxRefused, f"$ is the whole record, which is no {type_}", hint=hint)
    if path and isinstance(path[0], int):
        raise place.refuse(SyntaxRefused, "a record is an object, which has no elements", hint=hint)
    return path


def bind_create(tree: exp.Expr, env: Environment) -> CreateStream:
    """Raises SyntaxRefused, TypeMismatch, NotSupported, LimitExceeded, UnknownColumn, UnknownSource."""
    text, limits = env.text, env.limits
    name = str(tree.this.this)
    fields = _fields(tree, text)
    key = _key(tree, fields, text)
    is_table = tree.args["what"] == "TABLE"
    schema = Schema(tuple(_keyed(field, is_table) if field.name in key else field for field in fields))
    options = WithOptions(tree.args.get("options") or (), tuple(known_options.STREAM), text)
    timestamp = _timestamp(options, schema)
    retain: nodes.Duration | None = tree.args.get("retain")
    retain_ms = options.duration("retain", RETAIN_DEFAULT_MS)
    if retain is not None:
        if "retain" in options:
            raise text.of_node(retain).refuse(
                SyntaxRefused, "retention is given twice", hint="leave one of them out"
            )
        retain_ms = int(retain.this)
    if retain_ms > limits.window_ms_max:
        place = text.of_node(retain) if retain is not None else options.place("retain")
        raise place.exceeded("window_ms_max", limits.window_ms_max, retain_ms)
    stream = Stream(
        name=SourceName(name),
        schema=schema,
        topic=_topic(options, name, text.of_node(tree.this)),
        timestamp_column=timestamp,
        lateness_ms=options.duration("lateness", 0),
        idle_timeout_ms=_idle_timeout_ms(options),
        idle_advances=options.flag("idle_advances", default=False),
        retain_ms=retain_ms,
        future_max_ms=options.duration("future_max", FUTURE_DEFAULT_MS),
        past_max_ms=options.duration("past_max", 0) if "past_max" in options else None,
        key=key if is_table else (),
        retroactive=_retroactive(tree, timestamp, text),
        format=bind_format(options, fields, key, text.of_node(tree.this), is_table=is_table),
    )
    if timestamp is None:
        for option in ("lateness", "idle_advances", "future_max", "past_max"):
            if option in options:
                raise options.place(option).refuse(
                    SyntaxRefused,
                    f"{option} needs event time",
                    hint="name the column of event time: WITH (timestamp = 'column')",
                )
    stream = replace(stream, constraints=bind_constraints(tree.args.get("constraints") or (), stream, env))
    partitions = options.number("partitions", 1, PARTITIONS_MAX)
    return CreateStream(
        stream,
        text.sql,
        partitions,
        bool(tree.args.get("if_not_exists")),
        options.flag("create_topic", default=True),
    )


def _idle_timeout_ms(options: WithOptions) -> int:
    ms = options.duration("idle_timeout", IDLE_TIMEOUT_DEFAULT_MS)
    if ms < 1:  # idleness would depend on where steps are cut
        raise options.wrong("idle_timeout", "write at least '1 millisecond'")
    return ms


def _keyed(field: Field, is_table: bool) -> Field:
    """A column that is read from the record's key."""
    return replace(field, nullable=False) if is_table else replace(field, from_key=True)


def _key(tree: exp.Expr, fields: Sequence[Field], text: Text) -> tuple[str, ...]:
    """The columns that are read from the record's key: of a table those of its key."""
    names = [column.this for column in tree.args["columns"] if column.args.get("key")]
    is_table = tree.args["what"] == "TABLE"
    written: list[exp.Expr] | None = tree.args.get("key")
    if is_table and (len(names) > 1 or (names and written is not None)):
        raise text.of_node(names[-1]).refuse(
            SyntaxRefused, "the key is given twice", hint="write PRIMARY KEY (a, b) after the columns"
        )
    found: list[str] = []
    for name in names or written or ():
        column = str(name.this)
        declared = next((field for field in fields if field.name == column), None)
        if declared is None:
            raise text.of_node(name).unknown_column(column, (field.name for field in fields))
        if declared.type.is_nested:
            raise text.of_node(name).refuse(
                NotSupported,
                f"{shown(column)!r} is {declared.type}, and a key is made of plain values",
                hint="declare a column for each member of the key",
            )
        if declared.path is not None:
            raise text.of_node(name).refuse(
                NotSupported,
                f"{shown(column)!r} has a PATH, and a column of the key is read from the message's key",
                hint="leave PATH out; the key may be a JSON object with a member of the column's name",
            )
        if column in found:
            raise text.of_node(name).refuse(
                SyntaxRefused, f"{shown(column)!r} is twice in the key", hint="leave one of them out"
            )
        found.append(column)
    if is_table and not found:
        raise text.of_node(tree.this).refuse(
            SyntaxRefused,
            "a table needs a key: it has one row for each value of it",
            hint="write PRIMARY KEY after a column's type, or PRIMARY KEY (a, b) after the columns; "
            "or CREATE STREAM",
        )
    return tuple(found)


def _retroactive(tree: exp.Expr, timestamp: str | None, text: Text) -> bool:
    written = tree.args.get("retroactive")
    if written is None or written.this:
        return True
    if timestamp is None:
        raise text.of_node(written).refuse(
            SyntaxRefused,
            "NON RETROACTIVE needs event time: rows meet the version as of their instant",
            hint="name the column of event time: WITH (timestamp = 'column')",
        )
    return False


def bind_drop(tree: exp.Expr) -> DropStream:
    """DROP STREAM, DROP TABLE, DROP VIEW."""
    what = tree.args["what"]
    return DropStream(
        SourceName(str(tree.this.this)),
        if_exists=bool(tree.args.get("if_exists")),
        view=what == "VIEW",
        table=what == "TABLE",
        cascade=bool(tree.args.get("cascade")),
        materialized=bool(tree.args.get("materialized")),
    )


def _topic(options: WithOptions, default: str, name: Place) -> str:
    """The topic; ``default``, the stream's name, which stands at ``name``, where none is said."""
    if "topic" not in options:
        if not is_topic(default):
            raise name.refuse(
                SyntaxRefused,
                "this stream's name cannot be a topic's name",
                hint="name the topic: WITH (topic = 'name'), of letters, digits, dots, - and _",
            )
        return default
    topic = options.string("topic")
    if topic is None or not is_topic(topic):
        raise options.wrong("topic", "a topic's name has at most 249 letters, digits, dots, - and _")
    return topic


def _timestamp(options: WithOptions, schema: Schema) -> str | None:
    """The column of event time."""
    if "timestamp" not in options:
        return None
    column = options.string("timestamp")
    if column is None:
        raise options.wrong("timestamp", "write timestamp = 'column'")
    place = options.place("timestamp")
    found = schema.index(column)
    if found is None and schema.index(column.lower()) is not None:
        column, found = column.lower(), schema.index(column.lower())
    if found is None:
        raise place.unknown_column(column, (f.name for f in schema))
    type_ = schema.fields[found].type
    if type_.kind is not Kind.TIMESTAMP:
        raise place.refuse(
            TypeMismatch,
            f"event time needs a TIMESTAMP column, {shown(column)!r} is {type_}",
            hint="declare the column as TIMESTAMP",
        )
    return column


def is_topic(name: str) -> bool:
    """Whether Kafka takes a name for a topic."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")
