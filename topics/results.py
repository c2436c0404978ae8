"""Changes of answers as Kafka records: their keys, values and headers.

| format   | a row comes                | a row goes          | a row takes another's place |
|----------|----------------------------|---------------------|-----------------------------|
| upsert   | the row                    | null                | the row                     |
| debezium | after; op c, of a snapshot r | before; op d      | before and after; op u      |
| diff     | the row and weight 1       | the row, weight -1  | one after the other         |

A row takes another's place where it has the same key and comes at the instant at which that one goes.
What of an answer only came, only went, or all of it (istream, dstream, rstream) is no row by key: each
change is a record of its own, in upsert the row, whether it came or went.

A record's key has the query's id and, of rows by key, either ``key``, the columns that tell the rows of
the answer apart, or ``row``: the row's hash and which of the equal rows it is, from 1. All others have as
``row`` the step's sequence number and their number among the query's changes in that step, from 0. The
hash is the first 32 hexadecimal digits of the SHA-256 of the row as :func:`topics.json_rows.json_objects`
writes it: the same in every version, on every machine, in every encoding.

Headers tell the position of the step (as a snapshot does), the instant, and the occasion where it is not
a step; of a query that is not exact also its tags (:mod:`topics.approximation`).

Cost: 0.5 us a record, without holding the interpreter for most of it; a hash adds 1 us, Avro 3 us. A few
records in JSON are written one by one (:mod:`topics.few_changes`).
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import Int32Array, Int64Array
from engine.model.changes import Changes
from engine.model.paths import Path, placed
from engine.model.step import Position
from topics.approximation import header_text
from topics.destination import Destination
from topics.few_changes import FEW_CHANGES, are_plain, encode_few
from topics.json_rows import json_objects
from topics.produce_loop import ColumnHeaders
from topics.results_codec import HASH_DIGITS, Codec, EncodedChanges, JsonCodec, Owners
from tureen.errors import LimitExceeded
from tureen.protocol import HEADER_APPROXIMATION, HEADER_AT_MS, HEADER_OCCASION, HEADER_POSITION


@dataclass(slots=True)
class Records:
    """Records of one topic, side by side. size: bytes of keys and values.

    keys, values: large_binary[n]; a NULL value deletes. partitions: int32[n]; None: as their keys say.
    owners: whose they are, where that chooses their partitions.
    """

    topic: str
    keys: pa.LargeBinaryArray
    values: pa.LargeBinaryArray
    headers: ColumnHeaders
    partitions: Int32Array | None
    size: int
    owners: Owners | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def spread(self, partitions: int) -> None:
        """The topic has so many partitions now."""
        if self.owners is not None:
            self.partitions = _partitions(self.owners, partitions)


class RowsTooLarge(LimitExceeded):
    """Records above ``result_record_bytes_max``; ``query_ids``: whose."""

    def __init__(self, allowed: int, got: int, query_ids: frozenset[str]) -> None:
        self.query_ids = query_ids
        super().__init__("result_record_bytes_max", allowed, got, hint="select fewer or narrower columns")


def parts(
    changes: Changes, to: Mapping[str, Destination], left_out: Container[str]
) -> Iterator[tuple[Destination, Changes]]:
    """The changes of those queries that go somewhere, together by where. to: by query. left_out: queries."""
    places: dict[Destination, list[int]] = defaultdict(list)
    for place, query_id in enumerate(changes.query_ids):
        destination = to.get(query_id)
        if destination is not None and query_id not in left_out:
            places[destination].append(place)
    for destination, chosen in places.items():
        yield destination, part(changes, chosen)


def part(changes: Changes, places: Sequence[int]) -> Changes:
    """The changes of some of the queries, by their places in ``query_ids``, ascending."""
    if len(places) == len(changes.query_ids):
        return changes
    chosen = np.asarray(places, np.int64)
    counts = np.diff(changes.starts)[chosen]
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(changes.starts[chosen] - starts[:-1], counts) + np.arange(starts[-1])
    return replace(
        changes,
        query_ids=tuple(changes.query_ids[place] for place in places),
        starts=starts,
        table=changes.table.take(rows),
        weights=changes.weights[rows],
        at_ms=changes.at_ms[rows],
        now_ms=changes.now_ms[chosen],
        copies=None if changes.copies is None else changes.copies[rows],
    )


def encode(
    changes: Changes,
    to: Destination,
    position: Position,
    codec: Codec,
    *,
    numbered: dict[str, int],
    partitions: int,
    bytes_max: int,
) -> Records:
    """The records of changes that all go there.

    codec: of its encoding, for these columns. numbered: how many changes each query had in this step
    so far; kept up to date. partitions: of the topic. Raises RowsTooLarge, and then has counted nothing.
    """
    told = _told(changes, to)
    counts = np.diff(changes.starts)
    owners = Owners.of(changes.query_ids, _places(changes, told.rows))
    few = None
    if len(changes) <= FEW_CHANGES and isinstance(codec, JsonCodec) and are_plain(changes.table.schema):
        few = encode_few(codec, changes, to, told, owners, position, numbered)
    if few is not None:
        keys, values = (pa.array(texts, pa.large_binary()) for texts in few)
        sizes = np.array([len(key) + len(value or b"") for key, value in zip(*few, strict=True)], np.int64)
    else:
        rows = _Rows(changes)
        keys = codec.keys(owners, *_key_parts(changes, to, told.rows, counts, position, numbered, rows))
        values = codec.values(to.format, told, rows)
        sizes = _sizes(keys) + _sizes(values)
    if to.paths:
        values = _placed(values, changes.table.column_names, to.paths)
        sizes = _sizes(keys) + _sizes(values)
    if len(sizes) and int(sizes.max()) > bytes_max:
        whose = {owners.query_ids[place] for place in set(owners.places[sizes > bytes_max].tolist())}
        raise RowsTooLarge(bytes_max, int(sizes.max()), frozenset(whose))
    for query_id, count in zip(changes.query_ids, counts.tolist(), strict=True):
        numbered[query_id] = numbered.get(query_id, 0) + count
    return Records(
        to.topic,
        keys,
        values,
        _headers(changes, told.at_ms, position, owners),
        _partitions(owners, partitions) if to.shared else None,
        int(sizes.sum()),
        owners if to.shared else None,
    )


def _placed(values: pa.LargeBinaryArray, names: Sequence[str], paths: Sequence[Path]) -> pa.LargeBinaryArray:
    """Rows as JSON objects, each column at its path. 2 us a column of a row."""
    rows = (orjson.loads(value) for value in values.to_pylist())
    at = list(zip(paths, names, strict=True))
    return pa.array(
        [orjson.dumps(placed([(path, row[name]) for path, name in at])) for row in rows], pa.large_binary()
    )


def _sizes(texts: pa.LargeBinaryArray) -> Int64Array:
    """int64[n]: bytes of each, 0 of NULL."""
    sizes: Int64Array = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    return sizes


class _Rows:
    """The rows of changes as JSON, each written once, when it is first asked for."""

    def __init__(self, changes: Changes) -> None:
        self.table: pa.Table = changes.table
        self._all: pa.LargeBinaryArray | None = None

    def json(self, rows: Int64Array) -> pa.LargeBinaryArray:
        """One object a row of these places, ascending."""
        if len(rows) == self.table.num_rows:
            return self.all_json()
        if self._all is None:
            return json_objects(self.table.take(rows))
        return self._all.take(pa.array(rows))

    def all_json(self) -> pa.LargeBinaryArray:
        if self._all is None:
            self._all = json_objects(self.table)
        return self._all


def _told(changes: Changes, to: Destination) -> EncodedChanges:
    """Which records there are."""
    n = len(changes)
    rows = np.arange(n)
    came = changes.weights > 0
    if to.format == "diff":
        return EncodedChanges(rows, changes.at_ms, after=rows, weights=changes.weights)
    if to.operator != "changes":
        if to.format == "upsert":
            # A log of rows that came has no record for one that went, since the query has another text.
            rows = np.flatnonzero(came) if to.operator == "istream" else rows
            return EncodedChanges(rows, changes.at_ms[rows], after=rows)
        return EncodedChanges(
            rows, changes.at_ms, before=np.where(came, -1, rows), after=np.where(came, rows, -1)
        )
    snapshot = changes.occasion == "snapshot"
    if came.all():
        return EncodedChanges(rows, changes.at_ms, before=np.full(n, -1), after=rows, snapshot=snapshot)
    before, after = np.where(came, -1, rows), np.where(came, rows, -1)
    went, comes = _replaced(changes, to)
    before[comes] = went
    keep = np.ones(n, np.bool_)
    keep[went] = False
    rows = np.flatnonzero(keep)
    return EncodedChanges(
        rows, changes.at_ms[rows], before=before[rows], after=after[rows], snapshot=snapshot
    )


def _replaced(changes: Changes, to: Destination) -> tuple[Int64Array, Int64Array]:
    """Places of rows that go where the next of the same key and instant comes, and of those that come.

    A table beside streams may tell several versions of a key at one instant, one after another.
    """
    if not (changes.weights > 0).any() or to.key is None:
        # Rows without a key are told apart by all that they are: another row has another key.
        nothing = np.zeros(0, np.int64)
        return nothing, nothing
    codes = codes_of_rows(changes.table.select(list(to.key)))
    owners = _places(changes, np.arange(len(changes)))
    new = np.ones(len(changes), np.bool_)
    new[1:] = (np.diff(owners) != 0) | (np.diff(changes.at_ms) != 0)
    instants = np.cumsum(new)
    ranks = instants * (int(codes.max(initial=0)) + 1) + codes
    order = np.argsort(ranks, kind="stable")
    weights = changes.weights[order]
    pairs = np.flatnonzero((ranks[order][1:] == ranks[order][:-1]) & (weights[:-1] < 0) & (weights[1:] > 0))
    return order[pairs], order[pairs + 1]


def codes_of_rows(keys: pa.Table) -> Int64Array:
    """int64[n]: equal for rows that are alike in all columns."""
    codes = np.zeros(keys.num_rows, np.int64)
    for column in keys.columns:
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_floating(array.type):  # the text of a value is its identity
            array = array.cast(pa.string())
        encoded = array.dictionary_encode(null_encoding="encode")
        found = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = codes * (len(encoded.dictionary) + 1) + found
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return codes


def _places(changes: Changes, rows: Int64Array) -> Int64Array:
    """The owners of the rows, as places in ``query_ids``."""
    return np.searchsorted(changes.starts, rows, side="right") - 1


def _key_parts(
    changes: Changes,
    to: Destination,
    rows: Int64Array,
    counts: npt.NDArray[np.int64],
    position: Position,
    numbered: dict[str, int],
    texts: _Rows,
) -> tuple[pa.Table | None, pa.StringArray | None]:
    """What tells the records of a query apart: columns, or texts."""
    if to.operator != "changes":
        first = np.asarray([numbered.get(one, 0) for one in changes.query_ids], np.int64)
        within = np.arange(len(changes)) - np.repeat(changes.starts[:-1] - first, counts)
        numbers = pc.cast(pa.array(within[rows]), pa.string())
        return None, pc.binary_join_element_wise(f"{position.sequence}-", numbers, "")
    if to.key is not None:
        table = changes.table.select(list(to.key))
        return (table if len(rows) == table.num_rows else table.take(rows)), None
    sha256 = hashlib.sha256
    every = [sha256(text).hexdigest()[:HASH_DIGITS] for text in texts.all_json().to_pylist()]
    if to.format == "diff":
        return None, pa.array(every, pa.string())
    assert changes.copies is not None, "rows without a key are distinguished by a number"
    copies = pc.cast(pa.array(changes.copies[rows]), pa.string())
    return None, pc.binary_join_element_wise(pa.array(every, pa.string()).take(pa.array(rows)), copies, "-")


def _headers(changes: Changes, at_ms: Int64Array, position: Position, owners: Owners) -> ColumnHeaders:
    """The headers of the records of some changes: one position for all, and for each its instant. Where any
    of the queries is not exact, its tags too.
    """
    instants: pa.LargeBinaryArray
    if len(at_ms) <= FEW_CHANGES:
        instants = pa.array([b"%d" % at for at in at_ms.tolist()], pa.large_binary())
    else:
        instants = pc.cast(pa.array(at_ms), pa.large_string()).cast(pa.large_binary())
    headers: list[tuple[str, bytes | pa.LargeBinaryArray]] = [
        (HEADER_POSITION, str(position).encode()),
        (HEADER_AT_MS, instants),
    ]
    if changes.occasion != "step":
        headers.append((HEADER_OCCASION, changes.occasion.encode()))
    tags = changes.approximation
    if any(query_id in tags for query_id in owners.query_ids):
        texts = [header_text(tags.get(query_id, ())).encode() for query_id in owners.query_ids]
        each = pa.array(texts, pa.large_binary()).take(pa.array(owners.places))
        headers.append((HEADER_APPROXIMATION, texts[0] if len(texts) == 1 else each))
    return headers


def _partitions(owners: Owners, partitions: int) -> Int32Array:
    of = np.array([partition_of(one, partitions) for one in owners.query_ids], np.int32)
    return of[owners.places]


def partition_of(query_id: str, partitions: int) -> int:
    """Where the records of a query are in a topic that queries share."""
    return zlib.crc32(query_id.encode()) % partitions


__all__ = ["Destination", "Records", "RowsTooLarge", "encode", "part", "partition_of"]
