"""How well a stream keeps constraints that would be of use: those over columns by which live queries join
and group, and those that it declares.

What is observed is the k that rows need (:mod:`engine.kernels.monitoring`): the largest so far, and the
*usual* one, which all but 1% of the last rows keep. Unless ``every`` is asked for, rows are looked at in
stretches, an eighth of all, each for itself: ORDERED of all its rows, CLUSTERED of one value in sixteen.
Waits for partners in other streams (:mod:`engine.sources.waits`) are observed all the time, of one key in
1,024. No answer depends on any of it.

Memory: some 2 MiB a candidate. Rows are looked at a thousand at a time or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from engine.kernels import intervals, monitoring
from engine.kernels.monitoring import NOTHING, Maxima, Spreads
from engine.model.attributes import Attribute
from engine.model.batch import Batch, Column, Int64Array
from engine.model.constraint import Clustered, Ordered, References, promise_of
from engine.model.source import Stream
from engine.model.types import Kind
from engine.model.usage import Usage
from engine.sources.needed import Needed
from engine.sources.waits import SAMPLED, Pair, Some, Waits, some_of

MODES = ("off", "sampled", "every")
SAMPLED_BITS = 15
"""One value in sixteen."""
CANDIDATES_MAX = 16
"""Lists of columns of one stream that are observed."""
ROWS_AT_ONCE = 1_024
MAXIMA = 1 << 16
KEYS = 1 << 14
STRETCH_ROWS = 1 << 16
CYCLE_ROWS = 8 * STRETCH_ROWS

_UNORDERED = (Kind.STRING, Kind.BOOLEAN)
_MIX = np.uint64(0x9E3779B97F4A7C15)

Columns = tuple[str, ...]


class Observed:
    """What rows showed of one list of columns: how well it is CLUSTERED, and of a single column that orders,
    how well it is ORDERED.
    """

    def __init__(self, stream: Stream, columns: Columns) -> None:
        places = [stream.schema.index(column) for column in columns]
        self._places = [place for place in places if place is not None]
        orders = len(columns) == 1 and stream.schema.fields[self._places[0]].type.kind not in _UNORDERED
        self.ordered = Needed() if orders else None
        self.clustered = Needed()
        room = MAXIMA if orders else 2
        self._maxima = Maxima(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(2, np.int64))
        self._spreads = Spreads(np.zeros((KEYS, 3), np.int64), np.zeros(1, np.int64))
        self._strings: list[object] = []

    def observe(self, rows: Batch, count: int, sampled: int) -> None:
        """The next rows, ``count`` before them. sampled: bits of hashes that are not looked at."""
        columns = [rows.columns[place] for place in self._places]
        strings: list[object] = [column.strings for column in columns]
        if any(one is not other for one, other in zip(strings, self._strings, strict=False)):
            self.forget()  # codes of strings mean others now
        self._strings = strings
        keys = _key(columns[0])
        if self.ordered is not None:
            histogram = self.ordered.histogram
            self.ordered.saw(monitoring.displacements(keys, count, self._maxima, histogram))
        for column in columns[1:]:
            keys = _both(keys, _key(column))
        histogram = self.clustered.histogram
        self.clustered.saw(monitoring.spreads(keys, count, sampled, self._spreads, histogram))

    def forget(self) -> None:
        """The next rows do not follow those that were looked at."""
        self._maxima.span[:] = 0
        self._spreads.slots[:, 2] = 0
        self._spreads.used[0] = 0

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in (*self._maxima, *self._spreads))


class Monitor:
    """Observes how well one stream keeps constraints: those that it declares, and those that :meth:`watch`
    names.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.mode = "sampled"
        self.usage = Usage()
        self.rows = 0
        """Rows that were looked at."""
        self._declared = {_columns(one) for one in stream.constraints if isinstance(one, Ordered | Clustered)}
        self._observed = {columns: Observed(stream, columns) for columns in self._declared}
        self._waiting: list[Batch] = []
        self._count = 0
        self._entered = 0
        self._waits: dict[Pair, Waits] = {}

    def set_mode(self, mode: str) -> None:
        """One of :data:`MODES`; what was observed is forgotten where it changes."""
        if mode != self.mode:
            self.mode = mode
            self._observed = {columns: Observed(self.stream, columns) for columns in self._observed}
            self._waiting, self._count, self._entered, self.rows = [], 0, 0, 0

    def watch(self, candidates: Iterable[Columns]) -> None:
        """Observe these lists of columns, which are of use now; others are forgotten."""
        wanted = list(dict.fromkeys([*self._declared, *candidates]))[:CANDIDATES_MAX]
        self._observed = {one: self._observed.get(one) or Observed(self.stream, one) for one in wanted}

    def watch_waits(self, waits: Mapping[Pair, Waits]) -> None:
        """Joins of this stream with others, on either side."""
        self._waits = dict(waits)

    @property
    def is_active(self) -> bool:
        """Whether rows are looked at."""
        return bool(self._observed or self._waits) and self.mode != "off"

    def enter(self, batches: Iterable[Batch]) -> None:
        """Rows entered, in this order."""
        for rows in batches:
            self._look_for_waits(rows)
            skips = self.mode == "sampled" and self._entered % CYCLE_ROWS >= STRETCH_ROWS
            self._entered += len(rows)
            if skips:
                if self._entered % CYCLE_ROWS < STRETCH_ROWS:
                    self._begin_stretch()
                continue
            self._waiting.append(rows)
            self._count += len(rows)
        if self._count >= ROWS_AT_ONCE:
            self.look()

    def _look_for_waits(self, rows: Batch) -> None:
        sampled, some = SAMPLED if self.mode == "sampled" else 0, dict[int, Some]()
        for (referring, _, target, _), waits in self._waits.items():
            for name, place, take in zip(
                (referring, target), waits.places, (waits.refer, waits.come), strict=True
            ):
                if name == self.stream.name:
                    if place not in some:
                        some[place] = some_of(rows.columns[place], sampled)
                    take(rows, some[place])

    def look(self) -> None:
        """At the rows that entered since the last time. O(rows * candidates)."""
        waiting, self._waiting, self._count = self._waiting, [], 0
        sampled = 0 if self.mode == "every" else SAMPLED_BITS
        for rows in waiting:
            for one in self._observed.values():
                one.observe(rows, self.rows, sampled)
            self.rows += len(rows)

    def _begin_stretch(self) -> None:
        self.look()
        for one in self._observed.values():
            one.forget()

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it, and set; rows that entered are looked at before."""
        self.look()
        about = "observes how well rows keep constraints: not, in stretches of rows, or of every row"
        return (
            Attribute("mode", self.mode, about, choices=MODES),
            Attribute("candidates", len(self._observed), "lists of columns that are observed"),
            Attribute("observed_rows", self.rows, "rows that were looked at"),
        )

    def entities(
        self, violations: Sequence[int], forgotten: Sequence[int], waited: Sequence[int | None]
    ) -> dict[str, tuple[Attribute, ...]]:
        """Attributes of each constraint that is declared or observed, by id. violations, forgotten: of
        those that are declared; waited: of these, of REFERENCES, the largest k, rows or ms.
        """
        found: dict[str, tuple[Attribute, ...]] = {}
        name = self.stream.name
        declarations = zip(self.stream.constraints, violations, forgotten, waited, strict=True)
        for one, broken, past, k in declarations:
            needed: Needed | None = None
            declared, unit = None, "rows"
            if isinstance(one, Ordered | Clustered):
                observed = self._observed[_columns(one)]
                needed = observed.ordered if isinstance(one, Ordered) else observed.clustered
                declared = one.within_rows
            elif isinstance(one, References):
                declared = one.within_ms if one.within_rows is None else one.within_rows
                unit = "rows" if one.within_rows is not None else "ms"
            found[f"constraint/{name}/{promise_of(one)}"] = (
                Attribute("k_declared", declared, "k that the stream promises", unit=unit, kind="integer"),
                *_of(needed, k, unit),
                Attribute("violations", broken, "rows that broke the promise"),
                Attribute(
                    "values_forgotten",
                    past,
                    "values that are not told if they come again; of REFERENCES, rows not checked",
                ),
            )
        for columns, candidate in self._observed.items():
            for kind, needed in (("ORDERED", candidate.ordered), ("CLUSTERED", candidate.clustered)):
                id_ = f"constraint/{name}/{kind} ({', '.join(columns)})"
                if needed is not None and id_ not in found:
                    found[id_] = _of(needed, None, "rows")
        for (referring, column, target, other), waits in self._waits.items():
            id_ = f"constraint/{name}/{promise_of(References((column,), target, (other,)))}"
            if referring == name and id_ not in found:
                longest = Attribute(
                    "wait_ms",
                    waits.longest_ms,
                    "how long a row waited for its partner at most",
                    kind="integer",
                )
                found[id_] = (*_of(waits.needed, None, "rows"), longest)
        return found

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self._observed.values())


def _of(needed: Needed | None, k: int | None, unit: str) -> tuple[Attribute, ...]:
    observed = k if needed is None else needed.largest
    about = "the smallest k, of those one below a power of two, that all but 1% of the last rows keep"
    return (
        Attribute("k_observed", observed, "the largest k that a row needed", unit=unit, kind="integer"),
        Attribute("k_usual", None if needed is None else needed.usual, about, unit=unit, kind="integer"),
    )


def _columns(constraint: Ordered | Clustered) -> Columns:
    return (constraint.column,) if isinstance(constraint, Ordered) else constraint.columns


def _key(column: Column) -> Int64Array:
    """int64[n]: equal for equal values, and of numbers, dates and instants in their order; NOTHING: NULL."""
    if column.type.kind is Kind.DOUBLE:
        keys = np.empty(len(column), np.int64)
        values = np.ascontiguousarray(column.values)
        intervals.keys_of_doubles(values, values.view(np.int64), keys)
    elif column.valid is None:
        return column.values.astype(np.int64, copy=False)
    else:
        keys = column.values.astype(np.int64)
    if column.valid is not None:
        keys[~column.valid] = NOTHING
    return keys


def _both(ones: Int64Array, others: Int64Array) -> Int64Array:
    """Keys of pairs, nearly always different for different ones."""
    mixed = (ones.view(np.uint64) * _MIX) ^ (others.view(np.uint64) + (ones.view(np.uint64) >> np.uint64(29)))
    return np.where((ones == NOTHING) | (others == NOTHING), NOTHING, mixed.view(np.int64))
