"""The way to the broker by HTTP.

A call that can safely be made twice is made again when the connection breaks: reads, removals, and
registrations, since the client makes the handle. Any call is made again when no connection came about at
all. Handles are part of addresses here, so log lines of the HTTP library are made to hide them.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from tureen.errors import BrokerUnavailable, TureenError, UnknownQuery
from tureen.facts import QueryStatus, error_from
from tureen.protocol import SnapshotFormat
from tureen.snapshot import Reply
from tureen.transport import Progress, Publication

ATTEMPTS = 4
PAUSE_S = 0.15
"""Between attempts, doubled each time: about a second in all."""

BROKER_WAIT_S = 15.0
"""So long the broker itself waits for the outcome of a write; then it says PENDING."""

PAGE_QUERIES = 10_000
BULK_QUERIES = 5_000
BULK_CHARACTERS = 8_000_000
"""Of one NDJSON body, far below the broker's limit on its bytes."""

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_ADDRESS_HINT = "write it like http://127.0.0.1:8080"
_HANDLE_IN_PATH = re.compile(r"(/queries/)[^/?#\s\"]+")


class _HideHandles(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                _HANDLE_IN_PATH.sub(r"\1***", str(part)) if isinstance(part, str | httpx.URL) else part
                for part in record.args
            )
        return True


logging.getLogger("httpx").addFilter(_HideHandles())


class HttpTransport:
    """Implements :class:`tureen.transport.Transport`; one connection pool, safe to share among threads."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self.url = url.rstrip("/")
        try:
            host = httpx.URL(self.url).host
        except httpx.InvalidURL as error:
            raise BrokerUnavailable(f"{url!r} is not an address: {error}", hint=_ADDRESS_HINT) from None
        self._http = httpx.Client(
            base_url=self.url,
            timeout=timeout_s,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            trust_env=host not in _LOOPBACK,  # a proxy of the environment can't reach our loopback
        )

    def create(self, sql: str, wait_s: float) -> Mapping[str, Any]:
        response = self._call("POST", "/sources", again=False, timeout=wait_s, json={"sql": sql})
        made: Mapping[str, Any] = self._json(response)
        return made

    def drop(self, name: str, wait_s: float) -> None:
        self._call("DELETE", f"/sources/{quote(name, safe='')}", again=False, timeout=wait_s)

    def register(
        self, publications: Sequence[Publication], wait_s: float, progress: Progress | None = None
    ) -> list[QueryStatus]:
        if len(publications) == 1:
            try:
                return [self._register_one(publications[0], wait_s)]
            except BrokerUnavailable:
                raise
            except TureenError as error:
                return [QueryStatus("", "ERROR", publications[0].sql, error=error)]
        statuses: list[QueryStatus] = []
        for part in _bodies(publications):
            statuses += self._register_many(part, wait_s)
            if progress is not None:
                progress(len(statuses))
        return statuses

    def status(self, handle: str) -> QueryStatus:
        return QueryStatus.of(self._json(self._call("GET", _path(handle))))

    def unregister(self, handle: str) -> None:
        self._call("DELETE", _path(handle))

    def change(self, handle: str, options: Mapping[str, Any]) -> QueryStatus:
        """Options of a query that stands; the same change made again changes nothing."""
        return QueryStatus.of(self._json(self._call("PATCH", _path(handle), timeout=0, json=options)))

    def statement(self, sql: str, wait_s: float) -> Mapping[str, Any]:
        """Anything but a SELECT: a table, or what became of what was made."""
        response = self._call("POST", "/statements", again=False, timeout=wait_s, json={"sql": sql})
        answered: Mapping[str, Any] = self._json(response)
        return answered

    def plan(self, handle: str, analyze: bool) -> Mapping[str, Any]:
        """How the answer of a query comes about."""
        parameters = {"analyze": str(analyze).lower()}
        found: Mapping[str, Any] = self._json(self._call("GET", f"{_path(handle)}/plan", params=parameters))
        return found

    def match(self, source: str, lines: bytes, limit: int) -> list[Mapping[str, Any]]:
        """Records, one a line; what each of them satisfies, in order."""
        response = self._call(
            "POST",
            "/match",
            params={"source": source, "limit": limit},
            content=lines,
            headers={"Content-Type": "application/x-ndjson"},
        )
        return list(self._json(response)["matches"])

    def snapshot(self, handle: str, form: SnapshotFormat, at_ms: int | None) -> Reply:
        parameters: dict[str, str | int] = {"format": form}
        if at_ms is not None:
            parameters["at"] = at_ms
        response = self._call("GET", f"{_path(handle)}/snapshot", params=parameters)
        return Reply(
            response.content, form, {name.lower(): value for name, value in response.headers.items()}
        )

    def queries(self) -> list[Mapping[str, Any]]:
        """The public list of standing queries, page by page."""
        found: list[Mapping[str, Any]] = []
        after = ""
        while True:
            page = self._json(self._call("GET", "/queries", params={"after": after, "limit": PAGE_QUERIES}))
            found += page["queries"]
            if not page.get("next"):
                return found
            after = page["next"]

    def sources(self) -> list[Mapping[str, Any]]:
        """The streams there are."""
        return list(self._json(self._call("GET", "/sources"))["sources"])

    def service(self) -> Mapping[str, Any]:
        """The broker's figures: rates, queries, sources, shards."""
        found: Mapping[str, Any] = self._json(self._call("GET", "/status"))
        return found

    def close(self) -> None:
        self._http.close()

    def _register_one(self, publication: Publication, wait_s: float) -> QueryStatus:
        return QueryStatus.of(
            self._json(self._call("POST", "/queries", timeout=wait_s, json=_registration(publication)))
        )

    def _register_many(self, publications: Sequence[Publication], wait_s: float) -> list[QueryStatus]:
        body = "".join(json.dumps(_registration(one)) + "\n" for one in publications)
        response = self._call(
            "POST",
            "/queries",
            timeout=wait_s,
            content=body.encode(),
            headers={"Content-Type": "application/x-ndjson"},
        )
        answers = [json.loads(line) for line in response.text.splitlines() if line.strip()]
        if len(answers) != len(publications):
            raise BrokerUnavailable(
                f"the broker answered {len(answers)} of {len(publications)} registrations",
                hint="register the same handles again: what stands already is left as it is",
            )
        return [_outcome(answer) for answer in answers]

    def _call(
        self, method: str, path: str, *, again: bool = True, timeout: float | None = None, **request: Any
    ) -> httpx.Response:
        if timeout is not None:
            request["timeout"] = max(timeout, BROKER_WAIT_S) + 5.0
        pause = PAUSE_S
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS
            try:
                response = self._http.request(method, path, **request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if last:
                    raise self._unavailable(error) from None
            except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
                if last or not again:
                    raise self._unavailable(error) from None
            except httpx.TimeoutException:
                raise BrokerUnavailable(
                    f"the broker at {self.url} did not answer in time",
                    hint="is it busy? `tureen status` tells; a longer timeout may do",
                ) from None
            except (httpx.UnsupportedProtocol, httpx.InvalidURL):
                raise BrokerUnavailable(f"{self.url!r} is not an address", hint=_ADDRESS_HINT) from None
            except httpx.HTTPError as error:
                raise self._unavailable(error) from None
            else:
                if response.status_code < 400:
                    return response
                if response.status_code != 503 or last:
                    raise self._refusal(response)
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    def _unavailable(self, error: Exception) -> BrokerUnavailable:
        reason = str(error) or type(error).__name__
        return BrokerUnavailable(
            f"no broker answers at {self.url}: {reason}",
            hint="start one with `tureen serve`, or name its address by --url or TUREEN_URL",
        )

    def _refusal(self, response: httpx.Response) -> TureenError:
        try:
            message = response.json()
        except ValueError:
            message = None
        if isinstance(message, dict) and "code" in message:
            return error_from(message)
        if response.status_code == 404 and "/queries/" in response.request.url.path:
            return UnknownQuery()
        if response.status_code >= 500:
            return BrokerUnavailable(f"the broker at {self.url} failed with HTTP {response.status_code}")
        return BrokerUnavailable(
            f"{self.url} answered HTTP {response.status_code} in a way no broker does",
            hint="is it a Tureen broker that listens there?",
        )

    def _json(self, response: httpx.Response) -> Any:
        if not response.content:
            return {}
        try:
            return response.json()
        except ValueError:
            raise BrokerUnavailable(
                f"{self.url} did not answer in JSON", hint="is it a Tureen broker that listens there?"
            ) from None


def _bodies(publications: Sequence[Publication]) -> Iterator[Sequence[Publication]]:
    """Pieces that fit one body each."""
    begin = characters = 0
    for place, one in enumerate(publications):
        size = len(one.sql) + len(repr(one.parameters))
        characters += size
        if place > begin and (place - begin >= BULK_QUERIES or characters > BULK_CHARACTERS):
            yield publications[begin:place]
            begin, characters = place, size
    if begin < len(publications):
        yield publications[begin:]


def _path(handle: str) -> str:
    return f"/queries/{quote(handle, safe='')}"


def _registration(publication: Publication) -> dict[str, Any]:
    return publication.fields() | {"handle": publication.handle}


def _outcome(answer: Mapping[str, Any]) -> QueryStatus:
    """A line of a bulk answer: a registration, or an error by itself."""
    if "code" in answer and "state" not in answer:
        answer = {"state": "ERROR", "error": answer}
    return QueryStatus.of(answer)
