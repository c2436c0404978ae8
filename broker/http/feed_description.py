"""What the API's description says of change feeds, which are served ahead of it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from broker.http.feed_requests import WAIT_MS_DEFAULT, WAIT_MS_MAX

PATH = "/queries/{handle}/changes"


def _parameter(name: str, text: str, schema: dict[str, Any], where: str = "query") -> dict[str, Any]:
    required = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, "description": text, "schema": schema} | required


_CHANGES: dict[str, Any] = {
    "get": {
        "tags": ["queries"],
        "summary": "Get Changes",
        "description": "The answer, then its changes, as NDJSON or server-sent events; resumes exactly from "
        "a change position. The last line of a feed has the type end.",
        "operationId": "get_changes_queries__handle__changes_get",
        "parameters": [
            _parameter("handle", "Of the query.", {"type": "string"}, "path"),
            _parameter(
                "since",
                "The change position to continue from; without one the answer comes first.",
                {"type": "string"},
            ),
            _parameter(
                "live",
                "true: stay open. false: end after the changes so far. poll: one JSON object, as soon as "
                "something has changed or the wait is over.",
                {"type": "string", "enum": ["true", "false", "poll"], "default": "true"},
            ),
            _parameter(
                "wait_ms",
                "How long a poll waits for changes.",
                {"type": "integer", "minimum": 0, "maximum": WAIT_MS_MAX, "default": WAIT_MS_DEFAULT},
            ),
            _parameter(
                "format",
                "`Accept: text/event-stream` has the effect of sse.",
                {"type": "string", "enum": ["ndjson", "sse"], "default": "ndjson"},
            ),
            _parameter(
                "Last-Event-ID",
                "As event sources send it; takes precedence over since.",
                {"type": "string"},
                "header",
            ),
        ],
        "responses": {
            "200": {
                "description": "Lines of the types snapshot, changes, progress, end.",
                "content": {"application/x-ndjson": {}, "text/event-stream": {}, "application/json": {}},
            },
            "400": {
                "description": "A parameter is wrong, or the position is another query's or in the future."
            },
            "404": {"description": "There is no query with this handle."},
            "409": {"description": "The query is not running."},
            "410": {"description": "must_refetch: the changes after this position are no longer kept."},
            "429": {"description": "The maximum number of feeds is open."},
        },
    }
}


def describe(app: FastAPI) -> None:
    """Add the path of feeds to the description."""
    described = app.openapi

    def with_feeds() -> dict[str, Any]:
        found = described()
        found["paths"][PATH] = _CHANGES
        return found

    app.openapi = with_feeds  # type: ignore[method-assign]
