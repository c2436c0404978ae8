"""Hash indexes over the rows of a source by one key: what a SteM is probed through.

Rows of one key hang together from newest to oldest, so that a probe stops at the lower bound of a window: the
older timestamp prunes. NULL keys are never found. Rows below ``base`` are let go; memory is in proportion to
the rows that are retained, whatever came before: arrays are moved when they are full, tables are made anew
from the keys that still have rows.

An index serves all shapes that probe its source by its key; :class:`KeyIndexes` counts who does. Indexes with
keys of one kind number them alike (:mod:`engine.joins.key_codes`), whatever their sources.

One writer. Readers take :class:`OrdinalKeys`, which does not change: they join by the keys of rows and never
look into the table. Cost: O(1) a row and probe, amortised; 20 bytes a row and 32 to 128 a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.joins.key_codes import KeyCodes, NumberedKeys, kind_of
from engine.kernels import key_table
from engine.language.render import render_expression
from engine.model.attributes import Attribute
from engine.model.batch import BoolArray, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.expressions import Expression
from engine.model.source import SourceName
from engine.operators.relation import Relation
from engine.stems.rows import Rows

Int32Array = npt.NDArray[np.int32]

ROWS_MIN = 8_192
TABLE_MIN = 1_024
CODES_MIN = 65_536


@dataclass(frozen=True, slots=True)
class OrdinalKeys:
    """The keys of the rows base <= ordinal < end, as numbers that equal where the keys do."""

    base: int
    end: int
    _first: int
    _keys: Int64Array
    _back: Int32Array

    def of(self, ordinals: Int64Array) -> tuple[Int64Array, BoolArray]:
        """int64[n], and bool[n]: where they are NULL."""
        places = ordinals - self._first
        return self._keys[places], self._back[places] == key_table.UNKNOWN


class KeyIndex:
    """A hash index over the rows of one source by one key."""

    def __init__(
        self,
        source: SourceName,
        expressions: tuple[Expression, ...],
        codes: KeyCodes,
        capacities: Capacities = USUAL,
    ) -> None:
        self._capacities = capacities
        self.source = source
        self.expressions = expressions
        self.codes = codes
        self.base = self.end = self.first = 0
        self.users = 0
        self.keys: Int64Array = np.empty(0, np.int64)
        self.back: Int32Array = np.empty(0, np.int32)
        self.table = self._new_table(0)
        self._used = 0

    def __len__(self) -> int:
        return self.end - self.base

    @property
    def unlike(self) -> int:
        """About how many unlike keys its rows have; keys whose rows are gone are among them for a while."""
        return min(self._used, len(self))

    def append(self, rows: Rows, end: int) -> int:
        """Take in the rows that are not in and lie below ``end``; returns how many they are."""
        self.drop_below(rows.base)
        if not len(self):  # nothing yet, or nothing any more
            self.base = self.end = self.first = max(self.end, rows.base)
            self.keys, self.back = self.keys[:0], self.back[:0]
        begun = self.end
        for ordinal, batch in rows.slices(self.end, end):
            columns, _ = Relation(batch.columns, len(batch)).values_of(self.expressions)
            self._put(ordinal, self.codes.number(columns))
        return self.end - begun

    def _put(self, ordinal: int, coming: NumberedKeys) -> None:
        assert ordinal == self.end
        n = len(coming.keys)
        self._make_room(n)
        place = 0
        while True:
            place, self._used = key_table.insert(
                coming.keys,
                coming.null,
                place,
                self.table,
                self._used,
                self.base,
                self.first,
                ordinal,
                self.keys,
                self.back,
            )
            if place == n:
                break
            self._renew_table()
        self.end += n

    def _make_room(self, n: int) -> None:
        if self.end + n - self.first <= len(self.keys):
            return
        room = max(self._capacities.first(ROWS_MIN), 2 * (len(self) + n))
        alive = slice(self.base - self.first, self.end - self.first)
        keys, back = np.empty(room, np.int64), np.empty(room, np.int32)
        keys[: len(self)], back[: len(self)] = self.keys[alive], self.back[alive]
        self.keys, self.back, self.first = keys, back, self.base

    def _new_table(self, keys: int) -> Int64Array:
        """An empty one, of which so many keys take a quarter at most."""
        room = max(self._capacities.first(TABLE_MIN), 1 << (4 * keys - 1).bit_length())
        table = np.zeros((room, 2), np.int64)
        table[:, 1] = key_table.EMPTY
        return table

    def _renew_table(self) -> None:
        """Without the keys that have no rows any more, and at most a quarter full."""
        self._used = key_table.count_live(self.table, self.base)
        table = self._new_table(self._used)
        key_table.move_live(self.table, self.base, table)
        self.table = table

    def drop_below(self, base: int) -> None:
        """Rows below this ordinal are gone. Never moves back. O(1)."""
        if base > self.base:
            self.base = min(base, self.end)
            if len(self.keys) > 4 * max(self._capacities.first(ROWS_MIN), len(self)):
                self._shrink()

    def _shrink(self) -> None:
        alive = slice(self.base - self.first, self.end - self.first)
        self.keys, self.back = self.keys[alive].copy(), self.back[alive].copy()
        self.first = self.base
        self._renew_table()

    def restart(self, base: int) -> None:
        """Forget all rows: the next is this ordinal, lower than before perhaps."""
        self.base = self.end = self.first = base
        self.keys, self.back = self.keys[:0], self.back[:0]
        self.table, self._used = self._new_table(0), 0

    def view(self) -> OrdinalKeys:
        """The keys as they stand."""
        return OrdinalKeys(self.base, self.end, self.first, self.keys, self.back)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.back.nbytes + self.table.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it."""
        keys = ", ".join(map(render_expression, self.expressions))
        return (
            Attribute("source", self.source, "whose rows"),
            Attribute("key", keys, "by what they are found"),
            Attribute("rows", len(self), "rows that it holds"),
            Attribute("joins", self.users, "joins that probe it"),
        )

    def used_codes(self) -> Int64Array:
        """The numbers that retained rows have, distinct and ascending."""
        alive = slice(self.base - self.first, self.end - self.first)
        return np.unique(self.keys[alive][self.back[alive] != key_table.UNKNOWN])

    def recode(self, used: Int64Array, renewed: Int64Array) -> None:
        """Keys with number used[i] have number renewed[i] from now on; all that rows have are among them."""
        alive = slice(self.base - self.first, self.end - self.first)
        keys, back = np.zeros(len(self.keys), np.int64), self.back
        known = back[alive] != key_table.UNKNOWN
        keys[alive][known] = renewed[np.searchsorted(used, self.keys[alive][known])]
        entries = self.table[self.table[:, 1] >= self.base]
        self._used = len(entries)
        self.table = self._new_table(self._used)
        if len(entries):
            moved = entries.copy()
            moved[:, 0] = renewed[np.searchsorted(used, entries[:, 0])]
            key_table.move_live(moved, self.base, self.table)
        self.keys = keys

    def _check(self) -> None:
        assert self.first <= self.base <= self.end
        newest: dict[int, int] = {}
        for ordinal in range(self.base, self.end):
            key, back = int(self.keys[ordinal - self.first]), int(self.back[ordinal - self.first])
            if back == key_table.UNKNOWN:
                continue
            before = newest.get(key)
            if before is None:
                assert back == 0 or ordinal - back < self.base
            else:
                assert ordinal - back == before
            newest[key] = ordinal
        live = self.table[self.table[:, 1] >= self.base] if len(self) else self.table[:0]
        assert dict(map(tuple, live.tolist())) == newest
        assert 2 * self._used <= len(self.table)
        assert self._used == int((self.table[:, 1] != key_table.EMPTY).sum())


class KeyIndexes:
    """All indexes of an engine. A user takes one and gives it back."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._capacities = capacities
        self._indexes: dict[tuple[SourceName, tuple[Expression, ...]], KeyIndex] = {}
        self._codes: dict[tuple[str, ...], KeyCodes] = {}

    def take(self, source: SourceName, expressions: tuple[Expression, ...]) -> KeyIndex:
        """The index of a source by this key, made where there is none."""
        index = self._indexes.get((source, expressions))
        if index is None:
            kinds = kind_of([expression.type for expression in expressions])
            codes = self._codes.setdefault(kinds, KeyCodes(kinds, self._capacities))
            index = self._indexes[source, expressions] = KeyIndex(
                source, expressions, codes, self._capacities
            )
        index.users += 1
        return index

    def give_back(self, index: KeyIndex) -> None:
        """A user gives an index back; the last one's removes it."""
        index.users -= 1
        if index.users:
            return
        del self._indexes[index.source, index.expressions]
        if not any(other.codes is index.codes for other in self):
            self._codes = {kinds: codes for kinds, codes in self._codes.items() if codes is not index.codes}

    def __iter__(self) -> Iterator[KeyIndex]:
        return iter(self._indexes.values())

    def __len__(self) -> int:
        return len(self._indexes)

    def drop_below(self, source: SourceName, base: int) -> None:
        """Rows of a source are gone; numbers of keys that nothing has any more are, now and then."""
        for index in self:
            if index.source == source:
                index.drop_below(base)
        for codes in self._codes.values():
            sharing = [index for index in self if index.codes is codes]
            if codes.given > self._capacities.first(CODES_MIN) + 2 * sum(len(index) for index in sharing):
                used = np.unique(np.concatenate([index.used_codes() for index in sharing]))
                renewed = codes.compact(used)
                for index in sharing:
                    index.recode(used, renewed)

    def restart(self, source: SourceName, base: int) -> None:
        """The rows of a source begin elsewhere: its indexes take them in anew at the next step."""
        for index in self:
            if index.source == source:
                index.restart(base)

    @property
    def nbytes(self) -> int:
        indexes = sum(index.nbytes for index in self)
        return indexes + sum(codes.nbytes for codes in self._codes.values())
