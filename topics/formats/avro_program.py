"""Avro schemas as tables that a compiled reader follows, and how what was written becomes what is read.

Each type of the writer's schema is a node, and where a reader's schema is given, each pair of types that
meet: fields are found by name or alias, those that the writer has not are written with their default, and
types are promoted, as Avro's specification says of schema resolution. What cannot be resolved at all is
:class:`UnreadableSchema`; a branch of a union or a symbol that cannot is refused where a record has it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import fastavro
import numpy as np
import orjson

from topics.formats.avro_schema import AvroField, AvroType
from topics.formats.output import ByteArray, Int64Array
from topics.formats.unreadable import UnreadableSchema

(
    NULL, BOOLEAN, INTEGER, LONG, FLOAT, DOUBLE, BYTES, STRING, FIXED, ENUM, DATE, INSTANT, DECIMAL,
    FIXED_DECIMAL, UUID, REFUSED, UNION, RECORD, ARRAY, MAP, TEXT_BYTES,
) = range(21)  # fmt: skip
COMPLEX = (RECORD, ARRAY, MAP)
NODES_MAX = 50_000

_PLAIN = {
    "null": NULL,
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": BYTES,
    "string": STRING,
}
_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_PER_MS = {"millis": 1, "micros": 1_000, "nanos": 1_000_000}


class Program(NamedTuple):
    """The nodes of a schema; node 0 is the whole. int64 all but text.

    kind: NULL, BOOLEAN, ... param: of FIXED its size, of INSTANT how many units a ms has, of DECIMAL its
    scale, of FIXED_DECIMAL its size * 256 + its scale. first, edges: the edges of a node: fields of a RECORD,
    branches of a UNION, symbols of an ENUM, the elements of an ARRAY or a MAP. to: the node of an edge.
    kept: whether it is written. begin, end: its text in ``text``: the name of a field with its colon, a
    symbol. tail_begin, tail_end: what a RECORD ends with: members that the writer has not.
    """

    kind: Int64Array
    param: Int64Array
    first: Int64Array
    edges: Int64Array
    tail_begin: Int64Array
    tail_end: Int64Array
    to: Int64Array
    kept: Int64Array
    begin: Int64Array
    end: Int64Array
    text: ByteArray


@dataclass(slots=True)
class _Edge:
    to: int
    text: bytes = b""
    kept: bool = True


@dataclass(slots=True)
class _Node:
    kind: int
    param: int = 0
    edges: list[_Edge] = field(default_factory=list)
    tail: bytes = b""


Wanted = Callable[[str], bool]
"""Whether a member of the record itself is read by anybody."""
Default = Callable[[AvroType, bytes], bytes]
"""The JSON of a value that is written in Avro."""


def compile_schema(writer: AvroType, reader: AvroType | None, wanted: Wanted, default: Default) -> Program:
    """The program that reads what was written by a schema, as another has it. Raises UnreadableSchema."""
    compiler = _Compiler(wanted, default)
    compiler.node_of(writer, reader, is_whole=True)
    return _packed(compiler.nodes)


class _Compiler:
    def __init__(self, wanted: Wanted, default: Default) -> None:
        self.nodes: list[_Node] = []
        self._wanted = wanted
        self._default = default
        self._known: dict[tuple[int, int, bool], int] = {}

    def node_of(self, writer: AvroType, reader: AvroType | None, *, is_whole: bool = False) -> int:
        """The node of a type that is read as another; None: as it is."""
        place = (id(writer), id(reader), is_whole)
        if place in self._known:
            return self._known[place]
        at = len(self.nodes)
        if at >= NODES_MAX:
            raise UnreadableSchema(f"it has more than {NODES_MAX:,} types")
        node = _Node(NULL)
        self.nodes.append(node)
        self._known[place] = at
        try:
            self._fill(node, writer, reader, is_whole)
        except UnreadableSchema:
            del self._known[place]
            raise
        return at

    def _fill(self, node: _Node, writer: AvroType, reader: AvroType | None, is_whole: bool) -> None:
        if writer.kind == "union":
            node.kind = UNION
            node.edges = [_Edge(self._branch(one, reader, is_whole)) for one in writer.inner]
            if all(self.nodes[edge.to].kind == REFUSED for edge in node.edges):
                raise UnreadableSchema("no branch of a union is in the reader's schema")
            return
        if reader is not None and reader.kind == "union":
            reader = self._chosen(writer, reader)
        if reader is not None:
            _check(writer, reader)
        match writer.kind:
            case "record":
                node.kind = RECORD
                self._fill_record(node, writer, reader, is_whole)
            case "array" | "map":
                node.kind = ARRAY if writer.kind == "array" else MAP
                inner = None if reader is None else reader.inner[0]
                node.edges = [_Edge(self.node_of(writer.inner[0], inner))]
            case "enum":
                node.kind = ENUM
                node.edges = [_symbol(one, reader) for one in writer.symbols]
            case _:
                node.kind, node.param = _scalar(writer, reader)

    def _branch(self, writer: AvroType, reader: AvroType | None, is_whole: bool) -> int:
        try:
            return self.node_of(writer, reader, is_whole=is_whole)
        except UnreadableSchema:
            if reader is None:
                raise
            self.nodes.append(_Node(REFUSED))
            return len(self.nodes) - 1

    def _chosen(self, writer: AvroType, reader: AvroType) -> AvroType:
        """The branch of the reader's union: one of the same kind, else one that it is promoted to."""
        same = [one for one in reader.inner if one.kind == writer.kind]
        same.sort(key=lambda one: one.name != writer.name)
        for one in (*same, *(one for one in reader.inner if one not in same)):
            try:
                _check(writer, one)
            except UnreadableSchema:
                continue
            return one
        raise UnreadableSchema(f"{_said(writer)} is no branch of the reader's union")

    def _fill_record(self, node: _Node, writer: AvroType, reader: AvroType | None, is_whole: bool) -> None:
        read_as: dict[str, AvroField] = {}
        tail: list[bytes] = []
        if reader is not None:
            written = {one.name for one in writer.fields}
            for one in reader.fields:
                source = next((name for name in (one.name, *one.aliases) if name in written), None)
                if source is not None:
                    read_as[source] = one
                elif not one.default:
                    raise UnreadableSchema(
                        f"the writer has no field {one.name[:100]!r}, and it has no default"
                    )
                elif not is_whole or self._wanted(one.name):
                    tail.append(orjson.dumps(one.name) + b":" + self._default_of(one))
        for field_ in writer.fields:
            target = read_as.get(field_.name)
            name = field_.name if target is None else target.name
            kept = (reader is None or target is not None) and (not is_whole or self._wanted(name))
            to = self.node_of(field_.type, target.type if target is not None and kept else None)
            node.edges.append(_Edge(to, orjson.dumps(name) + b":", kept))
        node.tail = b",".join(tail)

    def _default_of(self, one: AvroField) -> bytes:
        """A field's default as JSON; of a union it is of the first branch."""
        type_ = one.type.inner[0] if one.type.kind == "union" else one.type
        if one.default[0] is None and one.type.kind == "union":
            type_ = next((inner for inner in one.type.inner if inner.kind == "null"), type_)
        try:
            return self._default(type_, _encoded(type_, one.default[0]))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise UnreadableSchema(
                f"the default of {one.name[:100]!r} is none of its type: {error}"
            ) from None


def _encoded(type_: AvroType, value: object) -> bytes:
    """A default in Avro."""
    out = bytearray()
    _encode(type_, value, out)
    return bytes(out)


def _encode(type_: AvroType, value: object, out: bytearray) -> None:
    if type_.kind == "union":
        place = next((at for at, one in enumerate(type_.inner) if (one.kind == "null") == (value is None)), 0)
        out += _long(place)
        _encode(type_.inner[place], value, out)
    elif type_.kind == "record":
        assert isinstance(value, dict)
        for one in type_.fields:
            _encode(one.type, value[one.name] if one.name in value else one.default[0], out)
    elif type_.kind in ("array", "map"):
        assert isinstance(value, list | dict)
        if value:
            out += _long(len(value))
        for item in value:
            if isinstance(value, dict):
                out += _sized(str(item).encode())
            _encode(type_.inner[0], value[item] if isinstance(value, dict) else item, out)
        out += b"\0"
    elif type_.kind == "enum":
        out += _long(type_.symbols.index(str(value)))
    elif type_.kind in ("bytes", "fixed"):
        assert isinstance(value, str)
        raw = value.encode("latin-1")
        out += raw if type_.kind == "fixed" else _sized(raw)
    else:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, type_.kind, value)
        out += buffer.getvalue()


def _long(value: int) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, "long", value)
    return buffer.getvalue()


def _sized(value: bytes) -> bytes:
    return _long(len(value)) + value


def _said(one: AvroType) -> str:
    return f"{one.kind} {one.name}".strip()[:100]


def _check(writer: AvroType, reader: AvroType) -> None:
    """Raise UnreadableSchema where a type is never read as another."""
    if writer.kind != reader.kind:
        if reader.kind in _PROMOTED.get(writer.kind, ()):
            return
        raise UnreadableSchema(f"{_said(writer)} is not read as {_said(reader)}")
    if writer.kind in ("record", "enum", "fixed"):
        names = {one.rpartition(".")[2] for one in (reader.name, *reader.aliases)}
        if writer.name.rpartition(".")[2] not in names or writer.size != reader.size:
            raise UnreadableSchema(f"{_said(writer)} is not read as {_said(reader)}")
    scales = [(one.scale, one.precision) for one in (writer, reader) if one.logical == "decimal"]
    if len(set(scales)) > 1:
        raise UnreadableSchema("decimals of different scale or precision are not read as each other")


def _symbol(symbol: str, reader: AvroType | None) -> _Edge:
    if reader is not None and symbol not in reader.symbols:
        if reader.symbol_default is None:
            return _Edge(0, b"", kept=False)
        symbol = reader.symbol_default
    return _Edge(0, orjson.dumps(symbol))


def _scalar(writer: AvroType, reader: AvroType | None) -> tuple[int, int]:
    """Kind and parameter of a node."""
    logical = writer.logical if reader is None or reader.kind != writer.kind else reader.logical
    if reader is not None and (writer.kind, reader.kind) == ("bytes", "string"):
        return TEXT_BYTES, 0
    if reader is not None and (writer.kind, reader.kind) == ("string", "bytes"):
        return BYTES, 0
    scale = writer.scale if writer.logical == "decimal" else (reader.scale if reader is not None else 0)
    if logical == "decimal":
        return (DECIMAL, scale) if writer.kind == "bytes" else (FIXED_DECIMAL, writer.size * 256 + scale)
    if logical == "uuid" and writer.kind == "fixed":
        return UUID, 0
    if logical == "date":
        return DATE, 0
    if logical is not None and "timestamp" in logical:
        return INSTANT, _PER_MS[logical.rpartition("-")[2]]
    if writer.kind == "fixed":
        return FIXED, writer.size
    return _PLAIN[writer.kind], 0


def _packed(nodes: list[_Node]) -> Program:
    texts = [edge.text for node in nodes for edge in node.edges]
    tails = [node.tail for node in nodes]
    counts = np.array([len(node.edges) for node in nodes], np.int64)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    tail_ends = np.cumsum([len(tail) for tail in tails], dtype=np.int64) + len(b"".join(texts))
    edges = [edge for node in nodes for edge in node.edges]
    return Program(
        np.array([node.kind for node in nodes], np.int64),
        np.array([node.param for node in nodes], np.int64),
        np.cumsum(counts) - counts,
        counts,
        tail_ends - np.array([len(tail) for tail in tails], np.int64),
        tail_ends,
        np.array([edge.to for edge in edges], np.int64),
        np.array([edge.kept for edge in edges], np.int64),
        ends - np.array([len(text) for text in texts], np.int64),
        ends,
        np.frombuffer(b"".join([*texts, *tails]) or b" ", np.uint8),
    )
