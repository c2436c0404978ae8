"""``GET /queries`` searched, filtered and sorted, and ``GET /shapes``."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from broker.http.described import listed
from broker.http.errors import BadRequest
from broker.node.node import Node
from broker.observe.query_list.listing import Page, QueryList, Row, shape_id_of
from broker.observe.query_list.orders import Direction, Sort, Wanted
from broker.observe.query_list.shapes import ShapeSort

PAGE_MAX = 1_000
SEARCH_MAX = 1_000
WORDS_MAX = 16
MADE_MAX, MADE_BYTES_MAX = 32, 1 << 18
"""Most answers that are kept for those who ask for the same, and most bytes of each."""
TOGETHER = 50
"""Queries that are looked up before the event loop does something else."""


class QueryLists:
    """Answers the requests."""

    def __init__(self, node: Node, queries: QueryList) -> None:
        self._node = node
        self._queries = queries
        self._made: dict[tuple[Wanted, Sort, Direction, int, int], tuple[int | None, bytes]] = {}

    async def page(
        self, wanted: Wanted, sort: Sort, order: Direction, offset: int, limit: int, paging: str | None
    ) -> bytes:
        """A page of the queries that are wanted, as JSON: for all who ask for the same one, until figures are
        taken again or a query comes, goes or changes. Raises BadRequest.
        """
        if limit > PAGE_MAX:
            raise BadRequest(
                f"a page that is searched or sorted has at most {PAGE_MAX:,} queries, not {limit:,}",
                hint="read the next page with offset and paging",
            )
        same = wanted, sort, order, offset, limit
        if paging is None:
            made = self._made.get(same)
            if made is not None and self._queries.is_as_of(made[0]):
                return made[1]
        found = await self._queries.page(wanted, sort, order, offset, limit, paging)
        body = await self._body(found, offset)
        if paging is None and len(body) <= MADE_BYTES_MAX:
            self._made = {key: each for key, each in self._made.items() if each[0] == found.as_of_ms}
            if len(self._made) < MADE_MAX:
                self._made[same] = found.as_of_ms, body
        return body

    async def _body(self, found: Page, offset: int) -> bytes:
        rows: list[dict[str, Any]] = []
        for first in range(0, len(found.rows), TOGETHER):
            rows += [self._row(row) for row in found.rows[first : first + TOGETHER]]
            await asyncio.sleep(0)
        return orjson.dumps(
            {
                "queries": rows,
                "total": found.total,
                "offset": offset,
                "paging": found.paging,
                "as_of_ms": found.as_of_ms,
            },
            option=orjson.OPT_NON_STR_KEYS,
        )

    def _row(self, row: Row) -> dict[str, Any]:
        entry = None if row.query_id is None else self._node.directory.queries.get(row.query_id)
        if row.query_id is None or entry is None:
            return {"query_id": row.query_id, "state": "ENDED"}
        found = listed(self._node, row.query_id, entry)
        return found | {"shape": shape_id_of(entry.sql), "statistics": dict(row.figures)}

    async def shapes(
        self, wanted: Wanted, sort: ShapeSort, order: Direction, offset: int, limit: int
    ) -> dict[str, Any]:
        """Queries by their texts without constants."""
        return await self._queries.shapes(wanted, sort, order == "desc", offset, limit)


def words_of(search: str) -> tuple[str, ...]:
    """The words that are searched for. Raises BadRequest.

    >>> words_of("  price   ACME ")
    ('price', 'ACME')
    """
    words = tuple(search.split())
    if len(words) > WORDS_MAX:
        raise BadRequest(
            f"a search has at most {WORDS_MAX} words, not {len(words)}", hint="search for fewer words"
        )
    return words
