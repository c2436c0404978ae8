"""What a page, or any monitor, follows: the status as events, and the last hour as numbers."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.http.entities import EVERY_MS, EVERY_MS_MAX, EVERY_MS_MIN
from broker.http.errors import BadRequest, json
from broker.http.event_hub import EventHub, wants_sse
from broker.http.status_events import StatusEvents
from broker.node.node import Node
from broker.observe.metrics import Metrics
from broker.observe.observer import Observer


def add_watch_routes(
    app: FastAPI, node: Node, metrics: Metrics, observer: Observer, events: EventHub
) -> None:
    """Add them to the application."""
    status_events = StatusEvents(node, metrics, observer.entities, events)

    @app.get("/status/events", tags=["service"])
    async def get_status_events(
        request: Request,
        every_ms: Annotated[int, Query(ge=EVERY_MS_MIN, le=EVERY_MS_MAX)] = EVERY_MS,
    ) -> Response:
        """Whether it is well and what it does, each interval: NDJSON, or SSE where Accept asks for it."""
        return status_events.stream(every_ms, wants_sse(request.scope))

    @app.get("/history", tags=["service"])
    async def get_history(
        entity: Annotated[str | None, Query(description="The id of an entity that is no query.")] = None,
        source: Annotated[str | None, Query(description="A stream or a table.")] = None,
        since_ms: Annotated[int | None, Query(ge=0, description="Only what is later.")] = None,
    ) -> Response:
        """The last hour of the broker, of a source or of an entity: instants, and series with their units."""
        history = observer.history
        if entity is not None and source is not None:
            raise BadRequest("a history is of an entity or of a source", hint="ask for each by itself")
        if entity is not None:
            stands = history.keeps(entity) or await observer.entities.stands(entity)
            return json(history.of_entity(entity, since_ms, stands=stands))
        if source is not None:
            stands = source in node.directory.sources
            return json(history.of_source(source, since_ms, stands=stands))
        return json(history.of_broker(since_ms))
