"""What the constraints of a stream ask of its rows.

Rows are checked in the order in which they enter (:mod:`engine.kernels.constraints`), so that batches do not
matter. Those that break a promise are withheld. What is kept is small: of ORDERED k values and a bound, of
CLUSTERED and UNIQUE the values that were there within RETAIN. After a restart all but bounds and open values
is worked out from the retained rows, of which the last k + 1 stay for that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.joins.key_codes import KeyCodes, NumberPairs, kind_of
from engine.kernels import constraints as kernels
from engine.kernels import intervals
from engine.kernels.constraints import NO_ID, NOTHING
from engine.model.approximation import Approximation
from engine.model.batch import Batch, Column, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.constraint import Clustered, Ordered, References, Unique, columns_of, text_of
from engine.model.persistence import ConstraintState, PromiseState
from engine.model.source import Schema, SourceName, Stream
from engine.model.step import Position, Violations
from engine.model.types import Kind
from engine.sources.past_values import VALUES_MAX, PastValues, hashes_of
from engine.windows.retention import Hold

IDS_MIN = 1_024

RowConstraint = Ordered | Clustered | Unique
"""What a row keeps or breaks as it enters."""


class Enforcement:
    """Checks the rows of one stream with constraints. One owner. past_max: so many values of a constraint are
    known beyond RETAIN.
    """

    def __init__(self, stream: Stream, past_max: int = VALUES_MAX, capacities: Capacities = USUAL) -> None:
        self._capacities = capacities
        self._ids_min = capacities.first(IDS_MIN)
        self.stream = stream
        self.broken = [0] * len(stream.constraints)
        """By constraint, rows that broke it."""
        self.since: Position | None = None
        """The position with which a constraint was first broken."""
        self.withheld_ms: int | None = None
        """The instant of the last row that did not enter."""
        self.touched: set[str] = set()
        """Queries that lack such a row, or may."""
        self.told = [0] * len(stream.constraints)
        """By constraint, how many of the rows that broke it tags tell: a new amount for each tenth more."""
        self.rows = 0
        """Rows that entered: each has a number, from 0."""
        self.waited: list[int | None] = [None] * len(stream.constraints)
        """By constraint, for REFERENCES, the most rows or ms that a row waited for its match since the start.
        """
        self.unchecked_from: dict[int, int] = {}
        """By constraint REFERENCES that is checked here: the number of the first row of which it is not known
        whether it keeps the constraint.
        """
        self.referrers: list[Callable[[], int | None]] = []
        """One function for each stream that refers to this one: the instant from which on its rows ask for
        matches.
        """
        self._checked: list[tuple[int, RowConstraint]] = [
            (number, one)
            for number, one in enumerate(stream.constraints)
            if isinstance(one, Ordered | Clustered | Unique)
        ]
        self._places = [_places(stream.schema, columns_of(one)) for _, one in self._checked]
        self._types = [[stream.schema.fields[place].type for place in places] for places in self._places]
        self._codes = [KeyCodes(kind_of(types), capacities) for types in self._types]
        self._rules, rings, dues = _rules([one for _, one in self._checked], stream.retain_ms)
        self._ids = NumberPairs(self._capacities)
        self._past = [PastValues(past_max) for _ in self._checked]
        self._hashes: Int64Array = np.zeros(self._ids_min, np.int64)
        """By id, of values that are there."""
        self._state = _state(
            np.full(len(self._checked), NOTHING), np.full(rings, NOTHING), np.full(dues, NO_ID), self._ids_min
        )
        self._compact_at = self._ids_min

    # --- rows -------------------------------------------------------------------------------------

    def admit(self, rows: Batch, position: Position) -> tuple[Batch, tuple[Violations, ...]]:
        """Rows that NOW has reached, in order: those that enter, and those that broke a promise: they do not,
        or do where a value came again after RETAIN. O(rows * constraints).
        """
        n = len(rows)
        if not n or not self._checked:
            self.rows += n
            return rows, ()
        values = self._values(rows)
        broken, came = np.empty(n, np.int8), np.empty(values.shape, np.int8)
        self.rows = kernels.enforce(values, rows.timestamp, self.rows, self._rules, self._state, broken, came)
        again = self._came_again(rows, values, came, position)
        last_ms = int(rows.timestamp[-1])
        if len(self._ids) > self._compact_at:
            self._compact(min([last_ms, *self._asked_ms()]))
        if (broken == kernels.KEPT).all():
            return rows, again
        wrong = np.flatnonzero(broken != kernels.KEPT)
        self.withheld_ms = int(rows.timestamp[wrong[-1]])
        numbers = [self._checked[one][0] for one in broken[wrong].tolist()]
        reasons = self.break_(numbers, position)
        kept = rows.take(np.flatnonzero(broken == kernels.KEPT))
        return kept, (Violations(self.stream.name, rows.take(wrong), reasons), *again)

    def _came_again(
        self, rows: Batch, values: Int64Array, came: NDArray[np.int8], position: Position
    ) -> tuple[Violations, ...]:
        """Rows that entered with a value that was there, and over, longer ago than RETAIN: whoever let go of
        something since it could not come again lacks them. They are in the stream.
        """
        for c in np.flatnonzero((came == kernels.FRESH).any(axis=1)).tolist():
            fresh = np.flatnonzero(came[c] == kernels.FRESH)
            hashes = self._hash(c, rows.take(fresh), values[c, fresh])
            came[c, fresh[self._past[c].has(hashes)]] = kernels.AGAIN
        which, broken = np.nonzero((came == kernels.AGAIN).T)
        if not len(which):
            return ()
        reasons = self.break_([self._checked[c][0] for c in broken.tolist()], position)
        told = tuple(f"{reason}, after RETAIN; it has entered" for reason in reasons)
        return (Violations(self.stream.name, rows.take(which), told, withheld=False, again=True),)

    def _hash(self, c: int, rows: Batch, ids: Int64Array) -> Int64Array:
        """Hashes of the values of rows, none of them NULL; they are kept by id."""
        hashes = hashes_of([rows.columns[place] for place in self._places[c]])
        self._hashes[ids] = hashes
        return hashes

    def break_(self, numbers: Sequence[int], position: Position) -> tuple[str, ...]:
        """Rows broke the constraints with these numbers; returns why, a text each."""
        for number in numbers:
            self.broken[number] += 1
        if self.since is None:
            self.since = position
        texts = [f"the row breaks {text_of(one)}" for one in self.stream.constraints]
        return tuple(texts[number] for number in numbers)

    @property
    def forgotten(self) -> tuple[int, ...]:
        """By constraint, how many values are not known any more: that one comes again is not told."""
        found = [0] * len(self.stream.constraints)
        for (number, _), past in zip(self._checked, self._past, strict=True):
            found[number] = past.forgotten
        return tuple(found)

    def is_to_tell(self) -> bool:
        """Whether tags are to have another amount, which they have from now on. It depends on how many rows
        broke a promise alone.
        """
        before = self.told.copy()
        for number, broken in enumerate(self.broken):
            while self.told[number] + max(1, self.told[number] // 10) <= broken:
                self.told[number] += max(1, self.told[number] // 10)
        return self.told != before

    def stands(self, query_id: str, retained_from_ms: int | None) -> None:
        """A query came. It may lack a row that was withheld, if those of its instant are retained."""
        if self.withheld_ms is not None and self.withheld_ms >= (retained_from_ms or self.withheld_ms):
            self.touched.add(query_id)

    def tags(self, query_id: str, sources: Collection[SourceName]) -> Iterator[Approximation]:
        """What the answer of a query over some sources lacks: rows of this one that were withheld, and pairs
        of rows of two of them.
        """
        withheld = sum(self.told[number] for number, _ in self._checked)
        if withheld and query_id in self.touched:
            yield Approximation("constraint", self.stream.name, "dynamic", withheld, "rows", since=self.since)
        for told, one in zip(self.told, self.stream.constraints, strict=True):
            if told and isinstance(one, References) and one.target in sources:
                where = f"{self.stream.name} REFERENCES {one.target}"
                yield Approximation("constraint", where, "dynamic", told, "rows", since=self.since)

    def learn(self, rows: Batch) -> None:
        """History came back: its values were there. It breaks nothing."""
        if not len(rows) or not self._checked:
            return
        values, state = self._values(rows), self._state
        for c, (_, one) in enumerate(self._checked):
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
        values = np.empty((len(self._checked), len(rows)), np.int64)
        for c, ((_, one), places) in enumerate(zip(self._checked, self._places, strict=True)):
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

    def _compact(self, now_ms: int) -> None:
        """Let go of values that were not there within RETAIN: their hashes stay. O(values)."""
        old, count = self._state, len(self._ids)
        recent = old.last_ms[:count] >= now_ms - self.stream.retain_ms
        is_open = np.zeros(count, np.bool_)
        constraint, keys = self._ids.parts(np.arange(count))
        clustered = self._rules.kind[constraint] == kernels.CLUSTERED
        is_open[clustered] = ~old.over[:count][clustered]
        was_there = old.own[:count] > 0
        live = np.flatnonzero(was_there & (recent | is_open))
        gone = np.flatnonzero(was_there & ~(recent | is_open))
        for c, past in enumerate(self._past):
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

    # --- readers of others ------------------------------------------------------------------------

    def found(self, unique: Unique, values: Sequence[Column]) -> tuple[Int64Array, Int64Array]:
        """The number and the instant of the last row that has these values of unique columns, int64[n] each;
        number -1 where none had them within RETAIN. values: one column for each of the constraint's, without
        NULL where it counts.
        """
        c = next(c for c, (_, one) in enumerate(self._checked) if one == unique)
        ids = self._numbered(c, values)
        numbers = np.where(self._state.own[ids] > 0, self._state.last[ids], -1)
        return numbers, self._state.last_ms[ids]

    def _numbered(self, c: int, values: Sequence[Column]) -> Int64Array:
        """The ids of values."""
        keys = self._codes[c].number(values).keys
        ids = self._ids.number(np.full(len(keys), c, np.int64), keys)
        if len(self._ids) > len(self._state.own):
            self._grow(2 * len(self._ids))
        return ids

    # --- the store's side -------------------------------------------------------------------------

    def holds(self, now_ms: int) -> list[Hold]:
        """The rows that a restart needs: those whose values decide whether the next ones break a promise, and
        what those that are not checked may find.
        """
        rows = int(self._rules.rows.max(initial=-1)) + 1
        unchecked = self.rows - min(self.unchecked_from.values(), default=self.rows)
        return [Hold(now_ms, 0, max(rows, unchecked)), *(Hold(one, 0, 0) for one in self._asked_ms())]

    def _asked_ms(self) -> list[int]:
        """The instants from which on streams that refer to this one ask for matches."""
        return [found for one in self.referrers if (found := one()) is not None]

    def state(self, held: int) -> PromiseState:
        """The state to be saved. held: how many rows are retained, from which the rest is known."""
        first = self.rows - held
        found = [ConstraintState(broken) for broken in self.broken]
        for c, (number, one) in enumerate(self._checked):
            bound = int(self._state.bound[c])
            opened: list[tuple[int, int, int]] = []
            if isinstance(one, Clustered):
                constraint, _ = self._ids.parts(np.arange(len(self._ids)))
                state, there = self._state, slice(0, len(self._ids))
                ids = np.flatnonzero((constraint == c) & (state.own[there] > 0) & ~state.over[there])
                of = state.last[ids].tolist(), state.born[ids].tolist(), state.own[ids].tolist()
                opened = sorted(zip(*of, strict=True))
            found[number] = ConstraintState(
                self.broken[number],
                None if bound == NOTHING else bound,
                tuple(opened),
                past=self._past_before(c, first).tobytes(),
                forgotten=self._past[c].forgotten,
            )
        for number, row in self.unchecked_from.items():
            found[number] = ConstraintState(self.broken[number], unchecked_from=row)
        touched = tuple(sorted(self.touched))
        return PromiseState(self.rows, tuple(found), self.since, self.withheld_ms, touched)

    def _past_before(self, c: int, first: int) -> Int64Array:
        """Hashes of the values of which no row is retained; first: the number of the first that is."""
        state, there = self._state, slice(0, len(self._ids))
        constraint, _ = self._ids.parts(np.arange(len(self._ids)))
        gone = (constraint == c) & (state.own[there] > 0) & (state.last[there] < first)
        return np.union1d(self._past[c].all(), self._hashes[there][gone])

    def restore(self, saved: PromiseState, rows: Iterable[tuple[int, Batch]], end: int) -> None:
        """As saved. rows: the retained rows with the ordinal of the first of each batch; end: the ordinal
        behind the last. O(retained rows * constraints).
        """
        self.rows, self.since, self.withheld_ms = saved.rows, saved.since, saved.withheld_ms
        self.touched = set(saved.touched)
        self.broken = [one.broken for one in saved.constraints]
        self.is_to_tell()
        self.unchecked_from = {
            number: one.unchecked_from
            for number, one in enumerate(saved.constraints)
            if isinstance(self.stream.constraints[number], References) and one.unchecked_from is not None
        }
        opened = [
            {last: (born, own) for last, born, own in saved.constraints[number].open}
            for number, _ in self._checked
        ]
        for c, (number, _) in enumerate(self._checked):
            self._past[c].add(np.frombuffer(saved.constraints[number].past, np.int64))
            self._past[c].forgotten = saved.constraints[number].forgotten
            bound = saved.constraints[number].bound
            self._state.bound[c] = NOTHING if bound is None else bound
        found: list[list[tuple[int, int, int]]] = [[] for _ in self._checked]
        for ordinal, batch in rows:
            first = ordinal + self.rows - end
            for c, ids in enumerate(self._values(batch)):
                if isinstance(self._checked[c][1], Ordered):
                    self._fill_ring(c, first, ids)
                else:
                    self._there(c, batch, ids, first)
                    for last in opened[c].keys() & range(first, first + len(ids)):
                        found[c].append((int(ids[last - first]), *opened[c][last]))
        for c, values in enumerate(found):
            ids = np.array([one for one, _, _ in values], np.int64)
            self._state.born[ids] = [born for _, born, _ in values]
            self._state.own[ids] = [own for _, _, own in values]
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
        held += sum(past.nbytes for past in self._past)
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
