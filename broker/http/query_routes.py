"""Routes of single queries: described, changed, ended."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import Response

from broker.base.settings import Settings
from broker.http.described import described
from broker.http.dry_runs import DryRuns
from broker.http.endings import Endings, end_request
from broker.http.errors import json
from broker.http.named import named, opened
from broker.http.options import QueryChanges, change_request
from broker.http.routing import DryRun, Operates, told
from broker.node.node import Node


def add_query_routes(
    app: FastAPI,
    settings: Settings,
    node: Node,
    operates: Operates,
    endings: Endings,
    changes: QueryChanges,
    dry_runs: DryRuns,
) -> None:
    """Add them to the application."""

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
            return json(await dry_runs.of_query(name, wanted))
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
