"""The route of a record's way from its offset to the answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.http.errors import json
from broker.http.routing import Operates
from broker.http.tracing import QUERIES_DEFAULT, QUERIES_MAX, Traces


def add_trace_route(app: FastAPI, operates: Operates, traces: Traces) -> None:
    """Add it to the application."""

    @app.get("/trace", tags=["entities"])
    async def get_trace(
        request: Request,
        source: Annotated[str, Query(description="A stream or a table.")],
        partition: Annotated[int, Query(ge=0, le=2**31 - 1)],
        offset: Annotated[int, Query(ge=0, le=2**63 - 1)],
        limit: Annotated[int, Query(ge=0, le=QUERIES_MAX, description="Ids of queries.")] = QUERIES_DEFAULT,
    ) -> Response:
        """The way of one record from its offset to the answers, as far as it is known. The operator's."""
        return json(await traces.trace(source, partition, offset, limit, operates(request)))
