"""What modules of routes share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from broker.http.errors import json
from broker.http.writes import Answer

Operates = Callable[[Request], bool]
"""Whether a request comes from the operator."""
DryRun = Annotated[
    bool, Query(description="Check everything, do nothing; answers what would be set, and what that does.")
]
LIST_MAX = 10_000


async def told(write: Awaitable[Answer]) -> Response:
    """The outcome of a write, with its status."""
    code, body = await write
    return json(body, code)
