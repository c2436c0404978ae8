"""Routes of the service: its state, its figures, and what a caller may do."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import Response

from broker.base.settings import Settings
from broker.http.errors import json
from broker.http.rights import Tokens
from broker.http.routing import Operates
from broker.node.node import Node
from broker.observe.metrics import Metrics
from broker.observe.status import readiness, status


def add_service_routes(
    app: FastAPI, settings: Settings, node: Node, operates: Operates, tokens: Tokens, metrics: Metrics
) -> None:
    """Add them to the application."""

    @app.post("/retry", tags=["service"])
    async def post_retry() -> Response:
        """Have shards that are held try to come back: `{"shards"}`, their numbers."""
        return json({"shards": await node.shards.retry()})

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
