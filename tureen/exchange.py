"""How a client talks with a broker over HTTP, without any input or output.

A :class:`Request` is a value: what to send, and how to read the reply. A *talk* is a generator that yields
requests and is given what was read; what it returns is the result. :func:`steps` makes of it what a
connection carries out, blocking or not, which does no more than to send and to wait:

    steps                             connection
    yields Request     ------------>  sends it
                       <------------  the response, or httpx.HTTPError thrown in
    yields Pause       ------------>  waits
    returns, or raises TureenError

A request that can safely be made twice is made again when the connection breaks: reads, removals, and
registrations, since the client makes the handle. Any is made again when no connection came about at all, or
when the broker is not ready.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx

from tureen.errors import (
    BrokerUnavailable,
    KafkaUnavailable,
    SettingsError,
    TureenError,
    UnknownQuery,
    ValueRefused,
)
from tureen.facts import error_from
from tureen.protocol import TOKEN_TEXT, is_token

ATTEMPTS = 4
PAUSE_S = 0.15
"""Seconds between attempts, doubled each time: about a second in all."""

BROKER_WAIT_S = 15.0
"""How long the broker itself waits for the outcome of a write; then it says PENDING."""

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_ADDRESS_HINT = "write it like http://127.0.0.1:8080"
_HANDLE_IN_PATH = re.compile(r"(/queries/)[^/?#\s\"]+")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Request(Generic[Result]):
    """One call of the broker.

    read: makes the result of a response that is no refusal. again: whether it may be sent twice.
    wait_s: how long the broker may take, None for the client's own patience.
    body: what httpx takes: ``json``, or ``content`` and ``headers``.
    heard: told, while a response of lines comes, how many of them have come.
    """

    method: str
    path: str
    read: Callable[[httpx.Response], Result]
    params: Mapping[str, str | int] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    again: bool = True
    wait_s: float | None = None
    heard: Callable[[int], None] | None = None

    def arguments(self) -> dict[str, Any]:
        """What ``httpx.Client.request`` takes besides method and path."""
        found: dict[str, Any] = dict(self.body)
        if "json" in found:
            found["content"] = _as_json(found.pop("json"))
            found["headers"] = {**found.get("headers", {}), "Content-Type": "application/json"}
        if self.params:
            found["params"] = dict(self.params)
        if self.wait_s is not None:
            found["timeout"] = max(self.wait_s, BROKER_WAIT_S) + 5.0
        return found


def _as_json(value: Any) -> bytes:
    """Raises ValueRefused: it has NaN, infinity, or a text that is no Unicode."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise ValueRefused("it cannot be sent as JSON: a text in it is not valid Unicode") from error
    except ValueError as error:
        raise ValueRefused(f"it cannot be sent as JSON: {error}") from error


class Heard:
    """A response of lines as it comes. heard: told how many lines have come, after each piece."""

    def __init__(self, reply: httpx.Response, heard: Callable[[int], None]) -> None:
        self._reply = reply
        self._heard = heard
        self._content = bytearray()
        self._lines = 0

    def take(self, piece: bytes) -> None:
        self._content += piece
        lines = piece.count(b"\n")
        if lines and self._reply.status_code < 400:
            self._lines += lines
            self._heard(self._lines)

    def response(self) -> httpx.Response:
        """The whole, once it has come."""
        reply, kind = self._reply, self._reply.headers.get("Content-Type")
        headers = {"Content-Type": kind} if kind else None
        return httpx.Response(
            reply.status_code, headers=headers, content=bytes(self._content), request=reply.request
        )


@dataclass(frozen=True, slots=True)
class Pause:
    """The talk goes on after ``seconds``."""

    seconds: float


Talk = Generator[Request[Any] | Pause, Any, Result]
Steps = Generator[Request[Any] | Pause, httpx.Response | None, Result]


def ask(request: Request[Result]) -> Talk[Result]:
    """The talk of one request."""
    result: Result = yield request
    return result


def steps(talk: Talk[Result], address: str) -> Steps[Result]:
    """What a connection to this address has to do for a talk. Raises what the talk does not catch."""
    try:
        request = next(talk)
        while True:
            if isinstance(request, Pause):
                yield request
                request = talk.send(None)
                continue
            try:
                result = yield from _asked(request, address)
            except TureenError as error:
                request = talk.throw(error)
            else:
                request = talk.send(result)
    except StopIteration as done:
        found: Result = done.value
        return found


def _asked(request: Request[Result], address: str) -> Steps[Result]:
    """Send a request until it is answered, and read the reply. Raises what the broker answered with,
    BrokerUnavailable."""
    pause_s = PAUSE_S
    for attempt in range(1, ATTEMPTS + 1):
        last = attempt == ATTEMPTS
        try:
            response = yield request
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            if last:
                raise unavailable(error, address) from None
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            if last or not request.again:
                raise unavailable(error, address) from None
        except httpx.TimeoutException:
            raise BrokerUnavailable(
                f"the broker at {address} did not answer in time",
                hint="it may be busy: `tureen status` shows; try a longer timeout",
            ) from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise BrokerUnavailable(f"{address!r} is not an address", hint=_ADDRESS_HINT) from None
        except httpx.HTTPError as error:
            raise unavailable(error, address) from None
        else:
            assert response is not None, "a request is answered by a response"
            if response.status_code < 400:
                return request.read(response)
            refused = refusal(response, address)
            # The broker has waited for Kafka already, and said what may have become of it.
            if response.status_code != 503 or last or isinstance(refused, KafkaUnavailable):
                raise refused
        yield Pause(pause_s)
        pause_s *= 2
    raise AssertionError("the last attempt returns or raises")


def json_of(response: httpx.Response) -> Any:
    """What a response says; an empty one says nothing. Raises BrokerUnavailable for what is no JSON."""
    if not response.content:
        return {}
    try:
        return response.json()
    except ValueError:
        raise BrokerUnavailable(
            "what answered was not JSON", hint="is a Tureen broker running there?"
        ) from None


def settings(address: str, token: str | None, timeout_s: float) -> dict[str, Any]:
    """What ``httpx.Client`` and ``httpx.AsyncClient`` are made of. Raises BrokerUnavailable for an address,
    SettingsError for a token that will not do.
    """
    if token and not is_token(token):
        raise SettingsError(TOKEN_TEXT, hint="give the broker's, with --token or TUREEN_HTTP_TOKEN")
    try:
        host = httpx.URL(address).host
    except httpx.InvalidURL as error:
        raise BrokerUnavailable(f"{address!r} is not an address: {error}", hint=_ADDRESS_HINT) from None
    return {
        "base_url": address,
        "timeout": timeout_s,
        "limits": httpx.Limits(max_connections=None),  # one for each query that is followed
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
        "trust_env": host not in _LOOPBACK,  # a proxy of the environment can't reach our loopback
    }


def unavailable(error: Exception, address: str) -> BrokerUnavailable:
    """What a broken connection is told as."""
    return BrokerUnavailable(
        f"no broker answers at {address}: {str(error) or type(error).__name__}",
        hint="start `tureen serve` and wait for its Ready, or give the address with --url or TUREEN_URL",
    )


def refusal(response: httpx.Response, address: str) -> TureenError:
    """The error that a response of 400 and above names; its body was read."""
    try:
        message = response.json()
    except ValueError:
        message = None
    if isinstance(message, dict) and "code" in message:
        return error_from(message)
    if response.status_code == 404 and "/queries/" in response.request.url.path:
        return UnknownQuery()
    if response.status_code >= 500:
        return BrokerUnavailable(f"the broker at {address} failed with HTTP {response.status_code}")
    return BrokerUnavailable(
        f"{address} answered HTTP {response.status_code} which is not a broker's response",
        hint="is a Tureen broker running there?",
    )


class _HideHandles(logging.Filter):
    """Handles are part of addresses, so the log lines of the HTTP library are made to hide them."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                _HANDLE_IN_PATH.sub(r"\1***", str(part)) if isinstance(part, str | httpx.URL) else part
                for part in record.args
            )
        return True


logging.getLogger("httpx").addFilter(_HideHandles())
