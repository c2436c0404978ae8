"""The list of all queries, for whoever reads it: taken while it is asked for, in a thread.

Columns and figures are taken again at most once a second for all who ask, and, but for the first time, so
seldom that it takes at most a twentieth of a core; :attr:`Page.as_of_ms` tells when. Figures that shards do
not give in time stay as they were. They are let go a minute after the last request. The event loop copies the
names of what changed, at first of all; nothing else is O(queries) there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from broker.base.counts import QUERY_LIST_BYTES
from broker.node.node import Node
from broker.observe.entity_reading import EntityReading
from broker.observe.query_list.columns import Columns, shape_id
from broker.observe.query_list.figures import figures, nothing
from broker.observe.query_list.orders import Direction, Order, Orders, Sort, Wanted
from broker.observe.query_list.shapes import ShapeSort, grouped
from engine.language.cutting import without_constants
from engine.standing.queries import ShownQueries
from engine.views.view import View

EVERY_S = 1.0
SHARE_MAX = 0.05
"""Share of a core that taking columns and figures may need."""
READ_S = 0.3
"""How long a request waits for the shards' figures; then it has the ones before."""
IDLE_S = 60.0


@dataclass(frozen=True, slots=True)
class Row:
    """query_id: None where the query has ended since the order was taken."""

    query_id: str | None
    figures: Mapping[str, float | int | None]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of an order. paging: the order's token. as_of_ms: when the figures were read, ms since 1970;
    None: there are none yet.
    """

    rows: list[Row]
    total: int
    paging: str
    as_of_ms: int | None


class QueryList:
    """Used on the event loop."""

    def __init__(self, node: Node, read: Callable[[float], Awaitable[EntityReading]]) -> None:
        """read: a report of all shards that is at most so many seconds old."""
        self._node = node
        self._read = read
        self._lock = asyncio.Lock()
        """One request after another: columns are changed in place."""
        self._columns = Columns()
        self._orders = Orders()
        self._figures = nothing(0)
        self._as_of_ms: int | None = None
        self._shown: dict[int, ShownQueries] = {}
        self._reading: asyncio.Task[EntityReading] | None = None
        self._next_s = 0.0
        self._idle: asyncio.TimerHandle | None = None

    @property
    def nbytes(self) -> int:
        """What is held; 0 while nobody asks."""
        return self._columns.nbytes + self._figures.nbytes + self._orders.nbytes

    def is_as_of(self, as_of_ms: int | None) -> bool:
        """Whether an answer with the figures of this instant is still what would be answered now."""
        fresh = time.monotonic() < self._next_s and as_of_ms == self._as_of_ms
        return fresh and not self._node.directory.queries.has_changes

    async def page(
        self, wanted: Wanted, sort: Sort, direction: Direction, offset: int, limit: int, paging: str | None
    ) -> Page:
        """paging: the token of an order; of one that is not kept any more, and of None, another is taken."""
        async with self._lock:
            self._stay()
            order = None if paging is None else self._orders.kept(paging)
            if order is None:
                await self._refresh()
            return await asyncio.to_thread(self._page, order, wanted, sort, direction, offset, limit)

    def _page(
        self, order: Order | None, wanted: Wanted, sort: Sort, direction: Direction, offset: int, limit: int
    ) -> Page:
        """order: None for one as of now."""
        columns = self._columns
        if order is None:
            entries = self._node.directory.queries
            order = self._orders.take(columns, self._figures, entries, wanted, sort, direction)
        rows = []
        for row in order.rows[offset : offset + limit].tolist():
            there = bool(columns.alive[row]) and columns.born[row] <= order.births
            rows.append(Row(columns.ids[row] if there else None, self._figures.of(row) if there else {}))
        return Page(rows, len(order.rows), order.token, self._as_of_ms)

    async def shapes(
        self, wanted: Wanted, sort: ShapeSort, descending: bool, offset: int, limit: int
    ) -> dict[str, Any]:
        """The wanted queries grouped by their text without constants."""
        async with self._lock:
            self._stay()
            await self._refresh()
            return await asyncio.to_thread(self._grouped, wanted, sort, descending, offset, limit)

    def _grouped(
        self, wanted: Wanted, sort: ShapeSort, descending: bool, offset: int, limit: int
    ) -> dict[str, Any]:
        entries = self._node.directory.queries
        selected = self._orders.selected(self._columns, entries, wanted)
        found = grouped(self._columns, self._figures, entries, selected)
        return {
            "shapes": found.page(self._columns, sort, descending, offset, limit),
            "total": len(found.codes),
            "queries_total": int(found.queries.sum()),
            "offset": offset,
            "as_of_ms": self._as_of_ms,
        }

    # --- taking -----------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        if time.monotonic() < self._next_s:
            return
        if self._columns.is_wasteful:
            self._forget()
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._take())
        await asyncio.wait([self._reading], timeout=READ_S)
        reading = None
        if self._reading.done():
            reading, self._reading = self._reading.result(), None
        queries = self._node.directory.queries
        changed = queries.changes()
        names = list(queries) if changed is None else changed
        views = {shard.number: shard.view() for shard in self._node.shards if shard.state == "live"}
        spent_s = await asyncio.to_thread(self._update, names, views, reading)
        rest_s = EVERY_S if changed is None else max(EVERY_S, spent_s / SHARE_MAX)
        self._next_s = time.monotonic() + rest_s
        QUERY_LIST_BYTES.set(self.nbytes)

    async def _take(self) -> EntityReading:
        return await self._read(EVERY_S)

    def _update(
        self, names: Collection[str], views: Mapping[int, View], reading: EntityReading | None
    ) -> float:
        """The computing time that it took, in seconds."""
        began_s = time.thread_time()
        shown = {number: view.standing for number, view in views.items()}
        self._columns.update(names, self._node.directory.queries, shown)
        for number, queries in shown.items():
            self._columns.update_standing(queries.changed_since(self._shown.get(number)))
        self._shown = shown
        if reading is not None:
            clock_ms = time.time_ns() // 1_000_000
            self._figures = figures(self._columns, reading, views, clock_ms, self._figures)
            self._as_of_ms = clock_ms
        return time.thread_time() - began_s

    # --- letting go -------------------------------------------------------------------------------

    def _stay(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._let_go)

    def _let_go(self) -> None:
        if self._lock.locked():
            self._stay()
            return
        self._forget()

    def _forget(self) -> None:
        self._node.directory.queries.unwatch()
        self._columns, self._orders, self._figures = Columns(), Orders(), nothing(0)
        self._shown, self._as_of_ms, self._next_s = {}, None, 0.0
        QUERY_LIST_BYTES.set(0)


def shape_id_of(sql: str | None) -> str | None:
    """The id of a text's shape; None of a query without a text."""
    return None if sql is None else shape_id(without_constants(sql))
