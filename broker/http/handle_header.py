"""The header ``Tureen-Handle``: a handle beside the public id of its query, so that no address has a secret.

``GET /queries/{id}/snapshot`` with the header is as ``GET /queries/{handle}/snapshot`` without it, and so is
every other path, and the parameter ``query``, that names one query, by its id or its name. It is checked in
one place, behind the guard and ahead of everything that answers, and nothing behind it knows of the header. A
handle that is not of this query is answered as a query that is not there. Plain ASGI; a request without the
header costs one look at its headers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, quote, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from broker.http.errors import answer
from broker.http.requests import is_handle
from tureen.errors import UnknownQuery
from tureen.protocol import query_id

HEADER = b"tureen-handle"
HINT = "the handle of the header Tureen-Handle opens no query with the id of the path"

_PATH = re.compile(r"(/queries/|/plans/|/entities/query/)(?!(?:unregister|schema|validate)$)([^/]+)(/.*)?")
_BY_PARAMETER = ("/entities", "/entities/events")
_PARAMETER = "query"


def presented(scope: Scope, id_of: Callable[[str], str | None]) -> Scope:
    """The request with the handle of its header in the place of the query's id; without one, itself.

    id_of: the id of the query that has a name. A request that names no single query stays as it is. Raises
    UnknownQuery: the handle is not of this query.
    """
    given = [value for name, value in scope["headers"] if name == HEADER]
    if not given:
        return scope
    handle = given[0].decode("latin-1")
    named = _PATH.fullmatch(scope["path"])
    if named is not None:
        _require(len(given) == 1 and is_handle(handle) and query_id(handle) in (named[2], id_of(named[2])))
        path = f"{named[1]}{handle}{named[3] or ''}"
        return {**scope, "path": path, "raw_path": quote(path).encode()}
    if scope["path"] in _BY_PARAMETER:
        parameters = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        ids = [value for name, value in parameters if name == _PARAMETER]
        if ids:
            _require(
                len(given) == len(ids) == 1
                and is_handle(handle)
                and query_id(handle) in (ids[0], id_of(ids[0]))
            )
            changed = [(name, handle if name == _PARAMETER else value) for name, value in parameters]
            return {**scope, "query_string": urlencode(changed).encode()}
    return scope


def _require(is_of_query: bool) -> None:
    if not is_of_query:
        raise UnknownQuery(hint=HINT)


class HandleHeader:
    """Passes requests on as :func:`presented` has them."""

    def __init__(self, app: ASGIApp, id_of: Callable[[str], str | None]) -> None:
        """id_of: the id of the query that has a name."""
        self._app = app
        self._id_of = id_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                scope = presented(scope, self._id_of)
            except UnknownQuery as refused:
                await answer(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)
