"""The public API: statements, queries, snapshots, health, metrics.

Reads are served from the shards' views, which need neither Kafka nor a lock; writes are in
:mod:`broker.http.writes`, answers in :mod:`broker.http.answers`. Handles appear in paths, so access logs are
off and nothing logs a path.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

import tureen
from broker.base.settings import Settings
from broker.http.answers import Snapshots
from broker.http.creations import Creations
from broker.http.endings import Endings
from broker.http.entities import EntityRequests
from broker.http.entity_routes import add_entity_routes
from broker.http.errors import install, json
from broker.http.event_hub import EventHub
from broker.http.feed_description import describe
from broker.http.heartbeats import Heartbeats
from broker.http.language import checked, language_of
from broker.http.matching import Matching
from broker.http.named import is_operator
from broker.http.options import QueryChanges
from broker.http.page_files import serve_page
from broker.http.pages import serve_pages
from broker.http.query_routes import add_query_routes
from broker.http.rights import Tokens, require_rights
from broker.http.routing import told
from broker.http.source_routes import add_source_routes
from broker.http.statements import Statements
from broker.http.summaries import SummaryRequests
from broker.http.tracing import Traces
from broker.http.watch_routes import add_watch_routes
from broker.http.writes import Writes
from broker.node.node import Node
from broker.observe.metrics import Metrics
from broker.observe.observer import Observer
from broker.observe.status import readiness, status
from broker.runtime.publisher import Publisher


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
        redirect_slashes=False,  # the address it sends to would have the handle of the header Tureen-Handle
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
    statements = Statements(settings, node, endings, creations, changes, summaries)

    tokens = Tokens(settings)

    def operates(request: Request) -> bool:
        return is_operator(request.scope, settings)

    add_source_routes(app, settings, node, operates)
    add_query_routes(app, settings, node, operates, writes, endings, changes, entities, snapshots, matching)
    add_entity_routes(app, node, operates, entities, traces)
    add_watch_routes(app, node, metrics, observer, events)

    @app.post("/sources", tags=["sources"])
    async def post_source(request: Request) -> Response:
        """CREATE or DROP of a stream, a table, a view or a summary, ALTER SUMMARY: `{"sql": "..."}`."""
        return await told(creations.statement(await request.body(), operates(request)))

    @app.delete("/sources/{name:path}", tags=["sources"])
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

    @app.get("/summaries/{name:path}", tags=["sources"])
    async def get_summary(name: str) -> Response:
        """One summary: its granularities and zones, why each zone ended, how far estimates may err."""
        return json(await summaries.described(name))

    @app.delete("/summaries/{name:path}", tags=["sources"])
    async def delete_summary(name: str) -> Response:
        """Drop a summary that no query uses."""
        return await told(summaries.drop(name))

    @app.post("/sources/{name:path}/heartbeat", tags=["sources"])
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
        of_rows = not tokens.reads(request.scope)
        return json(await checked(node, await request.body(), settings.sql_bytes_max, of_rows=of_rows))

    @app.get("/language", tags=["statements"])
    async def get_language() -> Response:
        """Keywords, statements, functions, types, windows, and options with their values."""
        return json(language_of(node))

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

    require_rights(app)
    return app
