"""Which shard a row belongs to: a hash of its key, the same on every machine and in every version.

Keys that are equal have one hash: -0.0 and 0.0, all NaNs, an INTEGER and a BIGINT of one value. NULL is a
key like others. Cost: O(rows + distinct strings in the batch's dictionary).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.model.batch import Batch, Column, concatenate
from engine.model.source import Stream
from engine.model.types import Kind
from spark_jobs.scale_out.shards.layout import Layout

UInt64Array = npt.NDArray[np.uint64]

NULL_HASH = np.uint64(0x9E3779B97F4A7C15)


def cut(stream: Stream, rows: Batch, layout: Layout) -> list[tuple[int, Batch]]:
    """(shard, its rows in their order), of those shards that get any."""
    if not len(rows):
        return []
    found: list[tuple[int, Batch]] = []
    if stream.name in layout.keys:
        found += _by_key(stream, rows, layout)
    elif stream.is_table:
        found += [(shard, rows) for shard in range(layout.shards)]
    if layout.whole_shard_has(stream):
        found.append((layout.whole_shard, rows))
    return found


def _by_key(stream: Stream, rows: Batch, layout: Layout) -> list[tuple[int, Batch]]:
    if layout.shards == 1:
        return [(0, rows)]
    place = stream.schema.index(layout.keys[stream.name])
    assert place is not None
    shards = shards_of(rows.columns[place], layout.shards)
    order = np.argsort(shards, kind="stable")
    bounds = np.searchsorted(shards[order], np.arange(layout.shards + 1))
    return [
        (shard, rows.take(order[bounds[shard] : bounds[shard + 1]]))
        for shard in range(layout.shards)
        if bounds[shard] < bounds[shard + 1]
    ]


def shards_of(keys: Column, shards: int) -> npt.NDArray[np.int64]:
    """int64[n]: the shard of each key."""
    return (hashes_of(keys) % np.uint64(shards)).astype(np.int64)


def hashes_of(keys: Column) -> UInt64Array:
    """uint64[n]: equal for equal keys."""
    found = _mixed(_words(keys))
    return found if keys.valid is None else np.where(keys.valid, found, NULL_HASH)


def _words(keys: Column) -> UInt64Array:
    """What is hashed: 64 bits that equal keys have in common."""
    if keys.type.kind is Kind.STRING:
        assert keys.dictionary is not None
        texts = keys.dictionary.to_pylist()
        sums = np.fromiter((zlib.crc32(text.encode()) for text in texts), np.uint64, len(texts))
        return sums[keys.values] if len(sums) else np.zeros(len(keys), np.uint64)
    if keys.type.kind is Kind.DOUBLE:
        values = keys.values + 0.0  # -0.0 is 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    return keys.values.astype(np.int64).view(np.uint64)


def _mixed(words: UInt64Array) -> UInt64Array:
    """Every bit of the outcome depends on every bit: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = words + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def put_together(stream: Stream, pieces: Sequence[Batch]) -> Batch:
    """What a shard got of a stream in pieces, by partition and offset, in whatever order they came."""
    rows = concatenate(stream.stored_schema, pieces)
    order = np.lexsort((rows.offset, rows.partition))
    return rows if bool((order[1:] > order[:-1]).all()) else rows.take(order)


def place_values(shards: int) -> list[int]:
    """For each shard a number that ``repartition(shards, number)`` of Spark puts into that very partition, so
    that every shard has a task of its own. Expected cost: O(shards * log shards) hashes.
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < shards:
        found.setdefault(_murmur3(number) % shards, number)
        number += 1
    return [found[shard] for shard in range(shards)]


def _murmur3(number: int) -> int:
    """Spark's ``hash`` of an INT: Murmur3 of 32 bits with the seed 42, as a signed number."""
    mask = 0xFFFFFFFF

    def rotated(word: int, by: int) -> int:
        return ((word << by) | (word >> (32 - by))) & mask

    word = rotated(number * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    state = (rotated(42 ^ word, 13) * 5 + 0xE6546B64) & mask
    state ^= 4
    state = (state ^ (state >> 16)) * 0x85EBCA6B & mask
    state = (state ^ (state >> 13)) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - (1 << 32) if state & 0x80000000 else state
