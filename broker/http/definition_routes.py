"""Routes that define and drop streams, tables, views and summaries; heartbeats of streams."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.http.creations import Creations
from broker.http.drops import Drops
from broker.http.errors import json
from broker.http.heartbeats import Heartbeats
from broker.http.routing import Operates, told
from broker.http.summaries import SummaryRequests


def add_definition_routes(
    app: FastAPI,
    operates: Operates,
    creations: Creations,
    drops: Drops,
    summaries: SummaryRequests,
    heartbeats: Heartbeats,
) -> None:
    """Add them to the application."""

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
        """Drop a stream, a table or a view that nothing reads, or with what reads it. Where that takes long
        it is PENDING (202) and goes on; asked again, the broker tells how far it is.
        """
        return await told(drops.drop(name, cascade, operates(request)))

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
