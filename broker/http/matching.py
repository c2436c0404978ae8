"""POST /match: which standing queries a record satisfies.

A record is decoded by the stream's own codec, as if it came on its topic now, and given to a matcher of its
own (:mod:`engine.queries.matching`), so that data never waits for a question: the predicates decide, windows
and stages above them do not. Ids are public; those that are told for each record are limited, the total is
not.

The first question about a stream builds the matcher: a tenth of a millisecond or so a query.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from broker.base.entries import SourceEntry
from broker.http.errors import BadRequest
from broker.node.node import Node
from engine.model.batch import Batch
from engine.model.interruption import may_go_on
from engine.queries.matching import RecordMatcher, Satisfied
from engine.stems.query_stem import QueryStem
from topics.codec import decode
from tureen.errors import LimitExceeded, TureenError, UnknownSource

RECORDS_MAX = 8_192
ROWS_AT_ONCE = 256
"""With 100,000 predicates so many rows take a few MB of bits."""
QUERIES_DEFAULT = 1_000
QUERIES_MAX = 100_000
_HINT = 'send {"source": "...", "record": {...}} or {"source": "...", "records": [...]}'


class BadRecord(TureenError):
    """A record that the stream's codec refuses."""

    code = "bad_record"


@dataclass(frozen=True, slots=True)
class MatchRequest:
    """Records of a stream, one JSON object each. single: there is one, and its refusal is the answer's."""

    source: str
    records: list[bytes]
    limit: int = QUERIES_DEFAULT
    single: bool = False


def match_request(body: bytes) -> MatchRequest:
    """``{"source", "record" | "records", "limit"?}``. Raises BadRequest.

    Integers of any size come through; of other numbers what a double holds, so a long DECIMAL should be text.
    """
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as refused:
        raise BadRequest(f"the body is not JSON: {refused}", hint=_HINT) from None
    if not isinstance(fields, dict) or not isinstance(fields.get("source"), str):
        raise BadRequest("source names no stream", hint=_HINT)
    unknown = sorted(fields.keys() - {"source", "record", "records", "limit"})
    if unknown:
        raise BadRequest(f"unknown field {unknown[0]!r}", hint=_HINT)
    if ("record" in fields) == ("records" in fields):
        raise BadRequest("give record or records", hint=_HINT)
    records = [fields["record"]] if "record" in fields else fields["records"]
    if not isinstance(records, list):
        raise BadRequest("records is not a list", hint=_HINT)
    limit = fields.get("limit", QUERIES_DEFAULT)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit <= QUERIES_MAX:
        raise BadRequest(f"limit cannot be {limit!r}", hint=f"a number from 0 to {QUERIES_MAX:,}")
    lines = [json.dumps(record).encode() for record in records]
    return MatchRequest(fields["source"], lines, limit, "record" in fields)


def match_lines(source: str | None, body: bytes, limit: int) -> MatchRequest:
    """NDJSON, each line a record as it would be on the topic, to the byte.

    Raises BadRequest, LimitExceeded.
    """
    if source is None:
        raise BadRequest("there is no source", hint="POST /match?source=... with records, one a line")
    count = body.count(b"\n") + (not body.endswith(b"\n") and bool(body))
    if count > RECORDS_MAX:
        raise _too_many(count)
    lines = body.split(b"\n")
    return MatchRequest(source, lines[:-1] if not lines[-1] else lines, limit)


def _too_many(count: int) -> LimitExceeded:
    return LimitExceeded("match_records_max", RECORDS_MAX, count, hint="send them in parts")


class Matching:
    """Answers what records match; a matcher a stream, made when it is first asked for."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._matchers: dict[str, tuple[SourceEntry, RecordMatcher]] = {}
        self._turn = Lock()

    async def match(self, request: MatchRequest) -> dict[str, Any]:
        """``{"source", "matches": [{"queries", "total", "error"}], "swapped_out"}``, one for each record, in
        order. Queries that are swapped out are not looked at: swapped_out says how many there are, over any
        sources.

        Raises UnknownSource, LimitExceeded, BadRecord for a single one, and what limits work.
        """
        entry = self._node.directory.sources.get(request.source)
        if entry is None:
            raise UnknownSource(request.source, hint="records are matched on a stream that has a topic")
        count = len(request.records)
        if count > RECORDS_MAX:
            raise _too_many(count)
        matches = await self._node.work.do(partial(self._matches, request, entry))
        swapped_out = sum(shard.upkeep.swapper.count for shard in self._node.shards)
        return {"source": request.source, "matches": matches, "swapped_out": swapped_out}

    def _matches(self, request: MatchRequest, entry: SourceEntry) -> list[dict[str, Any]]:
        count = len(request.records)
        now_ms = np.full(count, time.time_ns() // 1_000_000)
        decoded = decode(entry.stream, request.records, np.zeros(count), np.arange(count), now_ms)
        matches: list[dict[str, Any]] = [{"queries": [], "total": 0, "error": None} for _ in range(count)]
        for bad in decoded.bad:
            refused = BadRecord(bad.reason, hint=f"DESCRIBE {request.source} shows the columns")
            if request.single:
                raise refused
            matches[bad.place]["error"] = refused.as_dict()
        good = np.delete(np.arange(count), [bad.place for bad in decoded.bad]).tolist()
        found = self.satisfied(request.source, entry, decoded.batch, request.limit)
        for place, one in zip(good, found, strict=True):
            matches[place] |= {"queries": one.query_ids, "total": one.total}
        return matches

    def satisfied(self, name: str, entry: SourceEntry, rows: Batch, limit: int) -> list[Satisfied]:
        """The queries that each row satisfies, by at most ``limit`` ids. Any thread; one after another."""
        with self._turn:
            matcher = self._matcher(name, entry)
            found: list[Satisfied] = []
            for first in range(0, len(rows), ROWS_AT_ONCE):
                may_go_on()
                found += matcher.match(rows.slice(first, first + ROWS_AT_ONCE), limit)
            return found

    def _matcher(self, name: str, entry: SourceEntry) -> RecordMatcher:
        """One that follows the shard's view of now."""
        known = self._matchers.get(name)
        if known is None or known[0] is not entry:  # the stream is new, perhaps in the place of another
            there = self._node.directory.sources
            self._matchers = {n: one for n, one in self._matchers.items() if there.get(n) is one[0]}
            matcher = RecordMatcher(entry.stream.name, QueryStem(entry.stream.schema))
            known = self._matchers[name] = (entry, matcher)
        known[1].follow(self._node.shards[entry.shard].view().standing)
        return known[1]
