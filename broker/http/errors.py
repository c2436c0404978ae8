"""Errors as HTTP answers: ``{code, message, line, column, hint}`` and a status by code."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from broker.base import logs
from broker.base.entries import ON_ITS_WAY
from tureen.errors import BrokerUnavailable, InternalError, TureenError

STATUS = {
    "unknown_query": 404,
    "handle_needed": 404,
    "handle_in_use": 409,
    "name_in_use": 409,
    "source_conflict": 409,
    "summary_conflict": 409,
    "edit_conflict": 409,
    "allotment_refused": 409,
    "move_refused": 409,
    "not_allowed": 403,
    "unknown_entity": 404,
    "unknown_partition": 404,
    "plan_is_another": 409,
    "query_not_running": 409,
    "query_paused": 409,
    "instant_out_of_range": 400,
    "must_refetch": 410,
    "limit_exceeded": 413,
    "too_many_feeds": 429,
    "unauthorized": 401,
    "foreign_origin": 403,
    "request_timeout": 408,
    "unsupported_media_type": 415,
    "unknown_host": 421,
    "internal_error": 500,
    "command_failed": 500,
    "too_busy": 503,
    "too_many_connections": 503,
    "kafka_unavailable": 503,
    "broker_unavailable": 503,
    "store_full": 503,
    "memory_budget": 503,
    "shard_held": 503,
    "history_unavailable": 503,
    "archive_unreadable": 503,
    "archive_missing": 503,
    "fenced": 503,
}
"""Other codes are refusals: 400."""

LOOKED_AT_AGAIN = (
    "this is the result of the last check: it is checked again whenever a stream, a table, a view or a "
    "summary is created, so try again in a moment"
)
"""The hint of a pending query: a client that has just created the missing source may be faster than the
check.
"""

log = logs.get()


class QueryNotRunning(TureenError):
    """The handle is registered, but its query does not stand: ``state`` and ``error`` say why."""

    code = "query_not_running"

    def __init__(self, state: str, error: dict[str, Any] | None) -> None:
        self.state = state
        because = f": {error['message']}" if error else ""
        hint = error.get("hint") if error else None
        if state == "PENDING" and (error or {}).get("code") not in ON_ITS_WAY:
            hint = f"{hint}; {LOOKED_AT_AGAIN}" if hint else LOOKED_AT_AGAIN
        super().__init__(f"the query is {state}{because}", hint=hint)


class Stopping(BrokerUnavailable):
    """The broker ends while it works on a request."""

    def __init__(self) -> None:
        super().__init__(
            "the broker is stopping, and this may have been carried out or not",
            hint="try again in a second; a registration with the handle of this answer, if it has one",
        )


class BadRequest(TureenError):
    """The request itself is malformed."""

    code = "bad_request"


class NotInferred(TureenError):
    """What a topic holds does not tell a statement that reads it."""

    code = "not_inferred"

    def __init__(self, topic: str, reason: str, **facts: Any) -> None:
        self.topic = topic
        super().__init__(f"nothing is inferred from the topic {topic}: {reason}", **facts)


class Unauthorized(TureenError):
    """No token, or not the right one."""

    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__(
            "this broker requires a bearer token", hint="send the header Authorization: Bearer <token>"
        )


class UnknownHost(TureenError):
    """The Host header names a host that this broker is not known by: perhaps DNS rebinding."""

    code = "unknown_host"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"this broker is not known as {host!r}",
            hint="if this is a name of it, add it to TUREEN_HTTP_HOSTS and start the broker again",
        )


class ForeignOrigin(TureenError):
    """A browser sent this for a page that is not the broker's own."""

    code = "foreign_origin"

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"pages from elsewhere ({origin}) are not answered",
            hint="call the broker from a program, or from a server behind the page",
        )


class UnsupportedMediaType(TureenError):
    """A write whose body does not say that it is JSON."""

    code = "unsupported_media_type"

    def __init__(self, given: str, *, ndjson: bool) -> None:
        super().__init__(
            f"a body of the type {given!r} is not read" if given else "the type of the body is not given",
            hint="send the header Content-Type: application/json"
            + (", or application/x-ndjson for one JSON object a line" if ndjson else ""),
        )


class UnsupportedEncoding(TureenError):
    """A body that is compressed."""

    code = "unsupported_media_type"

    def __init__(self, given: str) -> None:
        super().__init__(
            f"a body in the encoding {given!r} is not read",
            hint="send it as it is, without the header Content-Encoding",
        )


def status_of(error: dict[str, Any]) -> int:
    """The HTTP status of an error's shape."""
    return STATUS.get(str(error.get("code")), 400)


def json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(
        orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS), status, headers, "application/json"
    )


def answer(error: TureenError) -> Response:
    """The HTTP answer that an error is."""
    status = status_of(error.as_dict())
    if isinstance(error, InternalError) and error.trace:
        log.error("answer_failed", incident=error.incident, trace=error.trace)
    headers = {"Retry-After": "1"} if status in (429, 503) else {}
    if status == 410:
        headers["Cache-Control"] = "no-store"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return json(error.as_dict(), status, headers)


def defect(route: str, method: str, error: Exception) -> Response:
    """The HTTP answer to a defect of ours, which is logged."""
    log.error("request_failed", route=route, method=method, error=repr(error), exc_info=error)
    return plain(500, "internal", "the broker failed on this request; see its log")


def plain(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    """The HTTP answer to what is no error of ours."""
    shape = {"code": code, "message": message, "line": None, "column": None, "hint": None}
    return json(shape, status, headers)


def install(app: FastAPI) -> None:
    """Give every error the one shape."""

    @app.exception_handler(TureenError)
    async def ours(_: Request, error: TureenError) -> Response:
        return answer(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "literal_error":  # of one of a few words
            expected = str(first["ctx"]["expected"]).replace("'", "")
            given = str(first["input"])[:40]
            return answer(BadRequest(f"{where} cannot be {given!r}", hint=f"one of {expected}"))
        return answer(BadRequest(f"{where}: {first['msg']}"))

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
        return plain(error.status_code, code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=400)  # nobody reads it

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        # The path may hold a handle, so the route's pattern stands for it.
        return defect(getattr(request.scope.get("route"), "path", "unknown"), request.method, error)
