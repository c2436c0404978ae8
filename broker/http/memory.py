"""``/memory``: what memory is spent on, which sizes can be set, and memory moved from one to another.

A move makes one synopsis smaller and another one larger by about as many bytes: a window of a query that
tolerates less becomes shorter or longer, a join keeps combinations or not. Both are edits of attributes, with
the rights, the checks and the versions of these; where the second is refused the first is taken back.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from broker.allotment.memory_sizes import (
    COMPOSITES,
    KeptBySource,
    Size,
    TolerantQueries,
    join_size,
    sizes_of,
    window_at,
    window_sizes,
)
from broker.http.dry_runs import Told
from broker.http.entities import EntityRequests
from broker.http.errors import BadRequest
from broker.http.named import known, require_operator
from broker.http.requests import body_object
from broker.node.node import Node
from broker.observe.allotments import source_of
from broker.observe.entity_reading import QUERY, EntityReading, part_id
from engine.standing.query import StandingQuery
from tureen.errors import MoveRefused, TureenError, UnknownEntity, UnknownQuery

HINT = (
    'send {"from": {"entity", "attribute", "if_version"?}, "to": {...}, "bytes": n} with sizes of GET /memory'
)
SYNOPSES_MAX = 200
SIZES_MAX = 200
FRESH_S = 2.0
EDITED_FRESH_S = 0.25
"""Greatest age, in seconds, of the reading that a move is worked out from."""
HOLDING = ("synopsis", "operator", "queue", "sink", "monitor")
"""Kinds of entities that hold memory."""


@dataclass(frozen=True, slots=True)
class MoveEnd:
    """One end of a move. given: the entity as the request names it, with a handle perhaps. size: as it is.
    query: whose window it is; None: it is no window.
    """

    given: str
    version: int | None
    size: Size
    query: StandingQuery | None
    kept: KeptBySource

    def at(self, nbytes: float) -> int | None:
        """The value at which it holds so many bytes; None: nothing tells."""
        if self.query is not None:
            return window_at(self.query, self.size, self.kept, nbytes)
        if not self.size.nbytes or not self.size.bytes_high:
            return None
        each = self.size.bytes_high / self.size.high
        return max(self.size.low, min(self.size.high, int(nbytes / each)))

    def body(self, value: int | None) -> bytes:
        """The edit that gives it a value."""
        version = {} if self.version is None else {"if_version": self.version}
        return orjson.dumps({self.size.attribute: value} | version)


class MemoryRequests:
    """Used on the event loop."""

    def __init__(self, node: Node, requests: EntityRequests) -> None:
        self._node = node
        self._requests = requests
        self._moving = asyncio.Lock()
        self._telling = asyncio.Lock()
        self._tolerant = defaultdict[int, TolerantQueries](TolerantQueries)
        self._told: tuple[float, Told] | None = None

    async def told(self) -> Told:
        """What is held, by structure and by synopsis, and the sizes that can be set; the same for all who ask
        within two seconds. O(entities + queries that changed since), in another thread.
        """
        async with self._telling:
            if self._told is not None and time.monotonic() - self._told[0] < FRESH_S:
                return self._told[1]
            reading = await self._requests.read(FRESH_S)
            kept = {
                number: await self._node.shards.ask(number, lambda engine: engine.kept_rows())
                for number in reading.reports
            }
            found = await asyncio.to_thread(self._listed, reading, kept)
            self._told = time.monotonic(), found
            return found

    def _listed(self, reading: EntityReading, kept: Mapping[int, KeptBySource]) -> Told:
        synopses: list[Told] = sorted(
            (
                {
                    "id": part_id(number, part.id),
                    "kind": part.kind,
                    "bytes": part.nbytes,
                    "queries": part.readers,
                }
                for number, report in reading.reports.items()
                for part in report.parts
                if part.kind in HOLDING and part.nbytes
            ),
            key=lambda one: (-int(one["bytes"]), one["id"]),
        )
        sizes: list[Size] = []
        left = 0
        streams = self._node.directory.streams()
        for number, report in reading.reports.items():
            tolerant = self._tolerant[number].of(reading.standing[number])
            found, more = sizes_of(number, report, tolerant, streams, kept[number])
            sizes += found
            left += more
        sizes.sort(key=lambda one: (-one.nbytes, one.entity, one.attribute))
        return self._node.setup.memory.facts() | {
            "synopses": synopses[:SYNOPSES_MAX],
            "synopses_total": len(synopses),
            "synopses_bytes": sum(int(one["bytes"]) for one in synopses),
            "sizes": [one.as_dict() for one in sizes[:SIZES_MAX]],
            "sizes_total": len(sizes),
            "queries_passed_over": left,
        }

    async def move(self, body: bytes, operator: bool, dry_run: bool) -> Told:
        """Take bytes from one size and give them to another. dry_run: nothing is done.

        Raises BadRequest, MoveRefused, and what editing either raises.
        """
        fields = body_object(body, hint=HINT)
        nbytes = fields.get("bytes")
        if isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes <= 0:
            raise BadRequest("bytes is a whole number above 0", hint=HINT)
        async with self._moving:
            source = await self._end(fields, "from", operator)
            target = await self._end(fields, "to", operator)
            if (source.size.entity, source.size.attribute) == (target.size.entity, target.size.attribute):
                raise BadRequest("from and to are the same", hint=HINT)
            smaller, larger, facts = _values(source, target, nbytes)
            if dry_run:
                return facts | await self._dry(source, smaller, target, larger, operator)
            await self._apply(source, smaller, target, larger, operator)
        self._told = None
        return facts

    async def _dry(self, source: MoveEnd, smaller: int, target: MoveEnd, larger: int, operator: bool) -> Told:
        parts = (
            ("from", await self._requests.dry_run(source.given, source.body(smaller), operator)),
            ("to", await self._requests.dry_run(target.given, target.body(larger), operator)),
        )
        return {
            "consequences": [one | {"of": name} for name, told in parts for one in told["consequences"]],
        }

    async def _apply(
        self, source: MoveEnd, smaller: int, target: MoveEnd, larger: int, operator: bool
    ) -> None:
        if source.size.entity == target.size.entity:  # of one query both are one edit
            edit = {source.size.attribute: smaller, target.size.attribute: larger}
            version = {} if source.version is None else {"if_version": source.version}
            await self._requests.edit(source.given, orjson.dumps(edit | version), operator)
            return
        await self._requests.dry_run(target.given, target.body(larger), operator)
        _, after = await self._requests.edit(source.given, source.body(smaller), operator)
        try:
            await self._requests.edit(target.given, target.body(larger), operator)
        except TureenError as refused:
            before = source.size.value
            undo = {source.size.attribute: before, "if_version": after["version"]}
            try:
                await self._requests.edit(source.given, orjson.dumps(undo), operator)
            except TureenError as kept:
                raise MoveRefused(
                    f"{target.size.entity} refused ({refused.message}), and {source.size.entity} could not "
                    f"be given its {before:,} {source.size.unit} again ({kept.message})",
                    hint=f"set {source.size.attribute} of {source.size.entity} yourself",
                ) from refused
            raise

    async def _end(self, fields: Told, name: str, operator: bool) -> MoveEnd:
        """Raises BadRequest, MoveRefused, NotAllowed, UnknownEntity, UnknownQuery, HandleNeeded."""
        told = fields.get(name)
        if not isinstance(told, dict):
            raise BadRequest(f"{name} is an object", hint=HINT)
        given, attribute, version = told.get("entity"), told.get("attribute"), told.get("if_version")
        if not isinstance(given, str) or not isinstance(attribute, str):
            raise BadRequest(f"{name} has an entity and an attribute", hint=HINT)
        if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
            raise BadRequest("if_version is the number that `version` was", hint=HINT)
        if given.startswith(QUERY):
            query_id = known(self._node, given.removeprefix(QUERY), operator)
            return await self._window(given, query_id, attribute, version)
        require_operator(operator)
        reading = await self._requests.read(EDITED_FRESH_S)
        for number, report in reading.reports.items():
            for part in report.parts:
                if part_id(number, part.id) == given and part.id.startswith("join/"):
                    size = join_size(number, part.id, part.attributes)
                    if size is None or attribute != COMPOSITES:
                        raise _immovable(given, attribute)
                    return MoveEnd(given, version, size, None, {})
        if any(
            part_id(number, part.id) == given for number, one in reading.reports.items() for part in one.parts
        ):
            raise _immovable(given, attribute)
        raise UnknownEntity(given)

    async def _window(self, given: str, query_id: str, attribute: str, version: int | None) -> MoveEnd:
        entry = self._node.directory.queries.get(query_id)
        if entry is None:
            raise UnknownQuery()
        standing = (
            None if entry.shard is None else self._node.shards[entry.shard].view().standing.get(query_id)
        )
        if entry.shard is None or standing is None:
            raise _immovable(QUERY + query_id, attribute)
        kept = await self._node.shards.ask(entry.shard, lambda engine: engine.kept_rows())
        for size in window_sizes(standing, self._node.directory.streams(), kept):
            if size.attribute == attribute:
                return MoveEnd(given, version, size, standing, kept)
        raise _immovable(QUERY + query_id, attribute)


def _values(source: MoveEnd, target: MoveEnd, nbytes: int) -> tuple[int, int, Told]:
    """The values of both ends, and what is told of them. Raises MoveRefused."""
    if not source.size.nbytes:
        raise MoveRefused(
            f"{source.size.attribute} of {source.size.entity} holds nothing for itself alone",
            hint="another window or RETAIN keeps the same rows: make that shorter first",
        )
    smaller = source.at(source.size.nbytes - nbytes)
    freed = source.size.nbytes - _bytes_at(source, smaller)
    if smaller is None or smaller >= source.size.value or freed <= 0:
        raise MoveRefused(
            f"{source.size.attribute} of {source.size.entity} is as small as it may be",
            hint="DOWN TO, max_fn or max_error of the query say how little it may be given",
        )
    wanted = min(nbytes, freed)
    larger = target.at(target.size.nbytes + wanted)
    taken = _bytes_at(target, larger) - target.size.nbytes
    if larger is None or larger <= target.size.value:
        raise MoveRefused(
            f"{target.size.attribute} of {target.size.entity} has room for that already, or may be no larger",
            hint="give the memory to another one, or free it alone by PATCH /entities/{id}",
        )
    return smaller, larger, {"from": _told(source, smaller, -freed), "to": _told(target, larger, taken)}


def _bytes_at(end: MoveEnd, value: int | None) -> int:
    """What it holds at a value: of a join nothing below what it keeps, and what it may keep above."""
    if value is None:
        return 0
    if end.query is not None:
        rows = end.kept[source_of(end.query, end.size.attribute)]
        return rows.bytes_of(end.size.value, value) or 0
    each = (end.size.bytes_high or 0) / end.size.high
    return 0 if value * each < end.size.nbytes else round(value * each)


def _told(end: MoveEnd, value: int, nbytes: int) -> Told:
    return {
        "entity": end.size.entity,
        "attribute": end.size.attribute,
        "from": end.size.value,
        "to": value,
        "unit": end.size.unit,
        "bytes": nbytes,
    }


def _immovable(entity: str, attribute: str) -> MoveRefused:
    return MoveRefused(
        f"{attribute} of {entity} is no size that memory can be taken from or given to",
        hint="GET /memory lists the sizes: windows of queries that tolerate less, combinations of joins",
    )
