"""What is asked of ``GET /queries/{handle}/changes``, checked parameter by parameter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, cast
from urllib.parse import parse_qsl, unquote

from starlette.types import Scope

from broker.feeds.lines import Form
from broker.http.errors import BadRequest

WAIT_MS_DEFAULT = 30_000
WAIT_MS_MAX = 60_000
"""Many proxies cut what is silent for longer."""

Mode = Literal["live", "once", "poll"]
_PARAMETERS = ("since", "live", "wait_ms", "format")
_MODES: dict[str, Mode] = {"true": "live", "false": "once", "poll": "poll"}
_PATH = re.compile(r"/queries/([^/]+)/changes")


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """since: the change position after which to go on; None: begin with the answer. mode: go on for ever,
    end with what there is, or answer once there is something. wait_ms: of a poll.
    """

    query_id: str
    since: str | None
    mode: Mode
    form: Form
    wait_ms: int


def feed_handle(scope: Scope) -> str | None:
    """The handle, where a request is for a feed."""
    found = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
    return None if found is None else found[1]


def feed_request(scope: Scope, query_id: str) -> FeedRequest:
    """query_id: the query asked for. Raises BadRequest."""
    given = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    headers = dict(scope["headers"])
    for name in given:
        if name not in _PARAMETERS:
            near = get_close_matches(name, _PARAMETERS, 1)
            raise BadRequest(
                f"there is no parameter {name[:40]!r}",
                hint=f"perhaps {near[0]}" if near else f"there are {', '.join(_PARAMETERS)}",
            )
    mode = _MODES.get(given.get("live", "true"))
    if mode is None:
        raise BadRequest(f"live cannot be {given['live'][:40]!r}", hint="one of true, false or poll")
    wait = given.get("wait_ms", str(WAIT_MS_DEFAULT))
    if not re.fullmatch(r"\d{1,6}", wait, re.ASCII) or int(wait) > WAIT_MS_MAX:
        raise BadRequest(f"wait_ms is 0 to {WAIT_MS_MAX}")
    accepts = headers.get(b"accept", b"").lower()
    form = given.get("format", "sse" if b"text/event-stream" in accepts else "ndjson")
    if form not in ("ndjson", "sse"):
        raise BadRequest(f"format cannot be {form[:40]!r}", hint="one of ndjson or sse")
    last = headers.get(b"last-event-id")
    since = given.get("since") if last is None else unquote(last.decode("latin-1"))
    return FeedRequest(query_id, since, mode, cast("Form", form), int(wait))
