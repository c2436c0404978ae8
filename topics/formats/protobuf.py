"""Protobuf messages as JSON, by the schema that wrote them.

bool, the integers, string and bytes are true or false, numbers, text, base64; float and double numbers, NaN,
Infinity and -Infinity in quotes; an enum is its symbol's name, of a number that it has not the number in
quotes. A message is an object of its fields by name, a repeated field an array, a map an object. A field
that is not there has its default where the schema gives it one: every scalar without presence, every list
and map, and what proto2 declares; else it is left out. Unknown fields, extensions and groups are passed over.

Well-known types: Timestamp and Duration are ms, what is below is cut; wrappers what they hold; Struct, Value
and ListValue JSON. So are Confluent's Decimal, a string of its digits, and google.type.Date.

A message whose fields stand twice, or in pieces, is read by the protobuf library and written again in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from topics.formats.output import ByteArray, Int64Array, Output, transcoded
from topics.formats.protobuf_program import Wanted, compile_message
from topics.formats.protobuf_reader import frames, read_protobuf
from topics.formats.protobuf_schema import message_at
from topics.formats.protobuf_wire import AGAIN, REASONS
from topics.formats.texts import Format, Refusing, Texts
from topics.formats.unreadable import UnreadableSchema
from topics.registry import HEAD_BYTES

MESSAGES_MAX = 100
"""Messages of one schema whose readers are kept."""
_INDEXES_MAX = 64
Head = tuple[tuple[int, ...], int]
"""The indexes of a record's message, and where the message begins."""
_FLOAT_BYTES = 4
"""A float, which is the smallest that becomes a DOUBLE."""


class ProtobufReader:
    """Reads records of one message."""

    def __init__(self, message: Descriptor, wanted: Wanted = lambda _: True, skipped: int = 0) -> None:
        """skipped: bytes before each message. Raises UnreadableSchema."""
        self._message = message
        self._program = compile_message(message, wanted)
        self._skipped = skipped

    def texts(self, values: Sequence[bytes]) -> Texts:
        """Each value has at least ``skipped`` bytes."""
        found, verdicts = self._read(values, self._skipped, is_ordered=False)
        bad: dict[int, str] = {}
        again: dict[int, bytes] = {}
        for place in verdicts.nonzero()[0].tolist():
            if verdicts[place] != AGAIN:
                bad[place] = REASONS[verdicts[place]]
                continue
            try:
                again[place] = self._in_order(values[place])
            except DecodeError:
                bad[place] = "the message cannot be parsed"
        if again:
            told, verdicts = self._read(list(again.values()), 0, is_ordered=True)
            for place, text, verdict in zip(again, told, verdicts.tolist(), strict=True):
                found[place] = text
                if verdict:
                    bad[place] = REASONS[verdict]
        return Texts(found, bad)

    def _read(
        self, values: Sequence[bytes], skipped: int, *, is_ordered: bool
    ) -> tuple[list[bytes | None], ByteArray]:
        program = self._program
        open_messages = frames(program)

        def run(data: ByteArray, ends: Int64Array, first: int, out: Output, verdicts: ByteArray) -> int:
            return read_protobuf(
                data, ends, (first, skipped, is_ordered), program, open_messages, out, verdicts
            )

        return transcoded(values, run, _FLOAT_BYTES)

    def _in_order(self, value: bytes) -> bytes:
        """A message with each of its fields once. Raises DecodeError."""
        return self._class.FromString(value[self._skipped :]).SerializePartialToString(deterministic=True)

    @cached_property
    def _class(self) -> type[Message]:
        return GetMessageClass(self._message)


class FramedProtobuf:
    """Reads records that name one schema, and behind its id which of its messages they are."""

    def __init__(self, file: FileDescriptor, wanted: Wanted = lambda _: True) -> None:
        self._file = file
        self._wanted = wanted
        self._made: dict[Head, Format] = {}

    def texts(self, values: Sequence[bytes]) -> Texts:
        """Each value has at least a head."""
        if all(value[HEAD_BYTES : HEAD_BYTES + 1] == b"\0" for value in values):
            return self._reader(((0,), HEAD_BYTES + 1)).texts(values)
        places: dict[Head, list[int]] = {}
        for place, value in enumerate(values):
            places.setdefault(_head(value), []).append(place)
        found: list[bytes | None] = [None] * len(values)
        bad: dict[int, str] = {}
        for head, some in places.items():
            told = self._reader(head).texts([values[place] for place in some])
            for place, text in zip(some, told.values, strict=True):
                found[place] = text
            bad |= {some[place]: reason for place, reason in told.bad.items()}
        return Texts(found, bad)

    def _reader(self, head: Head) -> Format:
        """What reads the records that have this head."""
        made = self._made.get(head)
        if made is None:
            indexes, skipped = head
            try:
                made = ProtobufReader(message_at(self._file, indexes), self._wanted, skipped)
            except UnreadableSchema as refused:
                made = Refusing(str(refused) if indexes else "the indexes of its message are not whole")
            if len(self._made) >= MESSAGES_MAX:
                del self._made[next(iter(self._made))]
            self._made[head] = made
        return made


def first_indexes(values: Sequence[bytes | None]) -> tuple[int, ...]:
    """The indexes of the first record that has some; those of a schema's first message where none has."""
    heads = (_head(value)[0] for value in values if value is not None and value[:1] == b"\0")
    return next((indexes for indexes in heads if indexes), (0,))


def _head(value: bytes) -> Head:
    """What a record begins with; without indexes where they are cut, or too many."""
    try:
        count, at = _zigzag(value, HEAD_BYTES)
        indexes = []
        for _ in range(count if count <= _INDEXES_MAX else 0):
            index, at = _zigzag(value, at)
            indexes.append(index)
    except ValueError:
        return (), 0
    return (tuple(indexes) if count else (0,)), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    """(number, where the next begins) of one in at most five bytes. Raises ValueError."""
    found = 0
    for shift, byte in enumerate(value[at : at + 5]):
        found |= (byte & 127) << 7 * shift
        if byte < 128:
            return found >> 1 ^ -(found & 1), at + shift + 1
    raise ValueError("the number does not end")
