"""Protobuf messages as tables that a compiled reader follows.

Each message that can be reached is a node, each of its fields an edge, ordered by number. Well-known types
are kinds of their own.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from topics.compiled import inlined
from topics.formats.output import ByteArray, Int64Array
from topics.formats.unreadable import UnreadableSchema

(
    INT32, INT64, UINT32, UINT64, SINT32, SINT64, BOOL, ENUM, CLOSED_ENUM, NULL,
    FIXED32, SFIXED32, FLOAT, FIXED64, SFIXED64, DOUBLE, STRING, BYTES,
    MESSAGE, BARE, TIMESTAMP, DURATION, DECIMAL, DATE, WRAPPER, VALUE, ENTRY, GROUP, PACKED,
) = range(29)  # fmt: skip
IS_BARE, FIRST, COUNT, WIRES, DEFAULT_FIRST, DEFAULT_COUNT = range(6)
"""Columns of ``nodes``; FIRST and COUNT of ``enums`` too."""
NUMBER, NAME, NAME_END, KIND_OF, NODE_OF, IS_MANY, SLOT, WIRE_TYPE, IS_KEPT, DEFAULT, DEFAULT_END = range(11)
"""Columns of ``edges``; NUMBER, NAME and NAME_END of ``symbols`` too."""
EDGES_MAX = 50_000

_PLAIN: Mapping[int, int] = {
    FieldDescriptor.TYPE_INT32: INT32,
    FieldDescriptor.TYPE_INT64: INT64,
    FieldDescriptor.TYPE_UINT32: UINT32,
    FieldDescriptor.TYPE_UINT64: UINT64,
    FieldDescriptor.TYPE_SINT32: SINT32,
    FieldDescriptor.TYPE_SINT64: SINT64,
    FieldDescriptor.TYPE_BOOL: BOOL,
    FieldDescriptor.TYPE_FIXED32: FIXED32,
    FieldDescriptor.TYPE_SFIXED32: SFIXED32,
    FieldDescriptor.TYPE_FLOAT: FLOAT,
    FieldDescriptor.TYPE_FIXED64: FIXED64,
    FieldDescriptor.TYPE_SFIXED64: SFIXED64,
    FieldDescriptor.TYPE_DOUBLE: DOUBLE,
    FieldDescriptor.TYPE_STRING: STRING,
    FieldDescriptor.TYPE_BYTES: BYTES,
    FieldDescriptor.TYPE_GROUP: GROUP,
}
_INT32, _INT64, _UINT32, _UINT64 = (
    FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_UINT32,
    FieldDescriptor.TYPE_UINT64,
)
_FLOAT, _DOUBLE, _BOOL = FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_BOOL
_STRING, _BYTES = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES
_ENUM, _MESSAGE = FieldDescriptor.TYPE_ENUM, FieldDescriptor.TYPE_MESSAGE
_WELL_KNOWN: Mapping[str, tuple[int, tuple[int, ...]]] = {
    "google.protobuf.Timestamp": (TIMESTAMP, (_INT64, _INT32)),
    "google.protobuf.Duration": (DURATION, (_INT64, _INT32)),
    "google.protobuf.Struct": (BARE, (_MESSAGE,)),
    "google.protobuf.ListValue": (BARE, (_MESSAGE,)),
    "google.protobuf.Value": (VALUE, (_ENUM, _DOUBLE, _STRING, _BOOL, _MESSAGE, _MESSAGE)),
    "google.protobuf.DoubleValue": (WRAPPER, (_DOUBLE,)),
    "google.protobuf.FloatValue": (WRAPPER, (_FLOAT,)),
    "google.protobuf.Int64Value": (WRAPPER, (_INT64,)),
    "google.protobuf.UInt64Value": (WRAPPER, (_UINT64,)),
    "google.protobuf.Int32Value": (WRAPPER, (_INT32,)),
    "google.protobuf.UInt32Value": (WRAPPER, (_UINT32,)),
    "google.protobuf.BoolValue": (WRAPPER, (_BOOL,)),
    "google.protobuf.StringValue": (WRAPPER, (_STRING,)),
    "google.protobuf.BytesValue": (WRAPPER, (_BYTES,)),
    "google.type.Date": (DATE, (_INT32, _INT32, _INT32)),
    "confluent.type.Decimal": (DECIMAL, (_BYTES, _UINT32, _INT32)),
}
"""Messages that are read as a kind of their own: the types of their fields, whose numbers are 1, 2, ..."""


class Program(NamedTuple):
    """A message's nodes and edges, a row each. Edge 0 leads to the message itself. int64 all but text.

    nodes: IS_BARE: it is what its only field is. FIRST, COUNT: its edges, by number. WIRES: the wire types of
    its fields 1 to 7, four bits each, 15 for none. DEFAULT_FIRST, DEFAULT_COUNT: places in ``defaults``.
    edges: NUMBER; KIND_OF; NODE_OF: its node, or its enum; IS_MANY: a list or a map; SLOT: by which a message
    knows that it had it, which the members of a oneof share, -1 where that is no matter; WIRE_TYPE; IS_KEPT:
    it is written; NAME, NAME_END: its name with its colon; DEFAULT, DEFAULT_END: what stands where it does
    not.
    defaults: edges whose default is written. enums: FIRST, COUNT: their symbols, by number. symbols: NUMBER;
    NAME, NAME_END: its name.
    """

    nodes: npt.NDArray[np.int64]
    edges: npt.NDArray[np.int64]
    defaults: Int64Array
    enums: npt.NDArray[np.int64]
    symbols: npt.NDArray[np.int64]
    text: ByteArray


@dataclass(slots=True)
class _Edge:
    number: int
    kind: int
    to: int = 0
    is_many: bool = False
    slot: int = 0
    kept: bool = True
    name: bytes = b""
    default: bytes = b""


@dataclass(slots=True)
class _Node:
    is_bare: bool = False
    edges: list[_Edge] = field(default_factory=list)


@inlined
def place_of(table: npt.NDArray[np.int64], first: int, count: int, number: int) -> int:
    """The row of a number in ``count`` rows of edges or symbols, by number; -1: none of them has it."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) // 2
        if table[middle, NUMBER] < number:
            low = middle + 1
        else:
            high = middle
    return int(low) if low < first + count and table[low, NUMBER] == number else -1


Wanted = Callable[[str], bool]
"""Whether a member of the record itself is read by anybody."""


def compile_message(message: Descriptor, wanted: Wanted) -> Program:
    """The program that reads a message. Raises UnreadableSchema."""
    compiler = _Compiler(wanted)
    root = compiler.value_of(message, is_whole=True)
    while compiler.waiting:
        compiler.fill(*compiler.waiting.pop())
    return _packed(root, compiler)


class _Compiler:
    def __init__(self, wanted: Wanted) -> None:
        self.nodes: list[_Node] = []
        self.enums: list[list[tuple[int, bytes]]] = []
        self.waiting: list[tuple[_Node, Descriptor, bool]] = []
        self._wanted = wanted
        self._known: dict[tuple[str, bool], tuple[int, int]] = {}
        self._known_enums: dict[str, int] = {}
        self._edges = 0

    def value_of(self, message: Descriptor, *, is_whole: bool = False) -> tuple[int, int]:
        """(kind, node) of a message's values."""
        place = (message.full_name, is_whole)
        if place not in self._known:
            kind = ENTRY if message.GetOptions().map_entry else kind_of(message)
            self._known[place] = kind, len(self.nodes)
            self.nodes.append(_Node(kind == BARE))
            self.waiting.append((self.nodes[-1], message, is_whole and kind == MESSAGE))
        return self._known[place]

    def fill(self, node: _Node, message: Descriptor, is_whole: bool) -> None:
        """Give a node its edges."""
        fields = sorted(message.fields, key=lambda one: one.number)
        self._edges += len(fields) + 1
        if self._edges > EDGES_MAX:
            raise UnreadableSchema(f"it has more than {EDGES_MAX:,} fields")
        slots: dict[str, int] = {}
        for place, one in enumerate(fields):
            kind, to = self._kind_of(one)
            edge = _Edge(one.number, kind, to, one.is_repeated, place)
            edge.kept = kind != GROUP and (not is_whole or self._wanted(one.name))
            edge.name = b"" if node.is_bare else orjson.dumps(one.name) + b":"
            edge.default = _default_of(one, kind, always=message.GetOptions().map_entry)
            if one.containing_oneof is not None:
                edge.slot = slots.setdefault(one.containing_oneof.name, place)
            elif not edge.kept:
                edge.slot = -1
            node.edges.append(edge)

    def _kind_of(self, one: FieldDescriptor) -> tuple[int, int]:
        """(kind, node or enum) of a field."""
        if one.message_type is not None and one.type == _MESSAGE:
            return self.value_of(one.message_type)
        enum = one.enum_type
        if enum is None:
            return _PLAIN[one.type], 0
        if enum.full_name == "google.protobuf.NullValue":
            return NULL, 0
        if enum.full_name not in self._known_enums:
            self._known_enums[enum.full_name] = len(self.enums)
            self.enums.append(_symbols(enum))
            self._edges += len(self.enums[-1])
        return (CLOSED_ENUM if enum.is_closed else ENUM), self._known_enums[enum.full_name]


def kind_of(message: Descriptor) -> int:
    """What a message that is no entry of a map is read as: MESSAGE, or another kind."""
    kind, types = _WELL_KNOWN.get(message.full_name, (MESSAGE, ()))
    fields = sorted(message.fields, key=lambda one: one.number)
    if [(one.number, one.type) for one in fields] != list(enumerate(types, 1)):
        return MESSAGE
    return kind


def _symbols(enum: EnumDescriptor) -> list[tuple[int, bytes]]:
    """Numbers and names of an enum, ascending; of several with one number the first."""
    found: dict[int, bytes] = {}
    for one in enum.values:
        found.setdefault(one.number, orjson.dumps(one.name))
    return sorted(found.items())


def _default_of(one: FieldDescriptor, kind: int, *, always: bool) -> bytes:
    """What is written of a field that is not there; nothing: it is NULL. always: not where it is a scalar."""
    if one.is_repeated:
        return b"{}" if kind == ENTRY else b"[]"
    if kind >= MESSAGE or (one.has_presence and not one.has_default_value and not always):
        return b""
    if one.enum_type is not None and kind != NULL:
        return next(name for number, name in _symbols(one.enum_type) if number == one.default_value)
    if kind == NULL:
        return b"null"
    value = one.default_value
    if isinstance(value, bytes):
        return orjson.dumps(base64.b64encode(value).decode())
    if isinstance(value, float) and not math.isfinite(value):
        return b'"NaN"' if math.isnan(value) else b'"Infinity"' if value > 0 else b'"-Infinity"'
    return orjson.dumps(value)


def _wire(kind: int) -> int:
    """The type that a field of a kind has on the wire."""
    if kind <= NULL:
        return 0
    if kind in (FIXED64, SFIXED64, DOUBLE):
        return 1
    if kind in (FIXED32, SFIXED32, FLOAT):
        return 5
    return 3 if kind == GROUP else 2


def _wires(node: _Node) -> int:
    found = 0
    for number in range(1, 8):
        kinds = [edge.kind for edge in node.edges if edge.number == number]
        found |= (_wire(kinds[0]) if kinds else 15) << 4 * number
    return found


class _Texts:
    """Texts one after another."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, text: bytes) -> tuple[int, int]:
        """Where it begins and ends."""
        begin = len(self.data)
        self.data += text
        return begin, len(self.data)


def _packed(root: tuple[int, int], compiler: _Compiler) -> Program:
    texts = _Texts()
    nodes: list[tuple[int, ...]] = []
    edges, defaults = [_row(_Edge(0, *root), texts)], list[int]()
    for node in compiler.nodes:
        kept = [len(edges) + place for place, edge in enumerate(node.edges) if edge.kept and edge.default]
        nodes.append((node.is_bare, len(edges), len(node.edges), _wires(node), len(defaults), len(kept)))
        edges += [_row(edge, texts) for edge in node.edges]
        defaults += kept
    enums, symbols = list[tuple[int, ...]](), list[tuple[int, ...]]()
    for enum in compiler.enums:
        enums.append((0, len(symbols), len(enum)))
        symbols += [(number, *texts.add(name)) for number, name in enum]
    return Program(
        np.array(nodes, np.int64),
        np.array(edges, np.int64),
        np.array(defaults, np.int64),
        np.array(enums or [(0, 0, 0)], np.int64),
        np.array(symbols or [(0, 0, 0)], np.int64),
        np.frombuffer(bytes(texts.data) or b" ", np.uint8),
    )


def _row(edge: _Edge, texts: _Texts) -> tuple[int, ...]:
    """The columns of an edge, in their order."""
    name, default = texts.add(edge.name), texts.add(edge.default)
    wire = _wire(edge.kind)
    return edge.number, *name, edge.kind, edge.to, edge.is_many, edge.slot, wire, edge.kept, *default
