"""Routes of memory: what it is spent on, and sizes moved from one structure to another."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import Response

from broker.http.errors import json
from broker.http.memory import MemoryRequests
from broker.http.routing import DryRun, Operates


def add_memory_routes(app: FastAPI, operates: Operates, memory: MemoryRequests) -> None:
    """Add them to the application."""

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
