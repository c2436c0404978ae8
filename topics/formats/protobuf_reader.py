"""The compiled reader of Protobuf's wire format: messages to JSON, by a program.

Fields are written as they come. That is right where each stands once and the elements of each list together,
as serializers write them; a message where one comes again, which replaces or is merged with what was there,
has the verdict AGAIN: somebody else puts it in order first.

Nothing in a record is trusted: lengths are compared with the bytes that are left, levels are limited, and no
byte is looked at more than twice.

Cost: some 10 ns a field and 1 ns a byte.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topics.compiled import borrowing, inlined
from topics.formats.binary import DEEP, FINE, LEVELS_MAX, TOO_LONG, WORDS
from topics.formats.output import (
    AT,
    LIMIT,
    ByteArray,
    Int64Array,
    Output,
    begin_text,
    end_text,
    put_byte,
    put_bytes,
    put_text,
)
from topics.formats.protobuf_program import (
    BARE,
    CLOSED_ENUM,
    COUNT,
    DATE,
    DECIMAL,
    DEFAULT,
    DEFAULT_COUNT,
    DEFAULT_END,
    DEFAULT_FIRST,
    DURATION,
    ENTRY,
    FIRST,
    IS_BARE,
    IS_KEPT,
    IS_MANY,
    KIND_OF,
    MESSAGE,
    NAME,
    NAME_END,
    NODE_OF,
    NUMBER,
    PACKED,
    SLOT,
    STRING,
    TIMESTAMP,
    VALUE,
    WIRE_TYPE,
    WIRES,
    WRAPPER,
    Program,
    place_of,
)
from topics.formats.protobuf_values import is_foreign, put_known, put_scalar
from topics.formats.protobuf_wire import AGAIN, Members, read_length, read_tag, scan, skip, skip_flat

_KEYS = 4_096
"""Room for the keys of a record's maps; of half as many, so that most are found at once."""
KIND, TO, BEGIN, STOP, RESUME, READY, STAMPS, RECORD, KEYS = range(9)
NODE, END, BACK, LIST, WROTE, LISTED, GUESS, STAMP = range(8)
_VALUE_WIRES = 0xF220210F


class Frames(NamedTuple):
    """The messages that are open, and what is known of the value that comes next. int64.

    levels[level]: of a message, outermost first. NODE: its node, of a packed list minus one minus its edge.
    END: where it ends. BACK: where what it stands in goes on. LIST: the edge of the list that is open, -1 for
    none. WROTE: whether something stands in it that needs a comma behind; LISTED: in its list. GUESS: the
    next of its edges. STAMP: its number.
    seen[level, slot]: the STAMP of the message that had it.
    members: of the small message that was looked at last. groups: numbers of groups that are passed over.
    keys: keys of maps, as hashes, and the RECORD that has them.
    state: KIND, TO, BEGIN, STOP, RESUME of the next value, READY whether there is one; STAMPS: the last;
    RECORD: its number; KEYS: how many it has.
    """

    levels: npt.NDArray[np.int64]
    seen: npt.NDArray[np.int64]
    members: Members
    groups: Int64Array
    keys: npt.NDArray[np.int64]
    state: Int64Array


def frames(program: Program) -> Frames:
    """For one batch."""
    levels = LEVELS_MAX + 2
    return Frames(
        np.zeros((levels, 8), np.int64),
        np.zeros((levels, int(program.nodes[:, COUNT].max()) + 1), np.int64),
        np.zeros((8, 3), np.int64),
        np.zeros(levels, np.int64),
        np.zeros((_KEYS, 2), np.int64),
        np.zeros(9, np.int64),
    )


# --- messages


@inlined
def _open(node: int, program: Program, frames: Frames, depth: int, out: Output) -> None:
    """Open the message that is the next value."""
    frames.levels[depth, NODE] = node
    frames.levels[depth, END], frames.levels[depth, BACK] = frames.state[STOP], frames.state[RESUME]
    frames.levels[depth, LIST] = -1
    frames.levels[depth, WROTE] = frames.levels[depth, GUESS] = 0
    frames.state[STAMPS] += 1
    frames.levels[depth, STAMP] = frames.state[STAMPS]
    if not program.nodes[node, IS_BARE]:
        put_byte(out, 123)


@inlined
def _close_list(program: Program, frames: Frames, depth: int, out: Output) -> None:
    edge = frames.levels[depth, LIST]
    if edge >= 0:
        put_byte(out, 125 if program.edges[edge, KIND_OF] == ENTRY else 93)
        frames.levels[depth, LIST] = -1


@inlined
def _begin_member(program: Program, edge: int, frames: Frames, depth: int, out: Output) -> None:
    """Write a field's name."""
    if frames.levels[depth, WROTE]:
        put_byte(out, 44)
    frames.levels[depth, WROTE] = 1
    put_bytes(out, program.text, program.edges[edge, NAME], program.edges[edge, NAME_END])


@borrowing
def _close(program: Program, frames: Frames, depth: int, out: Output) -> None:
    """Close a message: what it has not are defaults."""
    _close_list(program, frames, depth, out)
    node = frames.levels[depth, NODE]
    first = program.nodes[node, DEFAULT_FIRST]
    for place in range(first, first + program.nodes[node, DEFAULT_COUNT]):
        edge = program.defaults[place]
        if frames.seen[depth, program.edges[edge, SLOT]] != frames.levels[depth, STAMP]:
            _begin_member(program, edge, frames, depth, out)
            put_bytes(out, program.text, program.edges[edge, DEFAULT], program.edges[edge, DEFAULT_END])
    if not program.nodes[node, IS_BARE]:
        put_byte(out, 125)


@inlined
def _edge_of(program: Program, frames: Frames, depth: int, number: int) -> int:
    """The edge of a field; -1: the message has none of this number."""
    node, guess = frames.levels[depth, NODE], frames.levels[depth, GUESS]
    first, count = program.nodes[node, FIRST], program.nodes[node, COUNT]
    if guess < count and program.edges[first + guess, NUMBER] == number:
        frames.levels[depth, GUESS] = guess + 1
        return int(first + guess)
    if guess > 0 and program.edges[first + guess - 1, NUMBER] == number:
        return int(first + guess - 1)
    edge = place_of(program.edges, first, count, number)
    if edge >= 0:
        frames.levels[depth, GUESS] = edge - first + 1
    return edge


@inlined
def _sees(program: Program, edge: int, frames: Frames, depth: int) -> bool:
    """Note that a message has a field; whether it had it before."""
    slot = program.edges[edge, SLOT]
    before = frames.seen[depth, slot] == frames.levels[depth, STAMP]
    frames.seen[depth, slot] = frames.levels[depth, STAMP]
    return bool(before)


@inlined
def _begin_field(program: Program, edge: int, frames: Frames, depth: int, out: Output) -> int:
    """Write what stands before a value, or before a list; FINE, or minus AGAIN."""
    if frames.levels[depth, LIST] == edge:
        return FINE
    _close_list(program, frames, depth, out)
    if _sees(program, edge, frames, depth):
        return -AGAIN
    _begin_member(program, edge, frames, depth, out)
    if program.edges[edge, IS_MANY]:
        put_byte(out, 123 if program.edges[edge, KIND_OF] == ENTRY else 91)
        frames.levels[depth, LIST] = edge
        frames.levels[depth, LISTED] = 0
    return FINE


@inlined
def _begin_item(frames: Frames, depth: int, out: Output) -> None:
    if frames.levels[depth, LISTED]:
        put_byte(out, 44)
    frames.levels[depth, LISTED] = 1


@inlined
def _is_new_key(begin: int, frames: Frames, depth: int, out: Output) -> bool:
    """Note the key whose text begins there; False: its map may have had it before."""
    at = frames.levels[depth, STAMP] * 31 + frames.levels[depth, LIST]
    hashed = np.uint64(14_695_981_039_346_656_037) ^ np.uint64(at)
    for place in range(begin, out.state[AT]):
        hashed = (hashed ^ np.uint64(out.data[place])) * np.uint64(1_099_511_628_211)
    hashed ^= hashed >> np.uint64(29)
    key: int = np.int64(hashed)  # type: ignore[assignment]
    slot = np.int64(hashed & np.uint64(_KEYS - 1))
    while frames.keys[slot, 1] == frames.state[RECORD]:
        if frames.keys[slot, 0] == key:
            return False
        slot = (slot + 1) & (_KEYS - 1)
    frames.keys[slot, 0], frames.keys[slot, 1] = key, frames.state[RECORD]
    frames.state[KEYS] += 1
    return bool(frames.state[KEYS] <= _KEYS // 2)


@inlined
def _put_key(data: ByteArray, edge: int, program: Program, frames: Frames, out: Output) -> int:
    """Write the key that an entry has; FINE, or minus the reason."""
    kind, members = program.edges[edge, KIND_OF], frames.members
    if kind == STRING:
        has = members[1, 0] > 0
        put_text(out, data, members[1, 1] if has else 0, members[1, 2] if has else 0)
        return FINE
    put_byte(out, 34)
    at = FINE
    if members[1, 0]:
        at = put_scalar(data, members[1, 1], members[1, 2], kind, program.edges[edge, NODE_OF], program, out)
    else:
        put_bytes(out, program.text, program.edges[edge, DEFAULT], program.edges[edge, DEFAULT_END])
    put_byte(out, 34)
    return at


@borrowing
def _entry(
    data: ByteArray, edge: int, program: Program, frames: Frames, depth: int, out: Output, is_ordered: bool
) -> int:
    """Write the key of the entry of a map that is the next value, which its value becomes; FINE, or minus
    the reason.
    """
    value, members, node = frames.state, frames.members, program.edges[edge, NODE_OF]
    at = scan(data, value[BEGIN], value[STOP], program.nodes[node, WIRES], frames.members, frames.groups)
    if at < 0:
        return at
    key_edge, value_edge = program.nodes[node, FIRST], program.nodes[node, FIRST] + 1
    kind, to = program.edges[value_edge, KIND_OF], program.edges[value_edge, NODE_OF]
    if members[2, 0] > 1 and not is_ordered:
        return -AGAIN
    is_enum = kind == CLOSED_ENUM and members[2, 0] > 0
    if is_enum and is_foreign(data, members[2, 1], members[2, 2], to, program):
        value[READY] = 0
        return FINE
    begun = _begin_field(program, edge, frames, depth, out)
    if begun < 0:
        return begun
    _begin_item(frames, depth, out)
    begin = out.state[AT]
    at = _put_key(data, key_edge, program, frames, out)
    if at < 0:
        return at
    if out.state[AT] > out.state[LIMIT]:
        return -TOO_LONG
    if not is_ordered and not _is_new_key(begin, frames, depth, out):
        return -AGAIN
    put_byte(out, 58)
    value[KIND], value[TO] = kind, to
    if members[2, 0]:
        value[BEGIN], value[STOP] = members[2, 1], members[2, 2]
    elif kind >= MESSAGE:
        value[BEGIN] = value[STOP]
    else:
        put_bytes(
            out, program.text, program.edges[value_edge, DEFAULT], program.edges[value_edge, DEFAULT_END]
        )
        value[READY] = 0
    return FINE


@borrowing
def _field(
    data: ByteArray, at: int, program: Program, frames: Frames, depth: int, out: Output, is_ordered: bool
) -> int:
    """Read a field up to its value, which is the next one; or all of it, where nothing of it is written.
    Where the message goes on, or minus the reason.
    """
    value, end = frames.state, frames.levels[depth, END]
    value[READY] = 0
    number, wire, at = read_tag(data, at, end)
    if at < 0:
        return at
    edge = _edge_of(program, frames, depth, number)
    if edge < 0:
        return skip(data, at, end, number, wire, frames.groups)
    is_packed = wire == 2 and program.edges[edge, IS_MANY] and program.edges[edge, WIRE_TYPE] != 2
    if wire != program.edges[edge, WIRE_TYPE] and not is_packed:
        return skip(data, at, end, number, wire, frames.groups)
    if not program.edges[edge, IS_KEPT]:
        if program.edges[edge, SLOT] >= 0 and _sees(program, edge, frames, depth):
            return -AGAIN
        return skip(data, at, end, number, wire, frames.groups)
    kind, to = program.edges[edge, KIND_OF], program.edges[edge, NODE_OF]
    value[KIND], value[TO], value[BEGIN], value[STOP], value[RESUME] = kind, to, at, end, -1
    if wire == 2:
        size, at = read_length(data, at, end)
        if at < 0:
            return at
        value[BEGIN], value[STOP], value[RESUME] = at, at + size, at + size
        at += size
    value[READY] = 1
    if kind == ENTRY:
        told = _entry(data, edge, program, frames, depth, out, is_ordered)
        return told if told < 0 else at
    if wire != 2 and kind == CLOSED_ENUM and is_foreign(data, at, end, to, program):
        value[READY] = 0
        return skip_flat(data, at, end, wire)
    begun = _begin_field(program, edge, frames, depth, out)
    if begun < 0:
        return begun
    if is_packed:
        value[KIND], value[TO] = PACKED, edge
    elif program.edges[edge, IS_MANY]:
        _begin_item(frames, depth, out)
    return at


@inlined
def _item(data: ByteArray, at: int, program: Program, frames: Frames, depth: int, out: Output) -> int:
    """Begin an item of a packed list, which is the next value; where it stands, or what follows it."""
    value, end, edge = frames.state, frames.levels[depth, END], -1 - frames.levels[depth, NODE]
    kind, to = program.edges[edge, KIND_OF], program.edges[edge, NODE_OF]
    value[READY] = 0
    if kind == CLOSED_ENUM and is_foreign(data, at, end, to, program):
        return skip_flat(data, at, end, 0)
    value[KIND], value[TO], value[BEGIN], value[STOP], value[RESUME] = kind, to, at, end, -1
    value[READY] = 1
    _begin_item(frames, depth - 1, out)
    return at


@borrowing
def _resolve(data: ByteArray, program: Program, frames: Frames, out: Output, is_ordered: bool) -> int:
    """What the next value holds, where it is a WRAPPER or a VALUE, is the next value; FINE, or minus the
    reason.
    """
    value, members = frames.state, frames.members
    kind, node = value[KIND], value[TO]
    wires = program.nodes[node, WIRES] if kind == WRAPPER else _VALUE_WIRES
    at = scan(data, value[BEGIN], value[STOP], wires, frames.members, frames.groups)
    if at < 0:
        return at
    number = members[0, 0]
    if kind == VALUE and members[0, 1] > 1 and not is_ordered:
        return -AGAIN
    if number == 0:
        value[READY] = 0
        if kind == VALUE:
            put_bytes(out, WORDS, 0, 4)
        else:
            edge = program.nodes[node, FIRST]
            put_bytes(out, program.text, program.edges[edge, DEFAULT], program.edges[edge, DEFAULT_END])
        return FINE
    edge = program.nodes[node, FIRST] + number - 1
    value[KIND], value[TO] = program.edges[edge, KIND_OF], program.edges[edge, NODE_OF]
    value[BEGIN], value[STOP] = members[number, 1], members[number, 2]
    return FINE


@inlined
def _put_value(
    data: ByteArray, at: int, program: Program, frames: Frames, depth: int, out: Output, is_ordered: bool
) -> tuple[int, int]:
    """Write the next value, or open it; (where to go on, the level), the former minus the reason."""
    value = frames.state
    if value[KIND] == WRAPPER or value[KIND] == VALUE:
        told = _resolve(data, program, frames, out, is_ordered)
        if told < 0 or not value[READY]:
            return told if told < 0 else value[RESUME], depth
    kind, resume = value[KIND], value[RESUME]
    if kind in (MESSAGE, BARE, PACKED):
        depth += 1
        if depth > LEVELS_MAX:
            return -DEEP, depth
        if kind == PACKED:
            frames.levels[depth, NODE] = -1 - value[TO]
            frames.levels[depth, END], frames.levels[depth, BACK] = value[STOP], resume
        else:
            _open(value[TO], program, frames, depth, out)
        return value[BEGIN], depth
    if kind in (TIMESTAMP, DURATION, DECIMAL, DATE):
        told = put_known(data, value[BEGIN], value[STOP], kind, frames.members, frames.groups, out)
        return told if told < 0 else resume, depth
    after = put_scalar(data, value[BEGIN], value[STOP], kind, value[TO], program, out)
    return resume if after >= 0 and resume >= 0 else after, depth


@inlined
def _begin_record(program: Program, at: int, end: int, frames: Frames) -> None:
    """The next value is the whole."""
    value = frames.state
    value[KIND], value[TO] = program.edges[0, KIND_OF], program.edges[0, NODE_OF]
    value[BEGIN], value[STOP], value[RESUME], value[READY] = at, end, end, 1
    value[RECORD] += 1
    value[KEYS] = 0


@borrowing
def read_protobuf(
    data: ByteArray,
    ends: Int64Array,
    begun: tuple[int, int, bool],
    program: Program,
    frames: Frames,
    out: Output,
    verdicts: ByteArray,
) -> int:
    """Write records while there is room; the first that is not written. begun: the first, how many bytes each
    begins with that are none of its message, and whether somebody put their fields in order.
    """
    first, skipped, is_ordered = begun
    for record in range(first, len(ends)):
        if not begin_text(out):
            return record
        at = (ends[record - 1] if record else 0) + skipped
        _begin_record(program, at, ends[record], frames)
        depth, verdict = -1, FINE
        while True:
            if at >= 0 and frames.state[READY]:
                at, depth = _put_value(data, at, program, frames, depth, out, is_ordered)
            if at < 0:
                verdict = -at
                break
            while depth >= 0 and at == frames.levels[depth, END]:
                if frames.levels[depth, NODE] >= 0:
                    _close(program, frames, depth, out)
                at = frames.levels[depth, BACK]
                depth -= 1
            if out.state[AT] > out.state[LIMIT]:
                verdict = TOO_LONG
                break
            if depth < 0:
                break
            if frames.levels[depth, NODE] < 0:
                at = _item(data, at, program, frames, depth, out)
            else:
                at = _field(data, at, program, frames, depth, out, is_ordered)
        verdicts[record] = verdict
        end_text(out, record, verdict == FINE)
    return len(ends)
