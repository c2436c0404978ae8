"""Hash indexes over the rows of a source by one key: what a SteM is probed through.

Rows of one key hang together from newest to oldest, so that a probe stops at the lower bound of a window: the
older timestamp prunes. NULL keys are never found, nor are rows that no query wants: they are *absent*, and
may be put in later, between those that are there. Rows below ``base`` are let go; memory is in proportion to
the rows that are retained, whatever came before: arrays are moved when they are full, tables are made anew
from the keys that still have rows.

An index serves all shapes that probe its source by its key; :class:`KeyIndexes` counts who does. Indexes with
keys of one kind number them alike (:mod:`engine.joins.key_codes`), whatever their sources.

One writer. Readers take :class:`OrdinalKeys`, which does not change: they join by the keys of rows and never
look into the table. Cost: O(1) a row and probe, amortised; 12 bytes a row and 8 to 32 a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.joins.key_codes import NO_NULL, KeyCodes, NumberedKeys, kind_of
from engine.kernels import key_table
from engine.language.render import render_expression
from engine.model.attributes import Attribute
from engine.model.batch import BoolArray, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.expressions import Expression
from engine.model.source import SourceName
from engine.operators.relation import Relation
from engine.stems.rows import Rows
from engine.stems.segment import SegmentView

Int32Array = npt.NDArray[np.int32]

ROWS_MIN = 8_192
TABLE_MIN = 1_024
CODES_MIN = 65_536
ROWS_MAX = 1 << 31
"""Ordinals that the table can tell apart."""
STEPS_A_ROW = 16
"""So many later rows of its key are passed for each row that is put between others; more, and all rows are
put into the index anew.
"""


@dataclass(frozen=True, slots=True)
class OrdinalKeys:
    """The keys of the rows base <= ordinal < end, as numbers that equal where the keys do."""

    base: int
    end: int
    _first: int
    _keys: Int64Array
    _back: Int32Array

    def of(self, ordinals: Int64Array) -> tuple[Int64Array, BoolArray]:
        """int64[n], and bool[n]: where they are NULL, or the rows are absent."""
        places = ordinals - self._first
        unknown: BoolArray = self._back[places] < 0  # before the keys, which are written first
        return self._keys[places], unknown

    def has(self, ordinals: Int64Array) -> bool:
        """Whether all of these rows are in, ascending and not none."""
        if ordinals[0] < self.base or ordinals[-1] >= self.end:
            return False
        return not (self._back[ordinals - self._first] == key_table.ABSENT).any()


class NewestRows:
    """The table of an index: the newest row of each key. One writer.

    slots: as :mod:`engine.kernels.key_table` has them, of which at most half are taken. origin: the ordinal
    that they count from. used: how many are taken, also for keys whose rows have gone.
    """

    def __init__(self, capacities: Capacities) -> None:
        self._room_min = capacities.first(TABLE_MIN)
        self.slots = self._room_for(0)
        self.origin = self.used = 0

    def _room_for(self, keys: int) -> Int32Array:
        """Slots, none taken, of which so many keys take a quarter at most."""
        room = max(self._room_min, 1 << (4 * keys - 1).bit_length())
        return np.full(room, key_table.EMPTY, np.int32)

    def clear(self, origin: int, keys: int = 0) -> None:
        """No key is known; so many will be."""
        if self.used:
            self.slots, self.used = self._room_for(keys), 0
        self.origin = origin

    def renew(self, base: int, first: int, keys: Int64Array) -> None:
        """Keys that have no row from ``base`` on go. keys: of the rows from ``first`` on."""
        low = base - self.origin
        self.used = key_table.count_live(self.slots, low)
        slots = self._room_for(self.used)
        key_table.move_live(self.slots, low, first - self.origin, keys, slots)
        self.slots, self.origin = slots, first


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
        self._newest = NewestRows(capacities)

    def __len__(self) -> int:
        return self.end - self.base

    @property
    def indexed(self) -> int:
        """How many rows are in; the others are absent. O(rows)."""
        alive = self.back[self.base - self.first : self.end - self.first]
        return int(np.count_nonzero(alive != key_table.ABSENT))

    def is_in(self, start: int, stop: int) -> BoolArray:
        """bool[stop - start]: which of these rows are in."""
        inside: BoolArray = self.back[start - self.first : stop - self.first] != key_table.ABSENT
        return inside

    @property
    def unlike(self) -> int:
        """About how many unlike keys its rows have; keys whose rows are gone are among them for a while."""
        return min(self._newest.used, len(self))

    def take_in(self, rows: Rows, start: int, wanted: BoolArray | None, end: int) -> None:
        """Rows from ``start`` on and below ``end`` are in, as far as they are wanted: bool[end - start], or
        all. Those between that are not known yet are absent. O(rows), and for rows that are put between
        others a few steps each, or once O(all rows).
        """
        self.drop_below(rows.base)
        if not len(self):  # nothing yet, or nothing any more
            self._begin_at(max(self.end, rows.base))
        self._take_in_old(rows, max(start, self.base), wanted, min(end, self.end), start)
        while self.end < min(start, end):
            self._pass_over(min(start, end) - self.end)
        for part, low, high in rows.ranges(self.end, end):
            ordinal = part.first + low
            if wanted is None:
                columns = [column.whole(part.n).slice(low, high) for column in part.columns]
                keys, _ = Relation(columns, high - low).values_of(self.expressions)
                self._put(ordinal, self.codes.number(keys))
                continue
            self._pass_over(high - low)
            self._put_some(part, low + np.flatnonzero(wanted[ordinal - start : ordinal - start + high - low]))

    def _pass_over(self, n: int) -> None:
        """The next n rows are absent."""
        self._make_room(n)
        self.back[self.end - self.first : self.end - self.first + n] = key_table.ABSENT
        self.end += n

    def _take_in_old(self, rows: Rows, first: int, wanted: BoolArray | None, stop: int, start: int) -> None:
        """Those of rows first .. stop-1 that are wanted and absent. wanted: from ``start`` on."""
        if first >= stop:
            return
        absent = self.back[first - self.first : stop - self.first] == key_table.ABSENT
        if wanted is not None:
            absent &= wanted[first - start : stop - start]
        if not absent.any():
            return
        for part, low, high in rows.ranges(first, stop):
            ordinal = part.first + low
            self._put_some(part, low + np.flatnonzero(absent[ordinal - first : ordinal - first + high - low]))

    def _put_some(self, part: SegmentView, places: Int64Array) -> None:
        """These rows of a segment, which are absent."""
        if not len(places):
            return
        rows = Relation([column.whole(part.n) for column in part.columns], part.n).take(places)
        keys, _ = rows.values_of(self.expressions)
        self._insert(self.codes.number(keys), part.first + places)

    def _insert(self, coming: NumberedKeys, ordinals: Int64Array) -> None:
        place, steps = 0, STEPS_A_ROW * len(ordinals)
        rows = key_table.SomeRows(coming.keys, coming.null, ordinals)
        while place < len(ordinals):
            index, newest = self.arrays(), self._newest
            place, newest.used, steps = key_table.insert_some(rows, place, index, newest.used, steps)
            if place < len(ordinals) and not steps:  # to put all in anew costs less than to walk on
                self._put_with(coming, ordinals, place)
                return
            if place < len(ordinals):
                self._renew_table()

    def _put_with(self, coming: NumberedKeys, ordinals: Int64Array, begin: int) -> None:
        """Put all rows that are in into an empty table, and those of ``ordinals`` from ``begin`` on."""
        rest = ordinals[begin:] - self.first
        null = coming.null[begin:] if len(coming.null) else np.zeros(len(rest), np.bool_)
        self.keys[rest] = coming.keys[begin:]
        self.back[rest] = np.where(null, key_table.UNKNOWN, 0)
        known = (
            self.base
            - self.first
            + np.flatnonzero(self.back[self.base - self.first : self.end - self.first] >= 0)
        )
        self._newest.clear(self.first, len(known))
        found = NumberedKeys(self.keys[known], NO_NULL)
        self._insert(found, self.first + known)

    def _put(self, ordinal: int, coming: NumberedKeys) -> None:
        assert ordinal == self.end
        n = len(coming.keys)
        self._make_room(n)
        place = 0
        while True:
            index, newest = self.arrays(), self._newest
            place, newest.used = key_table.insert(
                coming.keys, coming.null, place, index, newest.used, ordinal
            )
            if place == n:
                break
            self._renew_table()
        self.end += n

    def _make_room(self, n: int) -> None:
        if self.end + n - self.first <= len(self.keys):
            return
        held = len(self) + n
        room = held + max(self._capacities.first(ROWS_MIN), held // 3)
        alive = slice(self.base - self.first, self.end - self.first)
        keys, back = np.empty(room, np.int64), np.empty(room, np.int32)
        keys[: len(self)], back[: len(self)] = self.keys[alive], self.back[alive]
        self._move(keys, back)
        if self.first + room - self._newest.origin > ROWS_MAX:
            self._renew_table()

    def _move(self, keys: Int64Array, back: Int32Array) -> None:
        """These arrays have the keys of the rows from ``base`` on, and how far back each leads."""
        self.keys, self.back, self.first = keys, back, self.base

    def _renew_table(self) -> None:
        """Without the keys that have no rows any more."""
        self._newest.renew(self.base, self.first, self.keys)

    def arrays(self) -> key_table.Index:
        """As kernels take them."""
        newest = self._newest
        gone = self.first - newest.origin
        return key_table.Index(newest.slots, self.keys, self.back, self.base, self.first, gone)

    def drop_below(self, base: int) -> None:
        """Rows below this ordinal are gone. Never moves back. O(1)."""
        if base > self.base:
            self.base = min(base, self.end)
            if len(self.keys) > 4 * max(self._capacities.first(ROWS_MIN), len(self)):
                self._shrink()

    def _shrink(self) -> None:
        alive = slice(self.base - self.first, self.end - self.first)
        self._move(self.keys[alive].copy(), self.back[alive].copy())
        self._renew_table()

    def restart(self, base: int) -> None:
        """Forget all rows: the next is this ordinal, lower than before perhaps."""
        self._begin_at(base)

    def _begin_at(self, base: int) -> None:
        """There are no rows, and this ordinal is the next."""
        self.base = self.end = self.first = base
        self.keys, self.back = self.keys[:0], self.back[:0]
        self._newest.clear(base)

    def view(self) -> OrdinalKeys:
        """The keys as they stand."""
        return OrdinalKeys(self.base, self.end, self.first, self.keys, self.back)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.back.nbytes + self._newest.slots.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it."""
        keys = ", ".join(map(render_expression, self.expressions))
        return (
            Attribute("source", self.source, "whose rows"),
            Attribute("key", keys, "by what they are found"),
            Attribute("rows", len(self), "rows that it knows"),
            Attribute("rows_indexed", self.indexed, "of them rows that a query wants: these are found"),
            Attribute("joins", self.users, "joins that probe it"),
        )

    def used_codes(self) -> Int64Array:
        """The numbers that retained rows have, distinct and ascending."""
        alive = slice(self.base - self.first, self.end - self.first)
        return np.unique(self.keys[alive][self.back[alive] >= 0])

    def recode(self, used: Int64Array, renewed: Int64Array) -> None:
        """Keys with number used[i] have number renewed[i] from now on; all that rows have are among them."""
        alive = slice(self.base - self.first, self.end - self.first)
        keys, back = (
            np.zeros(len(self.keys), np.int64),
            self.back.copy(),
        )  # readers have the old ones together
        known = back[alive] >= 0
        keys[alive][known] = renewed[np.searchsorted(used, self.keys[alive][known])]
        self.keys, self.back = keys, back
        self._renew_table()

    def _check(self) -> None:
        assert self.first <= self.base <= self.end
        newest: dict[int, int] = {}
        for ordinal in range(self.base, self.end):
            key, back = int(self.keys[ordinal - self.first]), int(self.back[ordinal - self.first])
            if back < 0:
                continue
            before = newest.get(key)
            if before is None:
                assert back == 0 or ordinal - back < self.base
            else:
                assert ordinal - back == before
            newest[key] = ordinal
        slots, _, _, _, _, gone = self.arrays()
        live = slots[slots >= self.base - self._newest.origin] if len(self) else slots[:0]
        rows = live.astype(np.int64) - gone
        found = zip(self.keys[rows].tolist(), (self.first + rows).tolist(), strict=True)
        assert dict(found) == newest
        assert len(live) == len(newest)
        assert 2 * self._newest.used <= len(slots)
        assert self._newest.used == int((slots != key_table.EMPTY).sum())


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
