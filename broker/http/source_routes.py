"""Routes that tell of single sources and of Kafka's topics, for those who look and who create."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.http.errors import json
from broker.http.inference import Inference
from broker.http.source_facts import SourceFacts
from broker.http.source_records import LIMIT_MAX, SourceRecords, Which
from broker.http.topic_list import TopicList
from broker.settings import Settings
from broker.worker.node import Node
from tureen.errors import NotAllowed


def add_source_routes(
    app: FastAPI, settings: Settings, node: Node, operates: Callable[[Request], bool]
) -> None:
    """operates: whether a request comes from the operator."""
    facts = SourceFacts(node)
    shown = SourceRecords(settings, node)
    topics = TopicList(settings, node)
    inference = Inference(node)

    def require_operator(request: Request, what: str) -> None:
        if not operates(request):
            raise NotAllowed(what)

    @app.get("/sources/{name}", tags=["sources"])
    async def get_source(name: str) -> Response:
        """One stream, table or view: as the list has it, its partitions, its rules of time, what reads it."""
        return json(await facts.one(name))

    @app.get("/sources/{name}/records", tags=["sources"])
    async def get_source_records(
        request: Request,
        name: str,
        which: Annotated[Which, Query(description="Of its topic, or those that gave no row.")] = "newest",
        limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = 20,
    ) -> Response:
        """The newest records of a source, its late ones or its dead letters, with reasons. The operator's."""
        require_operator(request, "look at records of a source")
        return json(await shown.shown(name, which, limit))

    @app.get("/topics", tags=["sources"])
    async def get_topics(
        request: Request,
        search: Annotated[str, Query(description="Part of the name.")] = "",
        own: Annotated[bool, Query(description="Also the broker's topics and Kafka's.")] = False,
    ) -> Response:
        """The topics of Kafka, how much is in each, and which sources read it. The operator's."""
        require_operator(request, "list topics of Kafka")
        return json(await topics.listed(search, own))

    @app.post("/sources/infer", tags=["sources"])
    async def post_infer(request: Request) -> Response:
        """`{"topic", "name"?}`: a CREATE that reads the topic, guessed from its newest records and tried on
        them. Nothing is created. The operator's.
        """
        require_operator(request, "look at records of a topic")
        return json(await inference.propose(await request.body()))
