"""Avro schemas as they are declared: JSON to types, by Avro's specification 1.12.

Names are resolved, so a recursive type is a type that is reached from itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from topics.formats.unreadable import UnreadableSchema

LEVELS_MAX = 64
TYPES_MAX = 20_000
SCALE_MAX = 64

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMED = ("record", "error", "enum", "fixed")
_LOGICAL_OF_CONNECT = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Timestamp": "timestamp-millis",
    "io.debezium.time.MicroTimestamp": "timestamp-micros",
    "io.debezium.time.NanoTimestamp": "timestamp-nanos",
}
"""What Kafka Connect's names of a type say, which Avro has a logical type for."""
_LOGICAL: Mapping[str, tuple[str, ...]] = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
}
"""Logical types that are read as such -> what they stand on. Others are what they stand on."""


@dataclass(slots=True, eq=False)
class AvroField:
    """default: a value in the schema's JSON, in a list; empty: there is none."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    default: tuple[Any, ...] = ()


@dataclass(slots=True, eq=False)
class AvroType:
    """kind: a primitive, or record, enum, fixed, array, map, union. name: with its namespace. inner: of an
    array, a map, a union's branches. size: of fixed. declared: the JSON it was read from.
    """

    kind: str
    declared: Any = None
    name: str = ""
    aliases: tuple[str, ...] = ()
    logical: str | None = None
    scale: int = 0
    precision: int = 0
    size: int = 0
    symbols: tuple[str, ...] = ()
    symbol_default: str | None = None
    fields: list[AvroField] = field(default_factory=list)
    inner: list[AvroType] = field(default_factory=list)


def parse_schema(text: str, references: Sequence[str] = ()) -> AvroType:
    """The type of a schema. references: schemas with the types that it names. Raises UnreadableSchema."""
    reading = _Reading()
    for one in (*references, text):
        try:
            found = reading.type_of(_loaded(one), "", 0)
        except KeyError as error:
            raise UnreadableSchema(f"it is no Avro schema: {error} is missing") from None
        except (TypeError, AttributeError):
            raise UnreadableSchema(
                "it is no Avro schema: a type, a name or fields are of another form"
            ) from None
    return found


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        # The name of a primitive may stand without quotes.
        if text.strip() in PRIMITIVES:
            return text.strip()
        raise UnreadableSchema("it is no JSON") from None


class _Reading:
    """Reads schemas that share names."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}
        self._types = 0

    def type_of(self, declared: Any, namespace: str, depth: int) -> AvroType:
        self._types += 1
        if depth > LEVELS_MAX or self._types > TYPES_MAX:
            raise UnreadableSchema(
                f"it is nested deeper than {LEVELS_MAX} levels, or has more than {TYPES_MAX:,} types"
            )
        if isinstance(declared, str):
            return (
                AvroType(declared, declared) if declared in PRIMITIVES else self._by_name(declared, namespace)
            )
        if isinstance(declared, list):
            branches = [self.type_of(one, namespace, depth + 1) for one in declared]
            if not branches or any(one.kind == "union" for one in branches):
                raise UnreadableSchema("a union has at least one branch, and no union inside")
            return AvroType("union", declared, inner=branches)
        kind = declared["type"]
        if not isinstance(kind, str):
            return self.type_of(kind, namespace, depth + 1)
        if kind in _NAMED:
            return self._declare(kind, declared, namespace, depth)
        if kind in ("array", "map"):
            inner = self.type_of(declared["items" if kind == "array" else "values"], namespace, depth + 1)
            return AvroType(kind, declared, inner=[inner])
        if kind not in PRIMITIVES:
            return self._by_name(kind, namespace)
        return _with_logical(AvroType(kind, declared), declared)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise UnreadableSchema(f"there is no type {name[:100]!r}")
        return found

    def _declare(self, kind: str, declared: Any, namespace: str, depth: int) -> AvroType:
        name = declared["name"]
        if "." in name:
            namespace = name.rpartition(".")[0]
        else:
            namespace = declared.get("namespace", namespace) or ""
            name = f"{namespace}.{name}" if namespace else name
        made = AvroType("record" if kind == "error" else kind, declared, name)
        made.aliases = tuple(declared.get("aliases", ()))
        self._named[name] = made
        if kind == "fixed":
            made.size = int(declared["size"])
            if made.size < 0:
                raise UnreadableSchema("a fixed has a size of 0 or more")
            return _with_logical(made, declared)
        if kind == "enum":
            made.symbols = tuple(map(str, declared["symbols"]))
            made.symbol_default = declared.get("default")
            return made
        for one in declared["fields"]:
            default = (one["default"],) if "default" in one else ()
            type_ = self.type_of(one["type"], namespace, depth + 1)
            made.fields.append(AvroField(str(one["name"]), type_, tuple(one.get("aliases", ())), default))
        return made


def _with_logical(made: AvroType, declared: Mapping[str, Any]) -> AvroType:
    """With its logical type, if it is one that is read; one that does not fit is passed over."""
    logical = declared.get("logicalType") or _LOGICAL_OF_CONNECT.get(declared.get("connect.name", ""))
    if not isinstance(logical, str) or logical not in _LOGICAL or made.kind not in _LOGICAL[logical]:
        return made
    if logical == "uuid" and made.kind == "fixed" and made.size != 16:
        return made
    if logical == "decimal":
        scale, precision = declared.get("scale", 0), declared.get("precision", 0)
        if (
            type(scale) is not int
            or type(precision) is not int
            or not 0 <= scale <= min(precision, SCALE_MAX)
        ):
            return made
        made.scale, made.precision = scale, precision
    made.logical = logical
    return made
