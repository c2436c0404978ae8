"""A whole answer that is kept up with its changes, as a bag of rows.

It is made once, with a hash of each row, which takes long where it is large. Changes are collected, and
folded in when the answer is wanted: each row that went is looked up by its hash and compared, which costs
O(changes * log rows) besides the copying of columns. Of equal rows the last copy goes first, and one more is
the next copy (:mod:`engine.changes.copies`).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from engine.changes.copies import copies_of_whole
from engine.changes.equality import codes_of_table, double_bits
from engine.kernels import meeting
from engine.model.batch import Int32Array, Int64Array
from engine.model.changes import Weights
from engine.model.runs import places_of

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]

NULL_WORD = 0x5A5A_A5A5_0F0F_F0F0
"""What a NULL counts as; a value may have the same word, for rows with one hash are compared."""


class Contradiction(Exception):
    """A row went that was not there, or two rows have one hash: the answer is to be worked out again."""


class FoldedAnswer:
    """One owner at a time; it may pass from thread to thread."""

    def __init__(self, table: pa.Table, *, copies: bool) -> None:
        """table: the answer. copies: whether its equal rows are numbered. O(n log n), n rows."""
        self._copies = copies
        self._came: list[tuple[pa.Table, Weights, Hashes]] = []
        self._begin(table, copies_of_whole(table) if copies else None)

    def _begin(self, table: pa.Table, numbers: Int32Array | None) -> None:
        self._table, self._numbers = table, numbers
        hashes = hashes_of(table)
        order = np.argsort(hashes, kind="stable") if numbers is None else np.lexsort((numbers, hashes))
        self._order: Int64Array = order
        self._hashes = hashes[order]

    def take(self, table: pa.Table, weights: Weights) -> None:
        """Rows that came into it and went, in any order: a row may come and go. O(rows)."""
        self._came.append((table, weights, hashes_of(table)))

    def settle(self) -> None:
        """Fold in what has changed so far, and begin anew with that. O(n log n). Raises Contradiction."""
        if self._came:
            self._begin(*self.now())
            self._came = []

    def now(self) -> tuple[pa.Table, Int32Array | None]:
        """Returns the answer with all changes: its rows, and which copy each is, int32[rows], None where
        equal rows are not numbered. Raises Contradiction.
        """
        if not self._came:
            return self._table, self._numbers
        changes = pa.concat_tables([table for table, _, _ in self._came])
        _, first, kinds = np.unique(codes_of_table(changes), return_index=True, return_inverse=True)
        weights = np.concatenate([weights for _, weights, _ in self._came])
        net = np.bincount(kinds, weights, len(first)).astype(np.int64)
        hashes = np.concatenate([hashes for _, _, hashes in self._came])[first]
        there, beyond = (np.searchsorted(self._hashes, hashes, side=side) for side in ("left", "right"))
        went, came = np.flatnonzero(net < 0), np.flatnonzero(net > 0)
        if np.any(-net[went] > (beyond - there)[went]):
            raise Contradiction
        gone = self._order[places_of((beyond + net)[went], -net[went])]
        self._require_equal(gone, changes, first[np.repeat(went, -net[went])])
        known = came[beyond[came] > there[came]]
        self._require_equal(self._order[there[known]], changes, first[known])
        table, numbers = self._table, self._numbers
        if len(gone):
            stays = np.ones(table.num_rows, np.bool_)
            stays[gone] = False
            table = table.filter(pa.array(stays))
            numbers = None if numbers is None else numbers[stays]
        if len(came):
            table = pa.concat_tables([table, changes.take(first[np.repeat(came, net[came])])])
            if numbers is not None:
                more = places_of((beyond - there)[came] + 1, net[came]).astype(np.int32)
                numbers = np.concatenate([numbers, more])
        return table, numbers

    def _require_equal(self, mine: Int64Array, changes: pa.Table, others: Int64Array) -> None:
        """Raises Contradiction unless some rows of the answer are those of the changes, one by one."""
        n = len(mine)
        if n:
            codes = codes_of_table(pa.concat_tables([self._table.take(mine), changes.take(others)]))
            if not np.array_equal(codes[:n], codes[n:]):
                raise Contradiction


def hashes_of(table: pa.Table) -> Hashes:
    """uint64[n]: equal for rows that are equal as :mod:`engine.changes.equality` has it, and mostly for no
    others. O(n * columns).
    """
    hashes = np.zeros(table.num_rows, np.uint64)
    for column in table.columns:
        meeting.mix(hashes, _words(column))
    return hashes


def _words(column: pa.ChunkedArray) -> Int64Array:
    """int64[n]: equal for equal values."""
    n, type_ = len(column), column.type
    if pa.types.is_null(type_):
        return np.full(n, NULL_WORD)
    if pa.types.is_floating(type_) or pa.types.is_integer(type_) or pa.types.is_timestamp(type_):
        missing = column.is_null().to_numpy() if column.null_count else None
        if pa.types.is_timestamp(type_):
            column = column.cast(pa.int64())
        values = (column if missing is None else column.fill_null(0)).to_numpy()
        words = double_bits(values) if pa.types.is_floating(type_) else values.astype(np.int64, copy=False)
        return words if missing is None else np.where(missing, NULL_WORD, words)
    if pa.types.is_list(type_):
        return np.array([_word(value) for value in column.to_pylist()], np.int64)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    known = np.array([_word(value) for value in encoded.dictionary.to_pylist()], np.int64)
    return known[encoded.indices.to_numpy(zero_copy_only=False)] if n else np.empty(0, np.int64)


def _word(value: Any) -> int:
    """A value as 64 bits."""
    if value is None:
        return NULL_WORD
    told = value.encode(errors="surrogatepass") if isinstance(value, str) else repr(value).encode()
    return int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "little", signed=True)
