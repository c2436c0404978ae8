"""The route that registers queries: one, or many line by line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from fastapi.responses import Response

from broker.base.settings import Settings
from broker.http.bodies import LineAnswers, parts
from broker.http.callers import NDJSON, media_type
from broker.http.connection import connection_of
from broker.http.plan_files import PlanFiles
from broker.http.requests import register_request
from broker.http.routing import told
from broker.http.writes import Writes
from tureen.errors import QueryError


def add_register_route(app: FastAPI, settings: Settings, writes: Writes, plan_files: PlanFiles) -> None:
    """Add it to the application."""

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


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in rest:
        yield each
