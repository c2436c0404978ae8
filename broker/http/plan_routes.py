"""Routes of plans: of a query, cheaper ones for it, and plans as files."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from broker.http.errors import json
from broker.http.named import named
from broker.http.plan_files import PlanFiles
from broker.http.plans import plan_of, proposals_of
from broker.http.routing import DryRun, Operates, told
from broker.node.node import Node
from tureen.plan_files.schema import schema as plan_schema


def add_plan_routes(app: FastAPI, node: Node, operates: Operates, plan_files: PlanFiles) -> None:
    """Add them to the application."""

    @app.get("/queries/{handle}/plan", tags=["queries"])
    async def get_plan(
        request: Request,
        handle: str,
        analyze: Annotated[bool, Query(description="Evaluate it once, and measure each operator.")] = False,
    ) -> Response:
        """How the answer comes about: operators, sharing, maintenance, costs."""
        return json(await plan_of(node, named(node, handle, operates(request)), analyze))

    @app.get("/queries/{handle}/proposals", tags=["queries"])
    async def get_proposals(request: Request, handle: str) -> Response:
        """Other texts for the query that use fewer resources, with what each saves and costs. PATCH the query
        with the text of one to approve it.
        """
        name = named(node, handle, operates(request))
        return json({"proposals": await proposals_of(node, name)})

    @app.get("/plans/schema", tags=["plans"])
    async def get_plan_schema() -> Response:
        """The JSON Schema of plans."""
        return json(plan_schema())

    @app.post("/plans/validate", tags=["plans"])
    async def post_plan(request: Request) -> Response:
        """Check `{"plan"}`: its text in SQL, its columns, and the plan as it is exported."""
        return json(await plan_files.validated(await request.body()))

    @app.get("/plans/{handle}", tags=["plans"])
    async def get_plan_file(handle: str) -> Response:
        """The plan of a query, as a file has it, by its handle or id."""
        return json(await plan_files.exported(handle))

    @app.put("/plans/{handle}", tags=["plans"])
    async def put_plan_file(handle: str, request: Request, dry_run: DryRun = False) -> Response:
        """Apply `{"plan"}` to a query that runs: its options, and attributes of what it shares."""
        if dry_run:
            return json(await plan_files.dry_run(handle, await request.body(), operates(request)))
        return await told(plan_files.apply(handle, await request.body(), operates(request)))
