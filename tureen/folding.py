"""Changes folded into the answer they are changes of: a bag of rows, found by a key where one is named.

    >>> from tureen.changes import Change, ChangesEvent, SnapshotEvent
    >>> from tureen.columns import Column
    >>> columns = (Column("city", "STRING"), Column("n", "BIGINT"))
    >>> fold = Fold(key=["city"])
    >>> fold.apply(SnapshotEvent("1", 0, columns, (("Bern", 1), ("Zug", 1))))
    >>> fold.apply(ChangesEvent("2", 5, columns, (Change(-1, 5, ("Bern", 1)), Change(1, 5, ("Bern", 2)))))
    >>> fold.dicts(), fold.position
    ([{'city': 'Zug', 'n': 1}, {'city': 'Bern', 'n': 2}], '2')
    >>> fold.get("Bern")
    {'city': 'Bern', 'n': 2}

After every event it is the answer at that event's position. A bag has no order: rows stand as they came, so
what an ORDER BY says is for the reader to do again. An event is applied as a whole or not at all. Cost:
O(changes) an event, O(rows) for whatever reads all of them, O(1) by key.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tureen.changes import ChangesEvent, Event, SnapshotEvent
from tureen.columns import Column, Row, arrow_table
from tureen.errors import LimitExceeded, NotSupported, TureenError, UnknownColumn
from tureen.snapshot import frame_of, polars_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

ROWS_MAX = 1_000_000

_WHAT_CAME = {"changes", "istream"}
"""The operators that can be folded. Of rows that came alone everything stays that ever came."""


@dataclass(frozen=True, slots=True)
class _Signed:
    """A row with zeros below zero, at these places: to the eye and to Python it equals the one without."""

    row: Row
    places: tuple[int, ...]


def _row(same: Hashable) -> Row:
    return same.row if isinstance(same, _Signed) else cast("Row", same)


class Fold:
    """The answer, as far as events were applied.

    key: columns by which rows are to be found, or the name of one. rows_max: rows it may hold.
    """

    def __init__(self, *, key: Sequence[str] = (), rows_max: int = ROWS_MAX) -> None:
        self.columns: tuple[Column, ...] = ()
        self.position: str | None = None
        self.now_ms: int | None = None
        self._key = (key,) if isinstance(key, str) else tuple(key)
        self._rows_max = rows_max
        self._counts: dict[Hashable, int] = {}
        self._doubles: tuple[int, ...] = ()
        self._total = 0
        self._places: tuple[int, ...] = ()
        self._by_key: dict[Row, list[Hashable]] = {}
        self._table: pa.Table | None = None

    def apply(self, event: Event) -> None:
        """Take in the next event. O(its rows).

        Raises NotSupported for a query whose changes are not those of an answer (DSTREAM, RSTREAM),
        UnknownColumn for a key that the answer does not have, LimitExceeded (``rows_max``), TureenError where
        a row goes that is not there.
        """
        if isinstance(event, SnapshotEvent):
            self._begin(event)
        elif isinstance(event, ChangesEvent):
            self._change(event)
        if event.position is not None:
            self.position = event.position
        now_ms = getattr(event, "now_ms", None)
        if now_ms is not None:
            self.now_ms = now_ms

    def _begin(self, event: SnapshotEvent) -> None:
        if event.operator not in _WHAT_CAME:
            raise NotSupported(
                f"the changes of {event.operator.upper()} cannot be folded into an answer",
                hint="follow the query without it, or read its changes one by one: query.changes()",
            )
        names = [column.name for column in event.columns]
        for name in self._key:
            if name not in names:
                raise UnknownColumn(name, hint=f"its columns are {', '.join(names)}")
        self._check_room(len(event.rows))
        self.columns = event.columns
        self._places = tuple(names.index(name) for name in self._key)
        self._doubles = tuple(i for i, column in enumerate(event.columns) if column.type == "DOUBLE")
        self._counts, self._by_key, self._total, self._table = {}, {}, 0, None
        for row in event.rows:
            self._come(row)

    def _change(self, event: ChangesEvent) -> None:
        gone: dict[Hashable, int] = {}
        total = self._total
        for weight, _, row in event.changes:
            total += weight
            same = self._same(row)
            gone[same] = gone.get(same, 0) - weight
            if gone[same] > self._counts.get(same, 0):
                raise TureenError(
                    "a row was removed that was not there", hint="follow the query again from the start"
                )
        self._check_room(total)
        self._table = None
        for weight, _, row in event.changes:
            if weight > 0:
                self._come(row)
            else:
                self._go(row)

    def _check_room(self, rows: int) -> None:
        if rows > self._rows_max:
            raise LimitExceeded("rows_max", self._rows_max, rows, hint="narrow the query")

    def _come(self, row: Row) -> None:
        same = self._same(row)
        self._counts[same] = self._counts.get(same, 0) + 1
        self._total += 1
        if self._places:
            self._by_key.setdefault(self._key_of(row), []).append(same)

    def _go(self, row: Row) -> None:
        same = self._same(row)
        left = self._counts[same] - 1
        self._total -= 1
        if left:
            self._counts[same] = left
        else:
            del self._counts[same]
        if self._places:
            key = self._key_of(row)
            self._by_key[key].remove(same)
            if not self._by_key[key]:
                del self._by_key[key]

    def _same(self, row: Row) -> Hashable:
        """What equal rows share: they are equal to the bit."""
        below = tuple(
            place
            for place in self._doubles
            if (value := row[place]) == 0.0 and value is not None and math.copysign(1.0, value) < 0
        )
        return _Signed(row, below) if below else row

    def _key_of(self, row: Row) -> Row:
        return tuple(row[place] for place in self._places)

    # --- reading ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._total

    def rows(self) -> list[Row]:
        """All rows, equal ones as often as they are there."""
        return [_row(same) for same, count in self._counts.items() for _ in range(count)]

    def dicts(self) -> list[dict[str, Any]]:
        """One dict a row."""
        return [self._dict(row) for row in self.rows()]

    def get(self, *key: Any) -> dict[str, Any] | None:
        """The row of this key, None where there is none. Raises ValueError where there are several."""
        found = self.of(*key)
        if len(found) > 1:
            raise ValueError(f"{len(found)} rows have this key; of() gives all of them")
        return found[0] if found else None

    def of(self, *key: Any) -> list[dict[str, Any]]:
        """All rows of this key. Raises ValueError where it is none of the key's length."""
        if not self._key or len(key) != len(self._key):
            raise ValueError(f"the key is ({', '.join(self._key)})" if self._key else "no key was named")
        return [self._dict(_row(same)) for same in self._by_key.get(key, ())]

    def _dict(self, row: Row) -> dict[str, Any]:
        return {column.name: value for column, value in zip(self.columns, row, strict=True)}

    def to_arrow(self) -> pa.Table:
        """All rows as Arrow. O(rows) the first time after a change."""
        if self._table is None:
            self._table = arrow_table(self.columns, self.rows())
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame. Raises PackageMissing where pandas is not installed."""
        return frame_of(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """A polars DataFrame. Raises PackageMissing without polars."""
        return polars_of(self.to_arrow())
