"""The public API: statements, queries, snapshots, health, metrics.

Reads are served from the shards' views, which need neither Kafka nor a lock; writes are in
:mod:`broker.http.writes`, answers in :mod:`broker.http.answers`. Handles appear in paths, so access logs are
off and nothing logs a path.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response, StreamingResponse

import tureen
from broker.http.answers import Snapshots
from broker.http.bodies import parts
from broker.http.callers import NDJSON, media_type
from broker.http.creations import Creations
from broker.http.described import described, listed
from broker.http.differences import ROWS_DEFAULT as ROWS_DIFFERING
from broker.http.differences import ROWS_MAX as ROWS_MAX_DIFFERING
from broker.http.differences import DifferenceRequest, Differences
from broker.http.endings import Endings, end_request
from broker.http.entities import EVERY_MS, EVERY_MS_MAX, EVERY_MS_MIN, EntityRequests
from broker.http.errors import BadRequest, install, json
from broker.http.event_hub import EventHub, wants_sse
from broker.http.feed_description import describe
from broker.http.heartbeats import Heartbeats
from broker.http.language import checked, language_of
from broker.http.matching import QUERIES_DEFAULT, QUERIES_MAX, Matching, match_lines, match_request
from broker.http.memory import MemoryRequests
from broker.http.named import is_operator, named, opened
from broker.http.options import QueryChanges, change_request
from broker.http.pages import serve_pages
from broker.http.plan_files import PlanFiles
from broker.http.plans import plan_of, proposals_of
from broker.http.query_list import PAGE_MAX, SEARCH_MAX, QueryLists, words_of
from broker.http.requests import register_request
from broker.http.rights import Tokens
from broker.http.row_samples import ROWS_MAX
from broker.http.source_routes import add_source_routes
from broker.http.statements import Statements
from broker.http.summaries import SummaryRequests
from broker.http.tracing import QUERIES_DEFAULT as TRACED_DEFAULT
from broker.http.tracing import QUERIES_MAX as TRACED_MAX
from broker.http.tracing import Traces
from broker.http.watch_routes import add_watch_routes
from broker.http.writes import Answer, Writes
from broker.page.serving import serve_page
from broker.settings import Settings
from broker.worker.metrics import Metrics
from broker.worker.node import Node
from broker.worker.observer import Observer
from broker.worker.publisher import Publisher
from broker.worker.query_list.listing import QueryList
from broker.worker.query_list.orders import Direction, Sort, Wanted
from broker.worker.query_list.shapes import ShapeSort
from broker.worker.status import readiness, status
from tureen.errors import QueryError
from tureen.plan_files.schema import schema as plan_schema
from tureen.protocol import SnapshotFormat

LIST_MAX = 10_000
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

DryRun = Annotated[
    bool, Query(description="Check everything, do nothing; answers what would be set, and what that does.")
]
READERS_MAX = 1_000


def public_api(
    settings: Settings,
    node: Node,
    publisher: Publisher,
    snapshots: Snapshots,
    metrics: Metrics,
    observer: Observer,
) -> FastAPI:
    """The application that uvicorn serves."""
    app = FastAPI(
        title="Tureen",
        version=tureen.__version__,
        description="Continuous SQL queries on Kafka; each answer is fetched by a handle.",
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
    )
    install(app)
    describe(app)
    serve_pages(app)
    if settings.page != "off":
        serve_page(app)
    writes = Writes(settings, node, publisher)
    endings = Endings(settings, node, writes, publisher)
    changes = QueryChanges(node, writes)
    matching = Matching(node)
    differences = Differences(settings, node, snapshots)
    summaries = SummaryRequests(settings, node, writes)
    creations = Creations(settings, node, writes, endings, summaries)
    heartbeats = Heartbeats(settings, node)
    events = EventHub(
        node.stopping, settings.event_listeners_max, settings.feed_write_timeout_ms / 1_000, metrics.events
    )
    entities = EntityRequests(
        node,
        changes,
        summaries,
        observer.entities,
        events,
        settings.sql_bytes_max,
        settings.snapshot_bytes_max,
    )
    traces = Traces(settings, node, matching, entities)
    query_lists = QueryLists(node, QueryList(node, entities.read))
    memory = MemoryRequests(node, entities)
    plan_files = PlanFiles(node, changes, entities, settings.sql_bytes_max)
    statements = Statements(settings, node, endings, creations, changes, summaries)

    tokens = Tokens(settings)

    def operates(request: Request) -> bool:
        return is_operator(request.scope, settings)

    async def told(write: Awaitable[Answer]) -> Response:
        code, body = await write
        return json(body, code)

    add_source_routes(app, settings, node, operates)
    add_watch_routes(app, node, metrics, observer, events)

    @app.post("/sources", tags=["sources"])
    async def post_source(request: Request) -> Response:
        """CREATE or DROP of a stream, a table, a view or a summary, ALTER SUMMARY: `{"sql": "..."}`."""
        return await told(creations.statement(await request.body(), operates(request)))

    @app.delete("/sources/{name}", tags=["sources"])
    async def delete_source(
        request: Request,
        name: str,
        cascade: Annotated[bool, Query(description="With the queries and views that read it.")] = False,
    ) -> Response:
        """Drop a stream, a table or a view that nothing reads, or with what reads it."""
        return await told(creations.drop(name, cascade, operates(request)))

    @app.get("/summaries", tags=["sources"])
    async def get_summaries() -> Response:
        """Every summary of a stream, its state, and how much it holds."""
        return json({"summaries": await summaries.listed()})

    @app.get("/summaries/{name}", tags=["sources"])
    async def get_summary(name: str) -> Response:
        """One summary: its granularities and zones, why each zone ended, how far estimates may err."""
        return json(await summaries.described(name))

    @app.delete("/summaries/{name}", tags=["sources"])
    async def delete_summary(name: str) -> Response:
        """Drop a summary that no query uses."""
        return await told(summaries.drop(name))

    @app.post("/sources/{name}/heartbeat", tags=["sources"])
    async def post_heartbeat(request: Request, name: str) -> Response:
        """`{"partition": p or null, "ms": h}`: no row of this partition, or of any, below h follows."""
        return await told(heartbeats.send(name, await request.body()))

    @app.post("/statements", tags=["statements"])
    async def post_statement(request: Request) -> Response:
        """Anything but a SELECT: SHOW, DESCRIBE, EXPLAIN, PAUSE, RESUME, TERMINATE, ALTER, CREATE, DROP."""
        only_reads = tokens.reads(request.scope)
        return await told(statements.run(await request.body(), operates(request), only_reads))

    @app.post("/statements/check", tags=["statements"])
    async def post_check(request: Request) -> Response:
        """What a statement means, and the plan of a SELECT: `{"sql"}`, or `{"template", "parameters"}`.
        Nothing is done.
        """
        return json(await checked(node, await request.body(), settings.sql_bytes_max))

    @app.get("/language", tags=["statements"])
    async def get_language() -> Response:
        """Keywords, statements, functions, types, windows, and options with their values."""
        return json(language_of(node))

    @app.post("/queries", tags=["queries"])
    async def post_query(request: Request) -> Response:
        """Register `{"sql" | "plan", "handle"?, "options"?}`; NDJSON for many, answered line by line."""
        if media_type(dict(request.scope["headers"])) == NDJSON:
            answers = writes.register_many(parts(request, settings.request_bytes_max))
            first = await anext(answers, b"")  # what refuses the whole body is raised here
            return StreamingResponse(_all(first, answers), media_type=NDJSON)
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

    @app.get("/memory", tags=["entities"])
    async def get_memory() -> Response:
        """What memory is spent on, by structure and by synopsis, and the sizes that can be set."""
        return json(await memory.told())

    @app.post("/memory/moves", tags=["entities"])
    async def post_move(request: Request, dry_run: DryRun = False) -> Response:
        """Move `{"from": {"entity", "attribute", "if_version"?}, "to": {...}, "bytes"}`: one size becomes
        smaller, the other larger.
        """
        return json(await memory.move(await request.body(), operates(request), dry_run))

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

    @app.get("/trace", tags=["entities"])
    async def get_trace(
        request: Request,
        source: Annotated[str, Query(description="A stream or a table.")],
        partition: Annotated[int, Query(ge=0)],
        offset: Annotated[int, Query(ge=0)],
        limit: Annotated[int, Query(ge=0, le=TRACED_MAX, description="Ids of queries.")] = TRACED_DEFAULT,
    ) -> Response:
        """The way of one record from its offset to the answers, as far as it is known. The operator's."""
        return json(await traces.trace(source, partition, offset, limit, operates(request)))

    @app.post("/retry", tags=["service"])
    async def post_retry() -> Response:
        """Have shards that are held try to come back: `{"shards"}`, their numbers."""
        return json({"shards": await node.retry()})

    @app.get("/me", tags=["service"])
    async def get_me(request: Request) -> Response:
        """What the caller may do: `operator`; `read_only` where the page is to change nothing, and `because`
        of what: the `token` that only reads, or the setting `page`.
        """
        because = "token" if tokens.reads(request.scope) else "page" if settings.page == "read-only" else None
        return json({"operator": operates(request), "read_only": because is not None, "because": because})

    @app.get("/status", tags=["service"])
    async def get_status() -> Response:
        """Rates, queries, sources and shards, for people and their tools."""
        return json(status(node, settings, metrics))

    @app.get("/healthcheck", tags=["service"])
    async def healthcheck() -> Response:
        """200 while the process answers."""
        return json({"healthy": True})

    @app.get("/readycheck", tags=["service"])
    async def readycheck() -> Response:
        """200 when reads and writes are served; 503 with the reasons otherwise."""
        facts = readiness(node)
        return json(facts, 200 if facts["ready"] else 503)

    @app.get("/metrics", tags=["service"])
    async def get_metrics() -> Response:
        """Prometheus' text format."""
        return Response(metrics.text(node), media_type="text/plain; version=0.0.4; charset=utf-8")

    return app


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in rest:
        yield each
