"""The end of queries: one by its handle or id, many, all that read a source."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.base.internal import Outcome
from broker.base.settings import Settings
from broker.http.errors import BadRequest
from broker.http.named import known
from broker.http.requests import body_object
from broker.http.writes import Answer, Writes
from broker.node.directory import Directory
from broker.node.node import Node
from broker.node.waiters import Origin
from broker.runtime.publisher import Publisher
from tureen.errors import HandleNeeded, TureenError, UnknownQuery, UnknownSource

AT_ONCE = 2_000
"""Queries of one request that end together: others are answered in between."""

_HINT = 'send {"queries": ["handle or id", ...]}, or {"source": "name"} for all that read it'


@dataclass(frozen=True, slots=True)
class EndRequest:
    """queries: handles, or ids; or source: the stream, table or view whose readers end."""

    queries: tuple[str, ...] = ()
    source: str | None = None


def end_request(body: bytes, queries_max: int) -> EndRequest:
    """``{"queries": [...]}`` or ``{"source": name}``. Raises BadRequest."""
    fields = body_object(body, hint=_HINT)
    if fields.keys() == {"source"} and isinstance(fields["source"], str):
        return EndRequest(source=fields["source"])
    queries = fields.get("queries")
    if fields.keys() != {"queries"} or not isinstance(queries, list) or len(queries) > queries_max:
        raise BadRequest("this does not say which queries end", hint=_HINT)
    if not all(isinstance(one, str) for one in queries):
        raise BadRequest("a handle or an id is text", hint=_HINT)
    return EndRequest(tuple(queries))


def readers(directory: Directory, name: str) -> list[str]:
    """The ids of the queries that read a source or a view, directly or through views, sorted. O(queries)."""
    return sorted(
        query_id
        for query_id, entry in directory.queries.items()
        if name in entry.sources or name in entry.uses
    )


class Endings:
    """Ends queries by way of their topic."""

    def __init__(self, settings: Settings, node: Node, writes: Writes, publisher: Publisher) -> None:
        self._settings = settings
        self._node = node
        self._writes = writes
        self._publisher = publisher

    async def one(self, given: str, operator: bool) -> Answer:
        """Raises UnknownQuery, HandleNeeded, KafkaUnavailable."""
        return await self._writes.unregister(known(self._node, given, operator))

    async def many(self, request: EndRequest, operator: bool) -> Answer:
        """(status, which ended). Raises UnknownSource; HandleNeeded where somebody else than the operator
        names a source.
        """
        if request.source is not None:
            return await self._all_of(request.source, operator)
        found: list[str] = []
        unknown: list[dict[str, Any]] = []
        for place, given in enumerate(request.queries):
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                found.append(known(self._node, given, operator, compared=False))
            except (UnknownQuery, HandleNeeded) as refused:
                unknown.append({"place": place, "error": refused.as_dict()})
        status, answer = await self._answer(found)
        return status, answer | {"unknown": unknown}

    async def _all_of(self, source: str, operator: bool) -> Answer:
        directory = self._node.directory
        found = readers(directory, source)
        if not found and source not in directory.catalogue:
            raise UnknownSource(source)
        if found and not operator:
            raise HandleNeeded(found[0])
        return await self._answer(found)

    async def _answer(self, names: Sequence[str]) -> Answer:
        pending = await self.end(names)
        ended = [name for name in dict.fromkeys(names) if name not in pending]
        body = {"state": "PENDING" if pending else "GONE", "ended": ended, "pending": sorted(pending)}
        return (202 if pending else 200), body

    async def end(self, names: Iterable[str]) -> set[str]:
        """Write their removals and wait for them; those whose outcome is not known yet.

        Raises KafkaUnavailable where one could not be written; repeating it is safe.
        """
        ids = list(dict.fromkeys(names))
        outcomes: list[Outcome | None] = []
        end_s = time.monotonic() + self._settings.outcome_wait_ms / 1_000
        for start in range(0, len(ids), AT_ONCE):
            with self._node.waiters.expecting():
                origins = await self._removed(ids[start : start + AT_ONCE])
                left_s = max(end_s - time.monotonic(), 0.0)
                outcomes += await self._node.waiters.outcomes(origins, left_s)
        told = await self._writes.soon(ids, outcomes)
        return {
            name
            for name, outcome in zip(ids, told, strict=True)
            if not isinstance(outcome, dict) or outcome["state"] != "GONE"
        }

    async def _removed(self, ids: Sequence[str]) -> list[Origin]:
        """Write their removals; where each stands. Raises KafkaUnavailable."""
        places = await self._publisher.publish_many(
            self._settings.names.queries, [(one, None) for one in ids]
        )
        origins = []
        for place in places:
            if isinstance(place, TureenError):
                raise place
            origins.append(place)
        return origins
