"""Routes of statements: run, checked, and what the language has."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import Response

from broker.base.settings import Settings
from broker.http.errors import json
from broker.http.language import checked, language_of
from broker.http.rights import Tokens
from broker.http.routing import Operates, told
from broker.http.statements import Statements
from broker.node.node import Node


def add_statement_routes(
    app: FastAPI, settings: Settings, node: Node, operates: Operates, tokens: Tokens, statements: Statements
) -> None:
    """Add them to the application."""

    @app.post("/statements", tags=["statements"])
    async def post_statement(request: Request) -> Response:
        """Anything but a SELECT: SHOW, DESCRIBE, EXPLAIN, PAUSE, RESUME, TERMINATE, ALTER, CREATE, DROP."""
        only_reads = tokens.reads(request.scope)
        return await told(statements.run(await request.body(), operates(request), only_reads))

    @app.post("/statements/check", tags=["statements"])
    async def post_check(request: Request) -> Response:
        """What a statement means, and the plan of a SELECT: `{"sql"}`, or `{"template", "parameters"}`.
        Nothing is done.
        """
        of_rows = not tokens.reads(request.scope)
        return json(await checked(node, await request.body(), settings.sql_bytes_max, of_rows=of_rows))

    @app.get("/language", tags=["statements"])
    async def get_language() -> Response:
        """Keywords, statements, functions, types, windows, and options with their values."""
        return json(language_of(node))
