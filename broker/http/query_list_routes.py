"""Routes of lists of queries: page by page, and grouped by shape."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, FastAPI, Query, Request
from fastapi.responses import Response

from broker.http.described import listed
from broker.http.errors import BadRequest, json
from broker.http.query_list import PAGE_MAX, SEARCH_MAX, QueryLists, words_of
from broker.http.routing import LIST_MAX
from broker.node.node import Node
from broker.observe.query_list.orders import Direction, Sort, Wanted
from broker.observe.query_list.shapes import ShapeSort

OFFSET_MAX = 2**31 - 1


async def _wanted(
    search: Annotated[
        str,
        Query(
            max_length=SEARCH_MAX,
            description="Words that are in the text, its parameters, the id, or the names that it reads.",
        ),
    ] = "",
    state: Annotated[Literal["RUNNING", "PAUSED", "PENDING", "ERROR"] | None, Query()] = None,
    source: Annotated[str | None, Query(description="A stream, a table or a view that they read.")] = None,
    shape: Annotated[str | None, Query(description="The id of a shape, of `GET /shapes`.")] = None,
    maintenance: Annotated[
        Literal["auto", "none", "lazy", "eager"] | None,
        Query(description="The mode of now; of what does not stand, what it asks for."),
    ] = None,
) -> Wanted:
    return Wanted(words_of(search), state, source, shape, maintenance)


WantedQueries = Annotated[Wanted, Depends(_wanted)]


def add_query_list_routes(app: FastAPI, node: Node, query_lists: QueryLists) -> None:
    """Add them to the application."""

    @app.get("/queries", tags=["queries"])
    async def get_queries(
        request: Request,
        wanted: WantedQueries,
        after: Annotated[str, Query(description="The last query id of the previous page.")] = "",
        limit: Annotated[int, Query(ge=1, le=LIST_MAX)] = 1_000,
        sort: Annotated[Sort, Query(description="What is not known comes last.")] = "id",
        order: Direction = "asc",
        offset: Annotated[int, Query(ge=0, le=OFFSET_MAX)] = 0,
        paging: Annotated[str | None, Query(description="Of an earlier page of the same list.")] = None,
    ) -> Response:
        """Standing queries by their public ids; handles are never listed. With any of search, state, source,
        shape, maintenance, sort, order, offset and paging: with figures, and how many there are.
        """
        if request.query_params.keys() - {"after", "limit"}:
            if after:
                raise BadRequest("after pages the plain list alone", hint="use offset and paging")
            found = await query_lists.page(wanted, sort, order, offset, limit, paging)
            return Response(found, media_type="application/json")
        names = sorted(name for name in node.directory.queries if name > after)
        page = [
            listed(node, name, entry)
            for name in names[:limit]
            if (entry := node.directory.queries.get(name)) is not None
        ]
        return json({"queries": page, "next": names[limit - 1] if len(names) > limit else None})

    @app.get("/shapes", tags=["queries"])
    async def get_shapes(
        wanted: WantedQueries,
        sort: ShapeSort = "queries",
        order: Direction = "desc",
        offset: Annotated[int, Query(ge=0, le=OFFSET_MAX)] = 0,
        limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = 100,
    ) -> Response:
        """Queries grouped by their text with the constants taken out, with counts and sums."""
        return json(await query_lists.shapes(wanted, sort, order, offset, limit))
