"""CREATE STREAM and CREATE TABLE to a stream or a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from engine.language.bind.typenames import bind_type
from engine.language.grammar import nodes
from engine.language.grammar.durations import duration_ms
from engine.language.places import Text, did_you_mean, shown
from engine.language.query import CreateStream, DropStream
from engine.limits import Limits
from engine.model.source import (
    FUTURE_DEFAULT_MS,
    IDLE_TIMEOUT_DEFAULT_MS,
    RETAIN_DEFAULT_MS,
    Field,
    Schema,
    SourceName,
    Stream,
)
from engine.model.types import Kind
from tureen.errors import QueryError, SyntaxRefused, TypeMismatch

PARTITIONS_MAX = 10_000
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_DURATIONS = ("lateness", "idle_timeout", "future_max", "retain")
_OPTIONS = ("topic", "timestamp", "idle_advances", "partitions", *_DURATIONS)


def bind_create(tree: exp.Expr, text: Text, limits: Limits) -> CreateStream:
    """Raises SyntaxRefused, TypeMismatch, NotSupported, LimitExceeded, UnknownColumn."""
    name = str(tree.this.this)
    fields: list[Field] = []
    seen: set[str] = set()
    for column in tree.args["columns"]:
        column_name = str(column.this.this)
        if column_name in seen:
            raise text.of_node(column).refuse(
                SyntaxRefused,
                f"the column {shown(column_name)!r} is declared twice",
                hint="rename one of them",
            )
        seen.add(column_name)
        kind = bind_type(column.args["kind"], text)
        fields.append(Field(column_name, kind, nullable=not column.args.get("not_null")))
    key = _key(tree, fields, text)
    schema = Schema(tuple(replace(f, nullable=False) if f.name in key else f for f in fields))
    options = _Options(tree, text)
    timestamp = options.timestamp(schema)
    retain: nodes.Duration | None = tree.args.get("retain")
    retain_ms = options.duration("retain", RETAIN_DEFAULT_MS)
    if retain is not None:
        if "retain" in options.nodes:
            raise text.of_node(retain).refuse(
                SyntaxRefused, "retention is said twice", hint="leave one of them out"
            )
        retain_ms = int(retain.this)
    if retain_ms > limits.window_ms_max:
        place = text.of_node(retain if retain is not None else options.nodes["retain"])
        raise place.exceeded("window_ms_max", limits.window_ms_max, retain_ms)
    stream = Stream(
        name=SourceName(name),
        schema=schema,
        topic=options.topic(name, tree.this),
        timestamp_column=timestamp,
        lateness_ms=options.duration("lateness", 0),
        idle_timeout_ms=options.duration("idle_timeout", IDLE_TIMEOUT_DEFAULT_MS),
        idle_advances=options.flag("idle_advances"),
        retain_ms=retain_ms,
        future_max_ms=options.duration("future_max", FUTURE_DEFAULT_MS),
        key=key,
        retroactive=_retroactive(tree, timestamp, text),
    )
    if timestamp is None:
        for option in ("lateness", "idle_advances", "future_max"):
            if option in options.nodes:
                raise text.of_node(options.nodes[option]).refuse(
                    SyntaxRefused,
                    f"{option} needs event time",
                    hint="name the column of event time: WITH (timestamp = 'column')",
                )
    return CreateStream(stream, text.sql, options.partitions(), bool(tree.args.get("if_not_exists")))


def _key(tree: exp.Expr, fields: Sequence[Field], text: Text) -> tuple[str, ...]:
    """The columns of a table's key; none of a stream."""
    names = [column.this for column in tree.args["columns"] if column.args.get("key")]
    if tree.args["what"] != "TABLE":
        return ()
    written: list[exp.Expr] | None = tree.args.get("key")
    if len(names) > 1 or (names and written is not None):
        raise text.of_node(names[-1]).refuse(
            SyntaxRefused, "the key is said twice", hint="write PRIMARY KEY (a, b) behind the columns"
        )
    found: list[str] = []
    for name in names or written or ():
        column = str(name.this)
        if all(field.name != column for field in fields):
            raise text.of_node(name).unknown_column(column, (field.name for field in fields))
        if column in found:
            raise text.of_node(name).refuse(
                SyntaxRefused, f"{shown(column)!r} is twice in the key", hint="leave one of them out"
            )
        found.append(column)
    if not found:
        raise text.of_node(tree.this).refuse(
            SyntaxRefused,
            "a table needs a key: it has one row for each",
            hint="write PRIMARY KEY behind a column's type, or PRIMARY KEY (a, b) behind the columns; "
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
    if_exists, what = bool(tree.args.get("if_exists")), tree.args["what"]
    return DropStream(SourceName(str(tree.this.this)), if_exists, view=what == "VIEW", table=what == "TABLE")


class _Options:
    """The settings of WITH by name; each may stand once."""

    def __init__(self, tree: exp.Expr, text: Text) -> None:
        self.text = text
        self.nodes: dict[str, exp.Expr] = {}
        for option in tree.args.get("options") or ():
            name = str(option.args["name"])
            place = text.of_node(option)
            if name not in _OPTIONS:
                hint = did_you_mean(name, _OPTIONS) or "there are " + ", ".join(_OPTIONS)
                raise place.refuse(SyntaxRefused, f"there is no option named {shown(name)!r}", hint=hint)
            if name in self.nodes:
                raise place.refuse(
                    SyntaxRefused, f"the option {name} stands twice", hint="leave one of them out"
                )
            self.nodes[name] = option.args["value"]

    def _wrong(self, name: str, hint: str) -> QueryError:
        node = self.nodes[name]
        return self.text.of_node(node).refuse(TypeMismatch, f"this is not a value of {name}", hint=hint)

    def _value(self, name: str) -> tuple[Any, str]:
        """The value as written, and what it is: string, number, boolean, duration."""
        node = self.nodes[name]
        if isinstance(node, nodes.Duration):
            return node.this, "duration"
        if isinstance(node, exp.Boolean):
            return node.this, "boolean"
        return node.this, "string" if node.args.get("is_string") else "number"

    def topic(self, default: str, name: exp.Expr) -> str:
        if "topic" not in self.nodes:
            if not _legal_topic(default):
                raise self.text.of_node(name).refuse(
                    SyntaxRefused,
                    "this stream's name cannot be a topic's name",
                    hint="name the topic: WITH (topic = 'name'), of letters, digits, dots, - and _",
                )
            return default
        value, kind = self._value("topic")
        if kind != "string" or not _legal_topic(value):
            raise self._wrong("topic", "a topic's name has at most 249 letters, digits, dots, - and _")
        return str(value)

    def timestamp(self, schema: Schema) -> str | None:
        if "timestamp" not in self.nodes:
            return None
        value, kind = self._value("timestamp")
        if kind != "string":
            raise self._wrong("timestamp", "write timestamp = 'column'")
        place = self.text.of_node(self.nodes["timestamp"])
        found = schema.index(value)
        if found is None and schema.index(value.lower()) is not None:
            value, found = value.lower(), schema.index(value.lower())
        if found is None:
            raise place.unknown_column(value, (f.name for f in schema))
        type_ = schema.fields[found].type
        if type_.kind is not Kind.TIMESTAMP:
            raise place.refuse(
                TypeMismatch,
                f"event time needs a TIMESTAMP column, {shown(value)!r} is {type_}",
                hint="declare the column as TIMESTAMP",
            )
        return str(value)

    def duration(self, name: str, default: int) -> int:
        if name not in self.nodes:
            return default
        value, kind = self._value(name)
        ms = duration_ms(value) if kind == "string" else value if kind == "duration" else None
        if ms is None:
            raise self._wrong(name, f"write {name} = '5 seconds'")
        if ms > 2**53:
            raise self._wrong(name, "write a shorter time")
        if name == "idle_timeout" and ms < 1:  # idleness would depend on where steps are cut
            raise self._wrong(name, "write at least '1 millisecond'")
        return int(ms)

    def flag(self, name: str) -> bool:
        if name not in self.nodes:
            return False
        value, kind = self._value(name)
        if kind == "string" and value.lower() in ("true", "false"):
            return bool(value.lower() == "true")
        if kind != "boolean":
            raise self._wrong(name, f"write {name} = true or {name} = false")
        return bool(value)

    def partitions(self) -> int:
        if "partitions" not in self.nodes:
            return 1
        value, kind = self._value("partitions")
        if kind not in ("number", "string") or not str(value).isdecimal() or len(value) > 9:
            raise self._wrong("partitions", "write partitions = 4")
        count = int(value)
        if not 1 <= count <= PARTITIONS_MAX:
            raise self._wrong("partitions", f"write a number from 1 to {PARTITIONS_MAX:,}")
        return count


def _legal_topic(name: str) -> bool:
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")
