"""The public API: statements, queries, snapshots, health, metrics.

Reads are served from the shards' views, which need neither Kafka nor a lock; writes are in
:mod:`broker.http.writes`, answers in :mod:`broker.http.answers`. Handles appear in paths, so access logs are
off and nothing logs a path.
"""

from __future__ import annotations

from fastapi import FastAPI, Request

import tureen
from broker.base.settings import Settings
from broker.http.answer_routes import add_answer_routes
from broker.http.answers import Snapshots
from broker.http.carried import Carried
from broker.http.definition_routes import add_definition_routes
from broker.http.differences import Differences
from broker.http.entities import EntityRequests
from broker.http.entity_routes import add_entity_routes
from broker.http.errors import install
from broker.http.event_hub import EventHub
from broker.http.feed_description import describe
from broker.http.heartbeats import Heartbeats
from broker.http.matching import Matching
from broker.http.memory import MemoryRequests
from broker.http.memory_routes import add_memory_routes
from broker.http.named import is_operator
from broker.http.page_files import serve_page
from broker.http.pages import serve_pages
from broker.http.plan_files import PlanFiles
from broker.http.plan_routes import add_plan_routes
from broker.http.query_list import QueryLists
from broker.http.query_list_routes import add_query_list_routes
from broker.http.query_routes import add_query_routes
from broker.http.register_route import add_register_route
from broker.http.rights import Tokens, require_rights
from broker.http.service_routes import add_service_routes
from broker.http.source_routes import add_source_routes
from broker.http.statement_routes import add_statement_routes
from broker.http.trace_route import add_trace_route
from broker.http.tracing import Traces
from broker.http.watch_routes import add_watch_routes
from broker.node.node import Node
from broker.observe.metrics import Metrics
from broker.observe.observer import Observer
from broker.observe.query_list.listing import QueryList


def public_api(
    settings: Settings,
    node: Node,
    carried: Carried,
    snapshots: Snapshots,
    metrics: Metrics,
    observer: Observer,
) -> FastAPI:
    """The application that uvicorn serves."""
    app = _application(settings)
    changes, summaries = carried.changes, carried.summaries
    matching = Matching(node)
    events = EventHub(
        node.life.stopping,
        settings.event_listeners_max,
        settings.feed_write_timeout_ms / 1_000,
        metrics.events,
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
    plan_files = PlanFiles(node, changes, entities, settings.sql_bytes_max)
    tokens = Tokens(settings)

    def operates(request: Request) -> bool:
        return is_operator(request.scope, settings)

    add_source_routes(app, settings, node, operates, carried.inference)
    add_register_route(app, settings, carried.writes, plan_files)
    add_query_routes(app, settings, node, operates, carried.endings, changes, entities.dry_runs)
    add_query_list_routes(app, node, QueryLists(node, QueryList(node, entities.read)))
    add_answer_routes(app, node, snapshots, Differences(settings, node, snapshots), matching)
    add_plan_routes(app, node, operates, plan_files)
    add_memory_routes(app, operates, MemoryRequests(node, entities))
    add_entity_routes(app, operates, entities)
    add_trace_route(app, operates, Traces(settings, node, matching, entities))
    add_watch_routes(app, node, metrics, observer, events)
    add_definition_routes(
        app, operates, carried.creations, carried.drops, summaries, Heartbeats(settings, node)
    )
    add_statement_routes(app, settings, node, operates, tokens, carried.statements)
    add_service_routes(app, settings, node, operates, tokens, metrics)
    require_rights(app)
    return app


def _application(settings: Settings) -> FastAPI:
    """The application with its pages and its answers to errors, before routes are added."""
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
    return app
