"""Routes of entities: what the engines are made of, what it uses, what of it can be set."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.http.entities import EVERY_MS, EVERY_MS_MAX, EVERY_MS_MIN, EntityRequests
from broker.http.errors import json
from broker.http.event_hub import wants_sse
from broker.http.routing import LIST_MAX, DryRun, Operates, told
from broker.http.row_samples import ROWS_MAX

READERS_MAX = 1_000


def add_entity_routes(app: FastAPI, operates: Operates, entities: EntityRequests) -> None:
    """Add them to the application."""

    @app.get("/entities", tags=["entities"])
    async def get_entities(
        kind: Annotated[
            str | None, Query(description="query, source, synopsis, operator, queue, sink, ...")
        ] = None,
        query: Annotated[
            str | None, Query(description="Only what this query shares; its handle or id.")
        ] = None,
        after: Annotated[str, Query(description="The last id of the previous page.")] = "",
        limit: Annotated[int, Query(ge=1, le=LIST_MAX)] = 1_000,
        queries: Annotated[bool, Query(description="With the queries themselves.")] = True,
    ) -> Response:
        """What the engines are made of, with what it uses: time, rows, memory; queries with their shares."""
        return json(await entities.listed(kind, query, after, limit, queries=queries))

    @app.get("/entities/events", tags=["entities"])
    async def get_entity_events(
        request: Request,
        kind: Annotated[str | None, Query(description="As of the list.")] = None,
        query: Annotated[str | None, Query(description="As of the list.")] = None,
        every_ms: Annotated[int, Query(ge=EVERY_MS_MIN, le=EVERY_MS_MAX)] = EVERY_MS,
        rows: Annotated[
            int, Query(ge=0, le=ROWS_MAX, description="Of the answer of the query; takes its handle.")
        ] = 0,
        queries: Annotated[bool, Query(description="With the queries themselves.")] = True,
    ) -> Response:
        """What moved in each interval: NDJSON, or SSE where the Accept header asks for it."""
        as_sse = wants_sse(request.scope)
        return await entities.events(kind, query, every_ms, as_sse, rows, queries=queries)

    @app.get("/entities/queries", tags=["entities"])
    async def get_entity_queries(
        entity: Annotated[str, Query(description="Its id.")],
        after: Annotated[str, Query(description="The last query id of the previous page.")] = "",
        limit: Annotated[int, Query(ge=1, le=READERS_MAX)] = 100,
    ) -> Response:
        """The queries that share an entity."""
        return json(await entities.readers(entity, after, limit))

    @app.get("/entities/{entity:path}", tags=["entities"])
    async def get_entity(entity: str) -> Response:
        """One entity with its attributes: value, type, unit, range, whether it can be set."""
        return json(await entities.one(entity))

    @app.patch("/entities/{entity:path}", tags=["entities"])
    async def patch_entity(entity: str, request: Request, dry_run: DryRun = False) -> Response:
        """Set attributes: `{"name": value, ..., "if_version"?: version}`; a query's by its handle."""
        if dry_run:
            return json(await entities.dry_run(entity, await request.body(), operates(request)))
        return await told(entities.edit(entity, await request.body(), operates(request)))
