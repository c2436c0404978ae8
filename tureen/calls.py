"""What can be asked of a broker over HTTP: each call as a talk, from arguments to typed results.

Nothing here sends or waits (:mod:`tureen.exchange` says who does), so the blocking and the asynchronous
client say the same and read the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, Unpack
from urllib.parse import quote

import httpx

from tureen.answers import EndedQueries, Listing, Matches, Promised
from tureen.errors import BrokerUnavailable, TureenError, UnknownEntity, UnknownQuery
from tureen.exchange import Request, Talk, ask, json_of
from tureen.facts import QueryStatus, Source
from tureen.period import Period
from tureen.protocol import SnapshotFormat
from tureen.snapshot import Reply
from tureen.transport import Progress, Publication

Record = Mapping[str, Any] | str | bytes
"""A JSON object, as such or as text."""

PAGE_QUERIES = 10_000
BULK_QUERIES = 5_000
BULK_CHARACTERS = 8_000_000
"""Most characters of one NDJSON body, far below the broker's limit on its bytes."""

_NDJSON = {"Content-Type": "application/x-ndjson"}


def create(sql: str, wait_s: float) -> Talk[Source]:
    """POST /sources."""
    body = {"json": {"sql": sql}}
    return ask(Request("POST", "/sources", _source, body=body, again=False, wait_s=wait_s))


def drop(name: str, cascade: bool, wait_s: float) -> Talk[Mapping[str, Any]]:
    """DELETE /sources/{name}."""
    path = f"/sources/{quote(name, safe='')}"
    params = {"cascade": "true"} if cascade else {}
    return ask(Request("DELETE", path, json_of, params, again=False, wait_s=wait_s))


def heartbeat(source: str, ms: int, partition: int | None) -> Talk[Promised]:
    """POST /sources/{name}/heartbeat."""
    path = f"/sources/{quote(source, safe='')}/heartbeat"
    return ask(Request("POST", path, _promised, body={"json": {"partition": partition, "ms": ms}}))


def register(
    publications: Sequence[Publication], wait_s: float, progress: Progress | None = None
) -> Talk[list[QueryStatus]]:
    """POST /queries, of many in pieces; a refusal is a status ERROR."""
    if len(publications) == 1:
        (one,) = publications
        body: dict[str, Any] = {"json": _registration(one)}
        try:
            status: QueryStatus = yield Request("POST", "/queries", _status, body=body, wait_s=wait_s)
        except BrokerUnavailable:
            raise
        except TureenError as error:
            status = QueryStatus("", "ERROR", one.sql, error=error)
        return [status]
    statuses: list[QueryStatus] = []
    known = 0

    def heard(lines: int) -> None:
        nonlocal known
        if progress is not None and len(statuses) + lines > known:
            known = len(statuses) + lines
            progress(known)

    for part in bodies(publications):
        lines = "".join(json.dumps(_registration(one)) + "\n" for one in part)
        body = {"content": lines.encode(), "headers": _NDJSON}
        told: list[QueryStatus] = yield Request(
            "POST", "/queries", _outcomes, body=body, wait_s=wait_s, heard=heard if progress else None
        )
        if len(told) != len(part):
            raise BrokerUnavailable(
                f"the broker answered {len(told)} of {len(part)} registrations",
                hint="register the same handles again: those already registered are left as they are",
            )
        statuses += told
        heard(0)
    return statuses


def status(handle: str) -> Talk[QueryStatus]:
    """GET /queries/{handle}."""
    return ask(Request("GET", query_path(handle), _status))


def unregister(handle: str) -> Talk[None]:
    """DELETE /queries/{handle}."""
    return ask(Request("DELETE", query_path(handle), _nothing))


def unregister_many(given: Sequence[str]) -> Talk[EndedQueries]:
    """POST /queries/unregister: handles, or for the operator ids."""
    body = {"json": {"queries": list(given)}}
    return ask(Request("POST", "/queries/unregister", _ended, body=body, again=False))


def unregister_all_of(source: str) -> Talk[EndedQueries]:
    """POST /queries/unregister: all that read a source."""
    body = {"json": {"source": source}}
    return ask(Request("POST", "/queries/unregister", _ended, body=body, again=False))


def alter(publication: Publication, wait_s: float) -> Talk[QueryStatus]:
    """PATCH /queries/{handle} with another text."""
    fields = publication.fields()
    body = {"json": fields | fields.pop("options", {})}
    return ask(
        Request("PATCH", query_path(publication.handle), _status, body=body, again=False, wait_s=wait_s)
    )


class ChangedOptions(TypedDict, total=False):
    """Options of a query that can be changed while it runs; one that is None stays as it is.

    One field an option, as the request has them.
    """

    paused: bool | None
    release: bool | None
    maintenance: str | None
    weight: float | None
    max_fp: float | None
    max_fn: float | None
    max_error: float | None
    latency_ms_max: int | None
    strategy: str | None
    structure: str | None
    partitions: int | str | None
    fade: float | None
    priority: str | None


def change(handle: str, **options: Unpack[ChangedOptions]) -> Talk[QueryStatus]:
    """PATCH /queries/{handle} with those that are not None; the same change made again changes nothing."""
    body = {"json": {name: value for name, value in options.items() if value is not None}}
    return ask(Request("PATCH", query_path(handle), _status, body=body, wait_s=0))


def retry() -> Talk[list[int]]:
    """POST /retry; again changes nothing."""
    return ask(Request("POST", "/retry", _shards, wait_s=0))


def execute(sql: str, wait_s: float) -> Talk[Listing]:
    """POST /statements: anything but a SELECT."""
    body = {"json": {"sql": sql}}
    return ask(Request("POST", "/statements", _listing, body=body, again=False, wait_s=wait_s))


def plan(handle: str, analyze: bool) -> Talk[Mapping[str, Any]]:
    """GET /queries/{handle}/plan."""
    return ask(Request("GET", f"{query_path(handle)}/plan", json_of, {"analyze": str(analyze).lower()}))


def difference(
    handle: str, from_ms: int, to_ms: int | None, archive: bool | None, limit: int
) -> Talk[dict[str, Any]]:
    """GET /queries/{handle}/difference."""
    params: dict[str, Any] = {"from": from_ms, "limit": limit}
    if to_ms is not None:
        params["to"] = to_ms
    if archive is not None:
        params["archive"] = str(archive).lower()
    return ask(Request("GET", f"{query_path(handle)}/difference", json_of, params))


def proposals(handle: str) -> Talk[list[dict[str, Any]]]:
    """GET /queries/{handle}/proposals."""
    return ask(Request("GET", f"{query_path(handle)}/proposals", lambda answer: json_of(answer)["proposals"]))


def entities(kind: str | None, query: str | None) -> Talk[list[dict[str, Any]]]:
    """GET /entities, page by page."""
    found: list[dict[str, Any]] = []
    wanted = {name: value for name, value in (("kind", kind), ("query", query)) if value is not None}
    after = ""
    while True:
        page = yield Request("GET", "/entities", json_of, {**wanted, "after": after, "limit": PAGE_QUERIES})
        found += page["entities"]
        if not page.get("next"):
            return found
        after = page["next"]


def entity(id_: str) -> Talk[Mapping[str, Any]]:
    """GET /entities/{id}."""
    return ask(Request("GET", _entity_path(id_), json_of))


def set_entity(id_: str, values: Mapping[str, Any], if_version: int | None) -> Talk[Mapping[str, Any]]:
    """PATCH /entities/{id}; not said again where the version is to be that of before."""
    body = {"json": dict(values) | ({} if if_version is None else {"if_version": if_version})}
    return ask(Request("PATCH", _entity_path(id_), json_of, body=body, again=if_version is None, wait_s=0))


def plan_file(handle: str) -> Talk[dict[str, Any]]:
    """GET /plans/{handle}."""
    return ask(Request("GET", query_path(handle, "plans"), json_of))


def validate_plan(plan: Mapping[str, Any]) -> Talk[dict[str, Any]]:
    """POST /plans/validate."""
    return ask(Request("POST", "/plans/validate", json_of, body={"json": {"plan": plan}}))


def apply_plan(handle: str, plan: Mapping[str, Any]) -> Talk[QueryStatus]:
    """PUT /plans/{handle}; again changes nothing."""
    body = {"json": {"plan": plan}}
    return ask(Request("PUT", query_path(handle, "plans"), _status, body=body, wait_s=0))


def register_plan(handle: str, plan: Mapping[str, Any], wait_s: float) -> Talk[QueryStatus]:
    """POST /queries with a plan."""
    body = {"json": {"plan": plan, "handle": handle}}
    return ask(Request("POST", "/queries", _status, body=body, wait_s=wait_s))


def match(source: str, records: Record | Iterable[Record], limit: int) -> Talk[list[Matches]]:
    """POST /match, records one a line; none need no asking."""
    several = [records] if isinstance(records, Mapping | str | bytes) else records
    lines = b"".join(_line(record) for record in several)
    if not lines:
        return []
    body = {"content": lines, "headers": _NDJSON}
    found: list[Matches] = yield Request(
        "POST", "/match", _matches, {"source": source, "limit": limit}, body=body
    )
    return found


def trace(source: str, partition: int, offset: int, limit: int) -> Talk[Mapping[str, Any]]:
    """GET /trace."""
    asked: dict[str, str | int] = {"source": source, "partition": partition, "offset": offset, "limit": limit}
    return ask(Request("GET", "/trace", json_of, asked))


def snapshot(
    handle: str,
    form: SnapshotFormat,
    at: int | Period | None,
    archive: bool | None = None,
) -> Talk[Reply]:
    """GET /queries/{handle}/snapshot."""
    params: dict[str, str | int] = {"format": form}
    if isinstance(at, Period):
        params |= at.as_dict()
    elif at is not None:
        params["at"] = at
    if archive is not None:
        params["archive"] = str(archive).lower()

    def read(response: httpx.Response) -> Reply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.content, form, headers)

    return ask(Request("GET", f"{query_path(handle)}/snapshot", read, params))


def queries() -> Talk[list[QueryStatus]]:
    """GET /queries, page by page."""
    found: list[QueryStatus] = []
    after = ""
    while True:
        page = yield Request("GET", "/queries", json_of, {"after": after, "limit": PAGE_QUERIES})
        found += [QueryStatus.of(one) for one in page["queries"]]
        if not page.get("next"):
            return found
        after = page["next"]


def sources() -> Talk[list[Source]]:
    """GET /sources."""
    return ask(Request("GET", "/sources", _sources))


def infer(topic: str | None, name: str | None, sql: str | None) -> Talk[dict[str, Any]]:
    """POST /sources/infer."""
    given = {"topic": topic, "name": name, "sql": sql}
    fields = {field: value for field, value in given.items() if value is not None}
    return ask(Request("POST", "/sources/infer", json_of, body={"json": fields}))


def summaries() -> Talk[list[dict[str, Any]]]:
    """GET /summaries."""
    return ask(Request("GET", "/summaries", _summaries))


def summary(name: str) -> Talk[dict[str, Any]]:
    """GET /summaries/{name}."""
    return ask(Request("GET", f"/summaries/{quote(name, safe='')}", json_of))


def service() -> Talk[Mapping[str, Any]]:
    """GET /status."""
    return ask(Request("GET", "/status", json_of))


# --- what is sent ---------------------------------------------------------------------------------


def bodies(publications: Sequence[Publication]) -> Iterator[Sequence[Publication]]:
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


def _entity_path(id_: str) -> str:
    if not set(id_.split("/")).isdisjoint({"", ".", ".."}):
        raise UnknownEntity(id_)
    return f"/entities/{quote(id_, safe='/')}"


def query_path(handle: str, among: str = "queries") -> str:
    """The path of a query, or of its plan file. Raises UnknownQuery where the handle, or id, would make it
    another path.
    """
    if not handle or "/" in handle or handle in (".", ".."):
        raise UnknownQuery(hint="a handle has 22 to 200 characters of A-Z a-z 0-9 - _ . ~")
    return f"/{among}/{quote(handle, safe='')}"


def _registration(publication: Publication) -> dict[str, Any]:
    return publication.fields() | {"handle": publication.handle}


def _line(record: Mapping[str, Any] | str | bytes) -> bytes:
    """A record on a line of its own; JSON has no bare line break within a value."""
    if isinstance(record, Mapping):
        return json.dumps(record).encode() + b"\n"
    data = record.encode() if isinstance(record, str) else record
    return b" ".join(data.splitlines()) + b"\n"


# --- what is read ---------------------------------------------------------------------------------


def _nothing(_: httpx.Response) -> None:
    """Done is all that is told."""


def _shards(response: httpx.Response) -> list[int]:
    return list(json_of(response)["shards"])


def _status(response: httpx.Response) -> QueryStatus:
    return QueryStatus.of(json_of(response))


def _promised(response: httpx.Response) -> Promised:
    return Promised.of(json_of(response))


def _ended(response: httpx.Response) -> EndedQueries:
    return EndedQueries.of(json_of(response))


def _source(response: httpx.Response) -> Source:
    return Source.of(json_of(response))


def _sources(response: httpx.Response) -> list[Source]:
    return [Source.of(one) for one in json_of(response)["sources"]]


def _summaries(response: httpx.Response) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json_of(response)["summaries"]
    return found


def _listing(response: httpx.Response) -> Listing:
    return Listing.of(json_of(response))


def _matches(response: httpx.Response) -> list[Matches]:
    return [Matches.of(one) for one in json_of(response)["matches"]]


def _outcomes(response: httpx.Response) -> list[QueryStatus]:
    return [_outcome(json.loads(line)) for line in response.text.splitlines() if line.strip()]


def _outcome(answer: Mapping[str, Any]) -> QueryStatus:
    """A line of a bulk answer: a registration, or an error by itself."""
    if "code" in answer and "state" not in answer:
        answer = {"state": "ERROR", "error": answer}
    return QueryStatus.of(answer)
