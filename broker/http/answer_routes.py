"""Routes of answers: of a query, now and earlier, and of the queries that a record satisfies."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.http.answers import Snapshots
from broker.http.callers import NDJSON, media_type
from broker.http.differences import ROWS_DEFAULT, ROWS_MAX, DifferenceRequest, Differences
from broker.http.errors import json
from broker.http.matching import QUERIES_DEFAULT, QUERIES_MAX, Matching, match_lines, match_request
from broker.http.named import opened
from broker.http.requests import asked_at
from broker.node.node import Node
from tureen.protocol import SnapshotFormat


def add_answer_routes(
    app: FastAPI, node: Node, snapshots: Snapshots, differences: Differences, matching: Matching
) -> None:
    """Add them to the application."""

    @app.get("/queries/{handle}/snapshot", tags=["queries"])
    async def get_snapshot(
        handle: str,
        form: Annotated[
            SnapshotFormat,
            Query(alias="format", description="Only Arrow has all types exactly; see the docs."),
        ] = "json",
        at: Annotated[str | None, Query(description="An earlier instant: ms since 1970 or ISO 8601.")] = None,
        from_: Annotated[
            str | None, Query(alias="from", description="Over a period that begins here, as of `at`.")
        ] = None,
        to: Annotated[
            str | None, Query(description="The first instant behind it; NOW is the last one if left out.")
        ] = None,
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
        """The answer now, as of an earlier instant, or over a period, with valid_from and valid_to."""
        return await snapshots.response(opened(node, handle), form, asked_at(at, from_, to), archive, limit)

    @app.get("/queries/{handle}/difference", tags=["queries"])
    async def get_difference(
        handle: str,
        from_: Annotated[str, Query(alias="from", description="The earlier instant, as of `at`.")],
        to: Annotated[str | None, Query(description="The later instant; NOW where it is left out.")] = None,
        archive: Annotated[bool | None, Query(description="As of snapshots.")] = None,
        limit: Annotated[
            int, Query(ge=0, le=ROWS_MAX, description="Rows of each kind at most.")
        ] = ROWS_DEFAULT,
    ) -> Response:
        """Which rows of the answer came and went between two instants, as bags."""
        wanted = DifferenceRequest.of(from_, to, archive, limit)
        body = await differences.between(opened(node, handle), wanted)
        return Response(body, 200, {"Cache-Control": "no-store"}, "application/json")

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
