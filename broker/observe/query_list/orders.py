"""Which queries a reader wants, and in which order.

An order is kept for a while under a token, so that pages which are read one after another are pages of one
list although queries come and go in between: one that went keeps its place, as ended, and one that came is in
the next list. The least recently used orders go, so that all of them together have at most
:data:`ORDERED_MAX` places.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from broker.base.entries import QueryEntry
from broker.observe.query_list.columns import MODES, STATES, Columns
from broker.observe.query_list.figures import FIGURES, Figures
from engine.model.batch import BoolArray, Int32Array

Sort = Literal[
    "id", "text", "state", "rows_per_s", "matches", "memory_bytes", "cpu_share", "age_ms", "behind_ms"
]
Direction = Literal["asc", "desc"]
ORDERED_MAX = 8_000_000
"""Most places of all orders together, of 4 bytes each."""
FOUND_MAX = 16
"""Most searches that are remembered until a query comes, goes or changes."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """words: all of which the text, its parameters, the id or the names contain. source: read directly or
    through a view. shape: the id of one. mode: of maintenance. None: whatever it is.
    """

    words: tuple[str, ...] = ()
    state: str | None = None
    source: str | None = None
    shape: str | None = None
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """rows: int32[n], in order. births: rows of queries that came later are no longer those of then."""

    token: str
    rows: Int32Array
    births: int


class Orders:
    """Finds and keeps them. One thread at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Order] = OrderedDict()
        self._same: dict[tuple[Wanted, Sort, Direction], tuple[tuple[int, float], str]] = {}
        self._found: OrderedDict[Wanted, tuple[int, BoolArray]] = OrderedDict()

    @property
    def nbytes(self) -> int:
        found = sum(mask.nbytes for _, mask in self._found.values())
        return found + sum(order.rows.nbytes for order in self._kept.values())

    def kept(self, token: str) -> Order | None:
        """The order that has a token, if it is still there."""
        order = self._kept.get(token)
        if order is not None:
            self._kept.move_to_end(token)
        return order

    def take(
        self,
        columns: Columns,
        figures: Figures,
        entries: Mapping[str, QueryEntry],
        wanted: Wanted,
        sort: Sort,
        direction: Direction,
    ) -> Order:
        """An order as of now; the same for all who want the same of the same figures. O(n log n)."""
        of = (columns.version, figures.at_s)
        known = self._same.get((wanted, sort, direction))
        if known is not None and known[0] == of:
            order = self.kept(known[1])
            if order is not None:
                return order
        rows = sorted_rows(columns, figures, self.selected(columns, entries, wanted), sort, direction)
        order = Order(secrets.token_urlsafe(9), rows, columns.births)
        self._kept[order.token] = order
        self._same[wanted, sort, direction] = of, order.token
        places = sum(len(each.rows) for each in self._kept.values())
        while len(self._kept) > 1 and (places > ORDERED_MAX or len(self._kept) > 1_000):
            _, gone = self._kept.popitem(last=False)
            places -= len(gone.rows)
        self._same = {key: each for key, each in self._same.items() if each[1] in self._kept}
        return order

    def selected(self, columns: Columns, entries: Mapping[str, QueryEntry], wanted: Wanted) -> BoolArray:
        """bool[size]: the rows that are wanted. O(bytes that are searched) a word."""
        known = self._found.get(wanted)
        if known is not None and known[0] == columns.version:
            self._found.move_to_end(wanted)
            return known[1]
        found = columns.containing(wanted.words)
        if wanted.state is not None:
            found &= columns.state[: columns.size] == STATES.index(wanted.state)
        if wanted.mode is not None:
            found &= columns.mode[: columns.size] == MODES.index(wanted.mode)
        if wanted.source is not None:
            found &= columns.reading(wanted.source)
        if wanted.shape is not None:
            codes = columns.shape_codes(entries)
            shapes = [code for code, id_ in enumerate(columns.shape_ids()) if id_ == wanted.shape]
            found &= np.isin(codes, shapes)
        self._found[wanted] = columns.version, found
        if len(self._found) > FOUND_MAX:
            self._found.popitem(last=False)
        return found


def sorted_rows(
    columns: Columns, figures: Figures, selected: BoolArray, sort: Sort, direction: Direction
) -> Int32Array:
    """int32[n]: the selected rows. What is not known comes last in both directions, equals by their ids."""
    rows = np.flatnonzero(selected)
    rows = rows[np.argsort(columns.rank("id")[rows])]
    if sort == "id":
        ordered = rows if direction == "asc" else rows[::-1]
        return ordered.astype(np.int32)
    if sort in FIGURES:
        values = figures.values[sort]
        keys = np.full(len(rows), np.nan)
        there = rows < len(values)
        keys[there] = values[rows[there]]
    elif sort == "state":
        keys = columns.state[rows].astype(np.float64)
    else:
        keys = columns.rank("text")[rows].astype(np.float64)
    if direction == "desc":
        keys = -keys
    return rows[np.argsort(keys, kind="stable")].astype(np.int32)
