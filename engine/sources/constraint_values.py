"""The values that rows have in the columns of constraints: their numbers, and what is known of each.

Of ORDERED the last k values and a bound are known, of CLUSTERED and UNIQUE the values that were there within
RETAIN, each with an id, and of older ones a hash, or of whole numbers the runs that they make up. O(1) a
value, amortised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.joins.key_codes import KeyCodes, NumberPairs, kind_of
from engine.kernels import constraints as kernels
from engine.kernels import intervals
from engine.kernels.constraints import NO_ID, NOTHING
from engine.model.batch import Batch, Column, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.constraint import Clustered, Ordered, Unique, columns_of
from engine.model.persistence import ConstraintState
from engine.model.source import Schema, Stream
from engine.model.types import Kind
from engine.sources.past_numbers import WHOLE, PastNumbers
from engine.sources.past_values import PastValues

IDS_MIN = 1_024
UNKNOWN = -1
PAST = -2
"""In the place of the number of a row: there was none; there was one, longer ago than RETAIN."""
BEFORE_ALL_MS = -(2**62)

RowConstraint = Ordered | Clustered | Unique
"""What a row keeps or breaks as it enters."""


class ConstraintValues:
    """``checked``: the constraints that rows keep or break as they enter, each with its number among all of
    the stream; *c* is its place here. ``past``: values beyond RETAIN, one for each.
    """

    def __init__(self, stream: Stream, past_max: int, capacities: Capacities = USUAL) -> None:
        """past_max: so many values of a constraint are known beyond RETAIN."""
        self._capacities = capacities
        self._ids_min = capacities.first(IDS_MIN)
        self.checked: list[tuple[int, RowConstraint]] = [
            (number, one)
            for number, one in enumerate(stream.constraints)
            if isinstance(one, Ordered | Clustered | Unique)
        ]
        self._places = [_places(stream.schema, columns_of(one)) for _, one in self.checked]
        fields = stream.schema.fields
        self._codes = [
            KeyCodes(kind_of([fields[place].type for place in places]), capacities) for places in self._places
        ]
        self._rules, rings, dues = _rules([one for _, one in self.checked], stream.retain_ms)
        self._ids = NumberPairs(self._capacities)
        self.past = [_past_of([fields[place].type.kind for place in each], past_max) for each in self._places]
        self._hashes: Int64Array = np.zeros(self._ids_min, np.int64)
        """By id, of values that are there, as past ones are known."""
        self._state = _state(
            np.full(len(self.checked), NOTHING), np.full(rings, NOTHING), np.full(dues, NO_ID), self._ids_min
        )
        self._compact_at = self._ids_min

    @property
    def rows_needed(self) -> int:
        """How many of the last rows decide whether the next ones break a constraint."""
        return int(self._rules.rows.max(initial=-1)) + 1

    def enforce(self, rows: Batch, first: int) -> tuple[int, Int64Array, NDArray[np.int8], NDArray[np.int8]]:
        """Rows come in order; first: the number of the first that enters. Returns the number of the next,
        int64[c, n] the values, int8[n] which constraint each row broke or KEPT, int8[c, n] whether its value
        is FRESH. O(rows * constraints).
        """
        values = self._values(rows)
        broken, came = np.empty(len(rows), np.int8), np.empty(values.shape, np.int8)
        following = kernels.enforce(values, rows.timestamp, first, self._rules, self._state, broken, came)
        return following, values, broken, came

    def mark_again(self, rows: Batch, values: Int64Array, came: NDArray[np.int8]) -> None:
        """Where a FRESH value was there, and over, longer ago than RETAIN, ``came`` is AGAIN afterwards."""
        for c in np.flatnonzero((came == kernels.FRESH).any(axis=1)).tolist():
            fresh = np.flatnonzero(came[c] == kernels.FRESH)
            hashes = self._hash(c, rows.take(fresh), values[c, fresh])
            came[c, fresh[self.past[c].has(hashes)]] = kernels.AGAIN

    def _hash(self, c: int, rows: Batch, ids: Int64Array) -> Int64Array:
        """What past values are known by, of the values of rows, none of them NULL; it is kept by id."""
        hashes = self.past[c].codes([rows.columns[place] for place in self._places[c]])
        self._hashes[ids] = hashes
        return hashes

    def learn(self, rows: Batch) -> None:
        """History came back: its values were there. It breaks nothing."""
        if not len(rows) or not self.checked:
            return
        values, state = self._values(rows), self._state
        for c, (_, one) in enumerate(self.checked):
            if isinstance(one, Ordered):
                continue
            ids = values[c][values[c] != NO_ID]
            there = np.flatnonzero(values[c] != NO_ID)
            self._hash(c, rows.take(there), ids)
            fresh = np.unique(ids[state.own[ids] == 0])
            state.own[fresh], state.over[fresh], state.last_ms[fresh] = 1, True, rows.timestamp[0]
            np.maximum.at(state.last_ms, ids, rows.timestamp[values[c] != NO_ID])

    def _values(self, rows: Batch) -> Int64Array:
        """int64[c, n], as the kernel takes them."""
        values = np.empty((len(self.checked), len(rows)), np.int64)
        for c, ((_, one), places) in enumerate(zip(self.checked, self._places, strict=True)):
            columns = [rows.columns[place] for place in places]
            if isinstance(one, Ordered):
                values[c] = orderable(columns[0])
            else:
                numbered = self._codes[c].number(columns)
                values[c] = self._ids.number(np.full(len(rows), c, np.int64), numbered.keys)
                if len(numbered.null):
                    values[c][numbered.null] = NO_ID
        if len(self._ids) > len(self._state.own):
            self._grow(2 * len(self._ids))
        return values

    def _grow(self, room: int) -> None:
        old = self._state
        self._state = _state(old.bound, old.ring, old.due, room)
        for held, before in zip(self._state[3:], old[3:], strict=True):
            held[: len(before)] = before
        self._hashes = np.concatenate([self._hashes, np.zeros(room - len(self._hashes), np.int64)])

    @property
    def is_to_compact(self) -> bool:
        """Whether they are many."""
        return len(self._ids) > self._compact_at

    def compact(self, now_ms: int) -> None:
        """Let go of values that were not there within RETAIN: their hashes stay. O(values)."""
        old, count = self._state, len(self._ids)
        recent = old.last_ms[:count] >= now_ms - self._rules.retain_ms
        is_open = np.zeros(count, np.bool_)
        constraint, keys = self._ids.parts(np.arange(count))
        clustered = self._rules.kind[constraint] == kernels.CLUSTERED
        is_open[clustered] = ~old.over[:count][clustered]
        was_there = old.own[:count] > 0
        live = np.flatnonzero(was_there & (recent | is_open))
        gone = np.flatnonzero(was_there & ~(recent | is_open))
        for c, past in enumerate(self.past):
            past.add(self._hashes[gone[constraint[gone] == c]])
        constraint, keys = constraint[live], keys[live]
        for c, codes in enumerate(self._codes):
            if not codes.is_plain:
                mine = constraint == c
                used, inverse = np.unique(keys[mine], return_inverse=True)
                keys[mine] = codes.compact(used)[inverse]
        self._ids = NumberPairs(self._capacities)
        ids = self._ids.number(constraint, keys)
        due = np.full(len(old.due), NO_ID)
        self._state = _state(old.bound, old.ring, due, max(self._ids_min, 2 * len(live)))
        for held, before in zip(self._state[4:], old[4:], strict=True):
            held[ids] = before[live]
        hashes, self._hashes = self._hashes[live], np.zeros(len(self._state.own), np.int64)
        self._hashes[ids] = hashes
        for c in np.flatnonzero(self._rules.kind == kernels.CLUSTERED).tolist():
            self._wait(c, ids[(constraint == c) & ~old.over[live]])
        self._compact_at = max(self._ids_min, 2 * len(live))

    def _wait(self, c: int, ids: Int64Array) -> None:
        """Open values of a clustered constraint wait for their ends."""
        state, rows, first = self._state, int(self._rules.rows[c]), int(self._rules.first[c])
        at = first + (state.born[ids] + state.own[ids] + rows) % (rows + 2)
        for one, place in zip(ids.tolist(), at.tolist(), strict=True):
            state.after[one] = state.due[place]
            state.due[place] = one

    def found(self, unique: Unique, values: Sequence[Column]) -> tuple[Int64Array, Int64Array]:
        """The number and the instant of the last row that has these values of unique columns, int64[n] each;
        number UNKNOWN where none had them that is known of; PAST, and an instant before all, where it went
        longer ago than RETAIN. values: one column for each of the constraint's, without NULL where it counts.
        """
        c = next(c for c, (_, one) in enumerate(self.checked) if one == unique)
        ids = self._numbered(c, values)
        numbers = np.where(self._state.own[ids] > 0, self._state.last[ids], UNKNOWN)
        instants = self._state.last_ms[ids]
        missing = np.flatnonzero(numbers == UNKNOWN)
        if len(missing):
            codes = self.past[c].codes([column.take(missing) for column in values])
            gone = missing[self.past[c].has(codes)]
            numbers[gone], instants[gone] = PAST, BEFORE_ALL_MS
        return numbers, instants

    def _numbered(self, c: int, values: Sequence[Column]) -> Int64Array:
        """The ids of values."""
        keys = self._codes[c].number(values).keys
        ids = self._ids.number(np.full(len(keys), c, np.int64), keys)
        if len(self._ids) > len(self._state.own):
            self._grow(2 * len(self._ids))
        return ids

    # --- the store's side -------------------------------------------------------------------------

    def state_of(self, c: int, broken: int, first: int) -> ConstraintState:
        """To be saved. broken: rows that broke it; first: the number of the first row that is retained."""
        bound = int(self._state.bound[c])
        opened: list[tuple[int, int, int]] = []
        if isinstance(self.checked[c][1], Clustered):
            constraint, _ = self._ids.parts(np.arange(len(self._ids)))
            state, there = self._state, slice(0, len(self._ids))
            ids = np.flatnonzero((constraint == c) & (state.own[there] > 0) & ~state.over[there])
            of = state.last[ids].tolist(), state.born[ids].tolist(), state.own[ids].tolist()
            opened = sorted(zip(*of, strict=True))
        past, runs = self.past[c].saved(self._gone_before(c, first))
        return ConstraintState(
            broken,
            None if bound == NOTHING else bound,
            tuple(opened),
            past=past,
            forgotten=self.past[c].forgotten,
            runs=runs,
        )

    def _gone_before(self, c: int, first: int) -> Int64Array:
        """The values of which no row is retained, as past ones are known; first: the number of the first row
        that is.
        """
        state, there = self._state, slice(0, len(self._ids))
        constraint, _ = self._ids.parts(np.arange(len(self._ids)))
        gone = (constraint == c) & (state.own[there] > 0) & (state.last[there] < first)
        found: Int64Array = self._hashes[there][gone]
        return found

    def restore_of(self, c: int, saved: ConstraintState) -> None:
        """As saved, but for what retained rows tell."""
        self.past[c].restore(saved.past, saved.runs)
        self.past[c].forgotten = saved.forgotten
        self._state.bound[c] = NOTHING if saved.bound is None else saved.bound

    def retained(self, batch: Batch, first: int) -> list[Int64Array]:
        """Rows that are retained, the first of them with this number, are known again. Returns their ids,
        int64[n] of each constraint.
        """
        values = self._values(batch)
        for c, ids in enumerate(values):
            if isinstance(self.checked[c][1], Ordered):
                self._fill_ring(c, first, ids)
            else:
                self._there(c, batch, ids, first)
        return list(values)

    def reopen(self, c: int, opened: Sequence[tuple[int, int, int]]) -> None:
        """Values of a clustered constraint are not over: (id, number of the first row, how many rows)."""
        ids = np.array([one for one, _, _ in opened], np.int64)
        self._state.born[ids] = [born for _, born, _ in opened]
        self._state.own[ids] = [own for _, _, own in opened]
        self._state.over[ids] = False
        self._wait(c, ids)

    def _fill_ring(self, c: int, first: int, values: Int64Array) -> None:
        k, place = int(self._rules.rows[c]), int(self._rules.first[c])
        if k:
            numbers = np.arange(first, first + len(values))[-k:]
            self._state.ring[place + numbers % k] = values[-k:]

    def _there(self, c: int, rows: Batch, ids: Int64Array, first: int) -> None:
        """Retained rows have these values, which are over as far as nothing else is known."""
        there, timestamp = np.flatnonzero(ids != NO_ID), rows.timestamp
        ids, state = ids[there], self._state
        self._hash(c, rows.take(there), ids)
        state.own[ids], state.over[ids] = 1, True
        state.last[ids], state.last_ms[ids] = first + there, timestamp[there]

    @property
    def nbytes(self) -> int:
        held = sum(one.nbytes for one in self._state) + self._ids.nbytes + self._hashes.nbytes
        held += sum(past.nbytes for past in self.past)
        return held + sum(codes.nbytes for codes in self._codes)

    def _check(self) -> None:
        state, count = self._state, len(self._ids)
        assert count <= len(state.own) == len(self._hashes)
        waiting: list[int] = []
        for place in state.due.tolist():
            while place != NO_ID:
                waiting.append(place)
                place = int(state.after[place])
        constraint, _ = self._ids.parts(np.arange(count))
        clustered = self._rules.kind[constraint] == kernels.CLUSTERED
        is_open = (state.own[:count] > 0) & ~state.over[:count] & clustered
        assert sorted(waiting) == np.flatnonzero(is_open).tolist()


def orderable(column: Column) -> Int64Array:
    """int64[n]: numbers that order as the values of a column of ORDERED do, -2^63 where NULL."""
    if column.type.kind is Kind.DOUBLE:
        keys = np.empty(len(column), np.int64)
        values = np.ascontiguousarray(column.values)
        intervals.keys_of_doubles(values, values.view(np.int64), keys)
    else:
        keys = column.values.astype(np.int64)
    if column.valid is not None:
        keys[~column.valid] = NOTHING
    return keys


def _past_of(kinds: Sequence[Kind], past_max: int) -> PastNumbers | PastValues:
    """What knows the past values of columns of these kinds."""
    return PastNumbers(past_max) if len(kinds) == 1 and kinds[0] in WHOLE else PastValues(past_max)


def _places(schema: Schema, columns: Sequence[str]) -> list[int]:
    found = [schema.index(column) for column in columns]
    return [place for place in found if place is not None]


def _rules(constraints: Sequence[RowConstraint], retain_ms: int) -> tuple[kernels.Promised, int, int]:
    """(rules, length of the rings, length of the calendars)."""
    kinds, rows, firsts = list[int](), list[int](), list[int]()
    rings = dues = 0
    for one in constraints:
        match one:
            case Ordered(within_rows=k):
                kinds.append(kernels.ORDERED)
                firsts.append(rings)
                rings += k
            case Clustered(within_rows=k):
                kinds.append(kernels.CLUSTERED)
                firsts.append(dues)
                dues += k + 2
            case Unique():
                k = 0
                kinds.append(kernels.UNIQUE)
                firsts.append(0)
        rows.append(k)
    rules = kernels.Promised(
        np.array(kinds, np.int8), np.array(rows, np.int64), np.array(firsts, np.int64), retain_ms
    )
    return rules, rings, dues


def _state(bound: Int64Array, ring: Int64Array, due: Int64Array, room: int) -> kernels.State:
    """With room for so many ids, of which nothing is known."""
    after, born, own, last, last_ms = (np.zeros(room, np.int64) for _ in range(5))
    return kernels.State(bound, ring, due, after, born, own, last, last_ms, np.zeros(room, np.bool_))
