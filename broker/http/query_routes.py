"""Routes of queries: registered, listed, changed, answered, explained; and of plans."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.base.settings import Settings
from broker.http.answers import Snapshots
from broker.http.bodies import LineAnswers, parts
from broker.http.callers import NDJSON, media_type
from broker.http.connection import connection_of
from broker.http.described import described, listed
from broker.http.differences import ROWS_DEFAULT as ROWS_DIFFERING
from broker.http.differences import ROWS_MAX as ROWS_MAX_DIFFERING
from broker.http.differences import DifferenceRequest, Differences
from broker.http.endings import Endings, end_request
from broker.http.entities import EntityRequests
from broker.http.errors import BadRequest, json
from broker.http.matching import QUERIES_DEFAULT, QUERIES_MAX, Matching, match_lines, match_request
from broker.http.named import named, opened
from broker.http.options import QueryChanges, change_request
from broker.http.plan_files import PlanFiles
from broker.http.plans import plan_of, proposals_of
from broker.http.query_list import PAGE_MAX, SEARCH_MAX, QueryLists, words_of
from broker.http.requests import register_request
from broker.http.routing import LIST_MAX, DryRun, Operates, told
from broker.http.writes import Writes
from broker.node.node import Node
from broker.observe.query_list.listing import QueryList
from broker.observe.query_list.orders import Direction, Sort, Wanted
from broker.observe.query_list.shapes import ShapeSort
from tureen.errors import QueryError
from tureen.plan_files.schema import schema as plan_schema
from tureen.protocol import SnapshotFormat

OFFSET_MAX = 2**31 - 1

SearchParameter = Annotated[
    str,
    Query(
        max_length=SEARCH_MAX,
        description="Words that are in the text, its parameters, the id, or the names that it reads.",
    ),
]
StateParameter = Annotated[Literal["RUNNING", "PAUSED", "PENDING", "ERROR"] | None, Query()]
SourceParameter = Annotated[str | None, Query(description="A stream, a table or a view that they read.")]
ModeParameter = Annotated[
    Literal["auto", "none", "lazy", "eager"] | None,
    Query(description="The mode of now; of what does not stand, what it asks for."),
]


def add_query_routes(
    app: FastAPI,
    settings: Settings,
    node: Node,
    operates: Operates,
    writes: Writes,
    endings: Endings,
    changes: QueryChanges,
    entities: EntityRequests,
    snapshots: Snapshots,
    matching: Matching,
) -> None:
    """Add them to the application."""
    differences = Differences(settings, node, snapshots)
    query_lists = QueryLists(node, QueryList(node, entities.read))
    plan_files = PlanFiles(node, changes, entities, settings.sql_bytes_max)

    @app.post("/queries", tags=["queries"])
    async def post_query(request: Request) -> Response:
        """Register `{"sql" | "plan", "handle"?, "options"?}`; NDJSON for many, answered line by line."""
        if media_type(dict(request.scope["headers"])) == NDJSON:
            answers = writes.register_many(
                parts(request, settings.request_bytes_max), connection_of(request.scope)
            )
            first = await anext(answers, b"")  # what refuses the whole body is raised here
            return LineAnswers(_all(first, answers), connection_of(request.scope), NDJSON)
        body = await asyncio.to_thread(plan_files.whole, await request.body())
        try:
            return await told(writes.register(register_request(body, settings.sql_bytes_max)))
        except QueryError:
            await asyncio.to_thread(plan_files.checked, body)  # that of a plan has a path
            raise

    @app.get("/queries", tags=["queries"])
    async def get_queries(
        request: Request,
        after: Annotated[str, Query(description="The last query id of the previous page.")] = "",
        limit: Annotated[int, Query(ge=1, le=LIST_MAX)] = 1_000,
        search: SearchParameter = "",
        state: StateParameter = None,
        source: SourceParameter = None,
        shape: Annotated[str | None, Query(description="The id of a shape, of `GET /shapes`.")] = None,
        maintenance: ModeParameter = None,
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
            wanted = Wanted(words_of(search), state, source, shape, maintenance)
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
        search: SearchParameter = "",
        state: StateParameter = None,
        source: SourceParameter = None,
        shape: Annotated[str | None, Query(description="The one with this id.")] = None,
        maintenance: ModeParameter = None,
        sort: ShapeSort = "queries",
        order: Direction = "desc",
        offset: Annotated[int, Query(ge=0, le=OFFSET_MAX)] = 0,
        limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = 100,
    ) -> Response:
        """Queries grouped by their text with the constants taken out, with counts and sums."""
        wanted = Wanted(words_of(search), state, source, shape, maintenance)
        return json(await query_lists.shapes(wanted, sort, order, offset, limit))

    @app.get("/queries/{handle}", tags=["queries"])
    async def get_query(request: Request, handle: str) -> Response:
        """One query: its text, state, options and position. The operator may give its id."""
        return json(described(node, named(node, handle, operates(request))))

    @app.patch("/queries/{handle}", tags=["queries"])
    async def patch_query(handle: str, request: Request, dry_run: DryRun = False) -> Response:
        """Pause, resume, change: `{"paused"?, "maintenance"?, "weight"?}`; another text: `{"sql"}`, or
        `{"template", "parameters"}`. The query as it is then. The operator may give its id but for a text.
        """
        wanted = change_request(await request.body(), settings.sql_bytes_max)
        name = opened(node, handle) if wanted.wording else named(node, handle, operates(request))
        if dry_run:
            return json(await entities.dry_runs.of_query(name, wanted))
        return await told(changes.change(name, wanted))

    @app.post("/queries/unregister", tags=["queries"])
    async def unregister_queries(request: Request) -> Response:
        """End many: `{"queries": ["handle or id", ...]}`, or `{"source": "name"}`: all that read it."""
        wanted = end_request(await request.body(), settings.queries_max)
        return await told(endings.many(wanted, operates(request)))

    @app.delete("/queries/{handle}", tags=["queries"])
    async def delete_query(request: Request, handle: str) -> Response:
        """Unregister. The operator may give its id."""
        return await told(endings.one(handle, operates(request)))

    @app.get("/queries/{handle}/snapshot", tags=["queries"])
    async def get_snapshot(
        handle: str,
        form: Annotated[
            SnapshotFormat,
            Query(alias="format", description="Only Arrow has all types exactly; see the docs."),
        ] = "json",
        at: Annotated[str | None, Query(description="An earlier instant: ms since 1970 or ISO 8601.")] = None,
        archive: Annotated[
            bool | None,
            Query(
                description="true: complete it from the archive; false: never; else `at` reads it if needed."
            ),
        ] = None,
        limit: Annotated[
            int | None, Query(ge=0, description="So many rows at most, the first; rows_total has how many.")
        ] = None,
    ) -> Response:
        """The answer now, or as of an earlier instant."""
        return await snapshots.response(opened(node, handle), form, at, archive, limit)

    @app.get("/queries/{handle}/difference", tags=["queries"])
    async def get_difference(
        handle: str,
        from_: Annotated[str, Query(alias="from", description="The earlier instant, as of `at`.")],
        to: Annotated[str | None, Query(description="The later instant; NOW where it is left out.")] = None,
        archive: Annotated[bool | None, Query(description="As of snapshots.")] = None,
        limit: Annotated[
            int, Query(ge=0, le=ROWS_MAX_DIFFERING, description="Rows of each kind at most.")
        ] = ROWS_DIFFERING,
    ) -> Response:
        """Which rows of the answer came and went between two instants, as bags."""
        wanted = DifferenceRequest.of(from_, to, archive, limit)
        body = await differences.between(opened(node, handle), wanted)
        return Response(body, 200, {"Cache-Control": "no-store"}, "application/json")

    @app.get("/queries/{handle}/plan", tags=["queries"])
    async def get_plan(
        request: Request,
        handle: str,
        analyze: Annotated[bool, Query(description="Evaluate it once, and measure each operator.")] = False,
    ) -> Response:
        """How the answer comes about: operators, sharing, maintenance, costs."""
        return json(await plan_of(node, named(node, handle, operates(request)), analyze))

    @app.get("/queries/{handle}/proposals", tags=["queries"])
    async def get_proposals(request: Request, handle: str) -> Response:
        """Other texts for the query that use fewer resources, with what each saves and costs. PATCH the query
        with the text of one to approve it.
        """
        name = named(node, handle, operates(request))
        return json({"proposals": await proposals_of(node, name)})

    @app.get("/plans/schema", tags=["plans"])
    async def get_plan_schema() -> Response:
        """The JSON Schema of plans."""
        return json(plan_schema())

    @app.post("/plans/validate", tags=["plans"])
    async def post_plan(request: Request) -> Response:
        """Check `{"plan"}`: its text in SQL, its columns, and the plan as it is exported."""
        return json(await plan_files.validated(await request.body()))

    @app.get("/plans/{handle}", tags=["plans"])
    async def get_plan_file(handle: str) -> Response:
        """The plan of a query, as a file has it, by its handle or id."""
        return json(await plan_files.exported(handle))

    @app.put("/plans/{handle}", tags=["plans"])
    async def put_plan_file(handle: str, request: Request, dry_run: DryRun = False) -> Response:
        """Apply `{"plan"}` to a query that runs: its options, and attributes of what it shares."""
        if dry_run:
            return json(await plan_files.dry_run(handle, await request.body(), operates(request)))
        return await told(plan_files.apply(handle, await request.body(), operates(request)))

    @app.post("/match", tags=["queries"])
    async def post_match(
        request: Request,
        source: Annotated[str | None, Query(description="The stream, if the body is NDJSON.")] = None,
        limit: Annotated[int, Query(ge=0, le=QUERIES_MAX)] = QUERIES_DEFAULT,
    ) -> Response:
        """Which standing queries records satisfy: `{"source", "record" | "records", "limit"?}`, or NDJSON."""
        body = await request.body()
        lines = media_type(dict(request.scope["headers"])) == NDJSON
        return json(await matching.match(match_lines(source, body, limit) if lines else match_request(body)))


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in rest:
        yield each
