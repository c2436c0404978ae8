"""Request bodies, checked field by field; what is wrong is said by name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from broker.base import options as query_options
from broker.http.errors import BadRequest
from engine.model.period import At, Period
from engine.model.query_name import NAME_OPTION
from topics.json_object import json_object
from topics.wording import FIELDS, Wording, checked_name, planned, wording_of
from tureen.errors import LimitExceeded
from tureen.protocol import Handle, new_handle

HANDLE_CHARACTERS_MIN = 22
"""128 random bits in base64; shorter ones can be guessed."""
HANDLE_CHARACTERS_MAX = 200
_HANDLE = re.compile(rf"[A-Za-z0-9_.~-]{{{HANDLE_CHARACTERS_MIN},{HANDLE_CHARACTERS_MAX}}}")


def is_handle(text: str) -> bool:
    """Whether a text has the form of a handle."""
    return _HANDLE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class RegisterRequest:
    """A registration as HTTP brings it; the handle is given, or made here and known to nobody yet."""

    wording: Wording
    handle: Handle
    options: dict[str, Any] = field(default_factory=dict)
    is_handle_ours: bool = False


def body_object(body: bytes, hint: str = 'send {"sql": "..."}') -> dict[str, Any]:
    """A body that is a JSON object. Raises BadRequest."""
    return json_object(body, "the body", BadRequest, hint)


def sql_of(fields: dict[str, Any], sql_bytes_max: int) -> str:
    """The statement. Raises BadRequest, LimitExceeded."""
    sql = fields.get("sql")
    if not isinstance(sql, str) or not sql.strip():
        raise BadRequest("sql is missing", hint='send {"sql": "SELECT ..."}')
    try:
        size = len(sql.encode("utf-8"))
    except UnicodeEncodeError:
        raise BadRequest("sql is not valid Unicode") from None
    if size > sql_bytes_max:
        raise LimitExceeded("sql_bytes_max", sql_bytes_max, size)
    return sql


def register_request(body: bytes, sql_bytes_max: int) -> RegisterRequest:
    """``{"sql", "handle"?, "name"?, "options"?}``, or ``template`` and ``parameters``, or ``plan`` in the
    place of ``sql``.

    Raises BadRequest, LimitExceeded, PlanRefused.
    """
    fields = dict(planned(body_object(body), BadRequest))
    unknown = sorted(fields.keys() - FIELDS - {"handle", "name", "options"})
    if unknown:
        hint = "the fields are sql, or template and parameters, or plan, and handle, name and options"
        raise BadRequest(f"unknown field {unknown[0]!r}", hint=hint)
    handle = fields.get("handle")
    if handle is None:
        handle = new_handle()
    elif not isinstance(handle, str) or not is_handle(handle):
        raise BadRequest(
            f"a handle has {HANDLE_CHARACTERS_MIN} to {HANDLE_CHARACTERS_MAX} characters of "
            "A-Z a-z 0-9 - _ . ~",
            hint="it is a secret: use at least 128 random bits, or leave it out and get one",
        )
    options = fields.get("options")
    if options is None:
        options = {}
    if not isinstance(options, dict):
        raise BadRequest("options is not an object")
    if fields.get("name") is not None:
        options = options | {NAME_OPTION: checked_name(fields["name"], BadRequest)}
    wording = wording_of(fields, sql_bytes_max, BadRequest)
    return RegisterRequest(
        wording, Handle(handle), query_options.given(options), fields.get("handle") is None
    )


def instant_ms(text: str | int | None, name: str = "at") -> int | None:
    """The parameter ``name``: ms since 1970, or ISO 8601, UTC where it names no zone. Raises BadRequest.

    >>> instant_ms("1970-01-01T00:00:01Z")
    1000
    """
    if text is None or isinstance(text, int):
        return text
    if re.fullmatch(r"-?\d{1,17}", text):
        return int(text)
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(
            f"{name}={text[:40]!r} is not an instant", hint="ms since 1970, or 2013-01-31T09:15:00Z"
        ) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // _MILLISECOND


def asked_at(at: str | None, from_: str | int | None, to: str | int | None) -> At:
    """What the parameters ``at``, ``from`` and ``to`` ask for. Raises BadRequest.

    >>> asked_at(None, "10", "20")
    Period(from_ms=10, to_ms=20)
    """
    from_ms, to_ms = instant_ms(from_, "from"), instant_ms(to, "to")
    if from_ms is None and to_ms is None:
        return instant_ms(at)
    if at is not None or from_ms is None:
        raise BadRequest("give at, or from and perhaps to", hint="at is an instant; a period begins at from")
    if to_ms is not None and to_ms <= from_ms:
        raise BadRequest("to is not after from", hint="to is the first instant behind the period")
    return Period(from_ms, to_ms)


def at_of(given: Any) -> At:
    """What ``at`` of a request by topic asks for: an instant, an object with ``from`` and perhaps ``to``, or
    NOW. Raises BadRequest.
    """
    if not isinstance(given, dict):
        return instant_ms(given)
    ends = [given.get("from"), given.get("to")]
    if not given.keys() <= {"from", "to"} or not all(
        one is None or isinstance(one, (int, str)) for one in ends
    ):
        raise BadRequest("at is an instant, or an object with from and perhaps to, which are instants")
    return asked_at(None, *ends)


_MILLISECOND = datetime(1970, 1, 1, 0, 0, 0, 1_000) - datetime(1970, 1, 1)
