"""Where the values at paths stand in JSON records, and records of these values alone.

A value that :mod:`topics.arrow_reader` cannot take in its one pass is read in two steps: a pass over the
bytes finds its text (:meth:`Extraction.spans`), and these texts stand one after another (:func:`texts_at`),
or as members of flat records that are read as others are (:func:`flat_records`). The pass tells which records
are not one object each; that they are JSON is checked by who reads their other members.

Cost: some 1.5 ns a byte of the records, and a copy of the bytes of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.paths import Path
from topics.compiled import borrowing

ByteArray = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]

LEVELS_MAX = 65
"""Objects and arrays in each other are fewer, as the scan has it too."""
_NULL = np.frombuffer(b"null", np.uint8)


class Trie(NamedTuple):
    """Paths as a tree; node 0 is the record. Arrays of one entry a node, -1 for none.

    slot: which path ends here. child, sibling: the first child, the next child of the same parent. place: of
    an element its place; -1: the node is a member, whose name is names[begin:stop].
    """

    slot: Int64Array
    child: Int64Array
    sibling: Int64Array
    place: Int64Array
    begin: Int64Array
    stop: Int64Array
    names: ByteArray


class _Found(NamedTuple):
    """What the pass writes and works with.

    spans: int64[n, paths, 2], begin and end of the value in the bytes, -1 where the path leads nowhere. odd:
    bool[n], records that are not one object, or in which a name on a path is given twice or has an escape.
    seen: int64[nodes], the last record that had the node. nodes, places, begins: int64[LEVELS_MAX], of each
    open object or array its node (-1: none), the place of its element (-1: it is an object), and where it
    begins.
    """

    spans: Int64Array
    odd: npt.NDArray[np.bool_]
    seen: Int64Array
    nodes: Int64Array
    places: Int64Array
    begins: Int64Array


@borrowing
def _member(
    data: ByteArray, start: int, stop: int, trie: Trie, parent: int, found: _Found, record: int
) -> int:
    """The node of the member data[start:stop] of an object; -1: no path leads there."""
    if parent < 0 or trie.child[parent] < 0:
        return -1
    for at in range(start, stop):
        if data[at] == 92:
            found.odd[record] = True
            return -1
    node = trie.child[parent]
    while node >= 0:
        begin = trie.begin[node]
        same = trie.place[node] < 0 and trie.stop[node] - begin == stop - start
        at = 0
        while same and at < stop - start:
            same = data[start + at] == trie.names[begin + at]
            at += 1
        if same:
            if found.seen[node] == record:
                found.odd[record] = True
            found.seen[node] = record
            return int(node)
        node = trie.sibling[node]
    return -1


@borrowing
def _element(trie: Trie, parent: int, place: int) -> int:
    """The node of an element of an array; -1: no path leads there."""
    if parent < 0:
        return -1
    node = trie.child[parent]
    while node >= 0 and trie.place[node] != place:
        node = trie.sibling[node]
    return int(node)


@borrowing
def _note(trie: Trie, node: int, found: _Found, record: int, start: int, stop: int) -> None:
    if node >= 0 and trie.slot[node] >= 0:
        found.spans[record, trie.slot[node], 0] = start
        found.spans[record, trie.slot[node], 1] = stop


@borrowing
def _find_in(data: ByteArray, at: int, end: int, trie: Trie, found: _Found, record: int) -> bool:
    """Note the values of one record, data[at:end]; whether it is one object by its brackets."""
    depth, pending, is_name = 0, 0, False
    while at < end and data[at] <= 32:
        at += 1
    if at == end or data[at] != 123:
        return False
    while at < end:
        byte, start = data[at], at
        at += 1
        if byte == 34:  # a string
            while at < end and data[at] != 34:
                at += 2 if data[at] == 92 else 1
            at += 1
            if is_name:
                pending = _member(data, start + 1, at - 1, trie, found.nodes[depth], found, record)
                is_name = False
            else:
                _note(trie, pending, found, record, start, at)
                pending = -1
        elif byte == 44:  # a comma
            if found.places[depth] < 0:
                is_name = True
            else:
                found.places[depth] += 1
                pending = _element(trie, found.nodes[depth], found.places[depth])
        elif byte == 123 or byte == 91:
            depth += 1
            if depth == LEVELS_MAX:
                return False
            found.nodes[depth] = pending
            found.begins[depth] = start
            found.places[depth] = -1 if byte == 123 else 0
            is_name = byte == 123
            pending = -1 if is_name else _element(trie, pending, 0)
        elif byte == 125 or byte == 93:
            _note(trie, found.nodes[depth], found, record, found.begins[depth], at)
            depth -= 1
            pending, is_name = -1, False
            if depth == 0:
                while at < end and data[at] <= 32:
                    at += 1
                return bool(at == end)
        elif byte > 32 and byte != 58:  # a number, true, false or null
            while at < end and data[at] > 32 and data[at] != 44 and data[at] != 125 and data[at] != 93:
                at += 1
            first = data[start + 1] if byte == 45 and at > start + 1 else byte
            if first == 73 or first == 78:  # Infinity and NaN are not JSON
                return False
            _note(trie, pending, found, record, start, at)
            pending = -1
    return False


@borrowing
def _find(data: ByteArray, ends: Int64Array, trie: Trie, found: _Found) -> None:
    at = 0
    for record in range(len(ends)):
        if not _find_in(data, at, ends[record], trie, found, record):
            found.odd[record] = True
        at = ends[record] + 1


@borrowing
def _copy(data: ByteArray, spans: Int64Array, offsets: Int64Array, out: ByteArray) -> None:
    """The bytes of spans (int64[n, 2]) to out, each from its offset on; nothing of those at -1."""
    for row in range(len(spans)):
        start = spans[row, 0]
        if start >= 0:
            at = offsets[row]
            for place in range(start, spans[row, 1]):
                out[at] = data[place]
                at += 1


@borrowing
def _write_flat(
    data: ByteArray, spans: Int64Array, heads: ByteArray, head_ends: Int64Array, out: ByteArray
) -> None:
    at = 0
    for record in range(len(spans)):
        head = 0
        for slot in range(len(head_ends)):
            while head < head_ends[slot]:
                out[at] = heads[head]
                at += 1
                head += 1
            start = spans[record, slot, 0]
            if start < 0:
                for byte in _NULL:
                    out[at] = byte
                    at += 1
            else:
                for place in range(start, spans[record, slot, 1]):
                    out[at] = data[place]
                    at += 1
        out[at] = 125
        out[at + 1] = 10
        at += 2


def texts_at(data: ByteArray, spans: Int64Array) -> pa.StringArray:
    """string[n]: data at spans (int64[n, 2]) of UTF-8, NULL at -1. The bytes together are below 2 GiB."""
    there = spans[:, 0] >= 0
    lengths = np.where(there, spans[:, 1] - spans[:, 0], 0)
    offsets = np.zeros(len(spans) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(offsets[-1], np.uint8)
    _copy(data, spans, offsets, out)
    validity = None if there.all() else pa.array(there).buffers()[1]
    return pa.StringArray.from_buffers(
        len(spans), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out), validity
    )


@dataclass(frozen=True, slots=True)
class Extraction:
    """Paths to be followed in records. paths: different ones."""

    paths: tuple[Path, ...]
    trie: Trie

    def spans(self, data: ByteArray, ends: Int64Array) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """int64[n, paths, 2], begin and end of each value in ``data``, -1 where a path leads nowhere; and
        bool[n], records that are not one object each, or have to be read one by one.

        data: records of JSON one after another with one byte between them; ends: int64[n], where each ends.
        """
        n = len(ends)
        found = _Found(
            np.full((n, len(self.paths), 2), -1, np.int64),
            np.zeros(n, np.bool_),
            np.full(len(self.trie.slot), -1, np.int64),
            *(np.full(LEVELS_MAX, -1, np.int64) for _ in range(3)),
        )
        _find(data, ends, self.trie, found)
        return found.spans, found.odd


def flat_records(data: ByteArray, spans: Int64Array, names: Sequence[str]) -> bytes:
    """Records, each on a line, of the values at spans (int64[n, names, 2]) under these names, of ASCII
    without quotes; null at -1.
    """
    heads = [b'%s"%s":' % (b"," if place else b"{", name.encode()) for place, name in enumerate(names)]
    head_ends = np.cumsum([len(head) for head in heads])
    there = spans[:, :, 0] >= 0
    size = int(np.where(there, spans[:, :, 1] - spans[:, :, 0], len(_NULL)).sum())
    out = np.empty(size + len(spans) * (int(head_ends[-1]) + 2), np.uint8)
    _write_flat(data, spans, np.frombuffer(b"".join(heads), np.uint8), head_ends, out)
    return out.tobytes()


@lru_cache(maxsize=256)
def extraction(paths: tuple[Path, ...]) -> Extraction:
    """The paths, which are different, as the pass over the bytes takes them."""
    nodes: list[Path] = [()]
    for path in paths:
        nodes += [path[: end + 1] for end in range(len(path)) if path[: end + 1] not in nodes]
    place = {node: at for at, node in enumerate(nodes)}
    child, sibling = ([-1] * len(nodes) for _ in range(2))
    names, begin = b"", [0]
    for at, node in enumerate(nodes[1:], start=1):
        parent = place[node[:-1]]
        sibling[at], child[parent] = child[parent], at
        begin.append(len(names))
        names += node[-1].encode() if isinstance(node[-1], str) else b""
    index = [-1] + [node[-1] if isinstance(node[-1], int) else -1 for node in nodes[1:]]
    slots = [paths.index(node) if node in paths else -1 for node in nodes]
    trie = Trie(
        np.array(slots, np.int64),
        np.array(child, np.int64),
        np.array(sibling, np.int64),
        np.array(index, np.int64),
        np.array(begin, np.int64),
        np.array([*begin[1:], len(names)], np.int64),
        np.frombuffer(names or b" ", np.uint8),
    )
    return Extraction(paths, trie)
