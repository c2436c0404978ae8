"""Routes that tell of single sources and of Kafka's topics, for those who look and who create."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.base.settings import Settings
from broker.http.errors import json
from broker.http.inference import Inference
from broker.http.named import require_operator
from broker.http.routing import Operates
from broker.http.shared_answers import SharedAnswers
from broker.http.source_facts import SourceFacts
from broker.http.source_lists import Sort, SourceLists
from broker.http.source_records import LIMIT_MAX, SourceRecords, Which
from broker.http.topic_list import TopicList
from broker.node.node import Node
from broker.observe.status import source_list

SOURCES_MAX = 1_000
OFFSET_MAX = 2**31 - 1


def add_source_routes(
    app: FastAPI, settings: Settings, node: Node, operates: Operates, inference: Inference
) -> None:
    """operates: whether a request comes from the operator."""
    lists = SourceLists(node)
    facts = SourceFacts(node, lists)
    answers = SharedAnswers()
    shown = SourceRecords(settings, node)
    topics = TopicList(settings, node)

    @app.get("/sources", tags=["sources"])
    async def get_sources(
        request: Request,
        search: Annotated[str, Query(description="Part of the name, or of the topic.")] = "",
        sort: Annotated[Sort, Query(description="What is not known comes last.")] = "name",
        order: Literal["asc", "desc"] = "asc",
        offset: Annotated[int, Query(ge=0, le=OFFSET_MAX)] = 0,
        limit: Annotated[int, Query(ge=1, le=SOURCES_MAX)] = 200,
    ) -> Response:
        """Every stream, table and view, its state and its NOW. With any parameter: a page, each in short."""
        if not request.query_params:
            return json({"sources": source_list(node)})
        asked = (search, sort, order, offset, limit)
        return await answers.of(asked, lambda: lists.page(search, sort, order == "desc", offset, limit))

    @app.get("/sources/{name:path}/records", tags=["sources"])
    async def get_source_records(
        request: Request,
        name: str,
        which: Annotated[Which, Query(description="Of its topic, or those that gave no row.")] = "newest",
        limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = 20,
    ) -> Response:
        """The newest records of a source, its late ones or its dead letters, with reasons. The operator's."""
        require_operator(operates(request), "look at records of a source")
        return json(await shown.shown(name, which, limit))

    @app.get("/sources/{name:path}", tags=["sources"])
    async def get_source(name: str) -> Response:
        """One stream, table or view: as the list has it, its partitions, its rules of time, what reads it."""
        return await answers.of(name, lambda: facts.one(name))

    @app.get("/topics", tags=["sources"])
    async def get_topics(
        request: Request,
        search: Annotated[str, Query(description="Part of the name.")] = "",
        own: Annotated[bool, Query(description="Also the broker's topics and Kafka's.")] = False,
    ) -> Response:
        """The topics of Kafka, how much is in each, and which sources read it. The operator's."""
        require_operator(operates(request), "list topics of Kafka")
        return json(await topics.listed(search, own))

    @app.post("/sources/infer", tags=["sources"])
    async def post_infer(request: Request) -> Response:
        """`{"topic", "name"?}`: a CREATE that reads the topic, guessed from its newest records and tried on
        them. `{"sql"}`: what a CREATE ... FROM TOPIC means. Nothing is created. The operator's.
        """
        require_operator(operates(request), "look at records of a topic")
        return json(await inference.propose(await request.body()))
