"""Sample keys of elements of streams of subqueries: 0 <= key < 2^63, by which SAMPLE keeps them or not.

An element is made of rows of several places, or of none that are left, as of groups. So its key is a hash of
what it is: its values, its instant, and which of the equal elements of that instant it is. It is drawn as the
keys of sources are (:mod:`engine.kernels.sampling`), one value after the other.

Cost: O(elements * columns), and hashing of each string that occurs.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from engine.changes.equality import codes_of, double_bits
from engine.kernels import sampling
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.sample import Sample
from engine.model.types import Kind
from engine.operators.relation import Relation

NULL_WORD = 0x5851F42D4C957F2D
"""What NULL counts as."""


def kept(relation: Relation, timestamps: Int64Array, sample: Sample) -> BoolArray:
    """bool[n]: which elements a sample keeps. timestamps: int64[n], ascending, ms."""
    keys = element_keys(relation, timestamps)
    if sample.seed is not None:
        drawn = np.empty(len(keys), np.int64)
        sampling.seeded_keys(np.uint64(sample.seed), keys, drawn)
        keys = drawn
    below = sample.keys_below
    return keys < below if below < 1 << 63 else np.ones(len(keys), np.bool_)


def element_keys(relation: Relation, timestamps: Int64Array) -> Int64Array:
    """int64[n]; the relation has no column of arrays."""
    keys = np.zeros(len(relation), np.int64)
    for column in relation.columns:
        sampling.chained_keys(keys, _words(column))
    sampling.chained_keys(keys, np.ascontiguousarray(timestamps))
    sampling.chained_keys(keys, _copies(relation, timestamps))
    return keys


def _words(column: Column) -> Int64Array:
    """int64[n]: each value as a number."""
    match column.type.kind:
        case Kind.NULL:
            words = np.zeros(len(column), np.int64)
        case Kind.DOUBLE:
            words = double_bits(column.values)
        case Kind.STRING:
            used, places = np.unique(column.values, return_inverse=True)
            dictionary = column.dictionary
            assert dictionary is not None
            texts = dictionary.take(used).to_pylist() if len(dictionary) else [""] * len(used)
            words = np.array([_of_text(text) for text in texts], np.uint64).view(np.int64)[places]
        case _:
            words = column.values.astype(np.int64)
    there = column.there()
    return np.ascontiguousarray(words if there.all() else np.where(there, words, NULL_WORD))


def _of_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _copies(relation: Relation, timestamps: Int64Array) -> Int64Array:
    """int64[n]: which of the equal elements of its instant each is, from 0."""
    n = len(relation)
    if not n:
        return np.empty(0, np.int64)
    _, instants = np.unique(timestamps, return_inverse=True)
    groups = codes_of(relation.columns, n) * (int(instants[-1]) + 1) + instants
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    copies = np.empty(n, np.int64)
    copies[order] = np.arange(n) - np.searchsorted(ordered, ordered)
    return copies
