"""``GET /trace``: the way of one record, from its offset to the answers, as far as the broker knows it.

Stages follow each other as the record does: ``log``, ``read``, ``decoded``, ``entered``, ``matched``,
``joined``, ``followed``. Each says whether it is known, and if not why; nothing is guessed. What is told of
rows is as of now: queries that stand now, partners that are held now.

Data never waits for it: the record is read from Kafka once more, and the rest is read off views. Two are
traced at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

from broker.base.entries import SourceEntry
from broker.base.settings import Settings
from broker.http.entities import EntityRequests
from broker.http.matching import Matching
from broker.http.named import require_operator
from broker.http.trace_kafka import InLog, Letters, Took, in_log, letter_about, shown, step_that_took
from broker.node.node import Node
from broker.observe.entity_reading import part_id
from engine.model.batch import Batch
from engine.model.json_texts import json_values
from engine.model.shed import NOT_SHED
from engine.model.source import SourceName
from engine.sources.source_view import SourceView
from engine.views.traced import JoinedQueries, Partners, joined_queries, partners, stored_row, waiting_row
from engine.views.view import View
from topics.codec import Decoded
from topics.keyed import decode_messages
from tureen.errors import BrokerUnavailable, TureenError, UnknownSource

QUERIES_DEFAULT, QUERIES_MAX = 20, 1_000
AT_ONCE = 2
BEHIND = (["operator"], ["sink"], ["promising"], ["queries"])
OPERATORS_OF_QUERIES = 100
"""The operators behind a row are those of so many of the queries that it satisfies."""

Stage = dict[str, Any]


class Traces:
    """Follows records. Used on the event loop."""

    def __init__(self, settings: Settings, node: Node, matching: Matching, entities: EntityRequests) -> None:
        self._names = settings.names
        self._node = node
        self._matching = matching
        self._entities = entities
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def trace(
        self, name: str, partition: int, offset: int, limit: int, operator: bool
    ) -> dict[str, Any]:
        """``{"source", "topic", "partition", "offset", "outcome", "stages"}``; limit: of ids of
        queries.

        Raises NotAllowed, UnknownSource, UnknownPartition, KafkaUnavailable, BrokerUnavailable.
        """
        require_operator(operator, "trace a record")
        entry = self._node.directory.sources.get(name)
        if entry is None:
            raise UnknownSource(name, hint="records are traced of a stream or a table that has a topic")
        async with self._turn:
            return await self._traced(entry, SourceName(name), partition, offset, limit)

    async def _traced(
        self, entry: SourceEntry, name: SourceName, partition: int, offset: int, limit: int
    ) -> dict[str, Any]:
        log = await asyncio.to_thread(in_log, self._node, entry.stream, partition, offset)
        view = self._node.shards[entry.shard].view()
        source = view.source(name)
        if source is None:
            raise BrokerUnavailable(f"{name} is not on its shard yet", hint="try again in a second")
        decoded = None if log.record is None else await asyncio.to_thread(_decoded, entry, log)
        work = self._node.work
        one = _Way(entry, view, source, partition, offset, log, decoded)
        await work.do(one.look)
        if one.is_read:
            took, letters = await asyncio.gather(
                asyncio.to_thread(
                    step_that_took, self._node, self._names, entry.shard, name, partition, offset
                ),
                self._letters(one),
            )
            one.took, one.letters = took, letters
        stages = [one.in_log(), one.read(), one.decoded_as(), one.entered()]
        row = one.row
        if row is not None and one.may_match:
            (found,) = await work.do(partial(self._matching.satisfied, name, entry, row, limit))
            joined, pairs = await work.do(partial(self._joined, name, one))
            stages.append(_matched(found.query_ids, found.total, joined, limit))
            stages.append(_joined(pairs, one))
            ids = [*found.query_ids, *(query.query_id for _, each in joined for query in each.satisfied)]
            stages.append(await self._followed(name, ids, found.total, limit))
        return {
            "source": name,
            "topic": entry.stream.topic,
            "partition": partition,
            "offset": offset,
            "outcome": one.outcome,
            "stages": stages,
        }

    async def _letters(self, one: _Way) -> Letters | None:
        if one.is_held or not one.may_match:
            return None
        topic = one.entry.stream.topic
        return await asyncio.to_thread(
            letter_about, self._node, self._names, topic, one.partition, one.offset
        )

    def _joined(
        self, name: SourceName, one: _Way
    ) -> tuple[list[tuple[int, JoinedQueries]], list[tuple[int, Partners]]]:
        """On each shard that has the source: queries over several, and partners."""
        queries, pairs = [], []
        for shard in self._node.shards:
            view = shard.view()
            here = view.source(name)
            if here is None or one.row is None:
                continue
            at_ms = int(one.row.timestamp[0])
            stored = stored_row(here.rows, one.partition, one.offset, at_ms)
            if stored is None:
                continue
            queries.append((shard.number, joined_queries(view, name, stored.ordinal)))
            pairs += [(shard.number, each) for each in partners(view, name, stored.ordinal)]
        return queries, pairs

    async def _followed(self, source: str, ids: Iterable[str], total: int, limit: int) -> Stage:
        some = list(dict.fromkeys(ids))[:OPERATORS_OF_QUERIES]
        try:
            found = await self._entities.behind(some, source)
        except TureenError as refused:
            return _stage("followed", [], why=refused.message)
        behind = sorted(id_ for id_ in found if id_.split("/", 2)[1:2] in BEHIND)
        told = f"operators, sinks and sets of answers behind it: {len(behind):,}"
        if total > len(some) or limit < total:
            told += f", of {len(some):,} of the queries that it satisfies"
        return _stage("followed", behind, told, queries_looked_at=len(some))


class _Way:
    """What is found of one record."""

    def __init__(
        self,
        entry: SourceEntry,
        view: View,
        source: SourceView,
        partition: int,
        offset: int,
        log: InLog,
        decoded: Decoded | None,
    ) -> None:
        self.entry = entry
        self.partition = partition
        self.offset = offset
        self.took: Took | None = None
        self.letters: Letters | None = None
        self.row: Batch | None = None
        self._view = view
        self._source = source
        self._log = log
        self._decoded = decoded
        self._ordinal: int | None = None
        self._waits = False
        if decoded is not None and len(decoded.batch):
            self.row = decoded.batch

    def look(self) -> None:
        """See whether the row is held."""
        rows, at_ms = self._source.rows, None if self.row is None else int(self.row.timestamp[0])
        found = stored_row(rows, self.partition, self.offset, at_ms)
        if found is not None:
            self._ordinal = found.ordinal
            self.row = found.row
            return
        waiting = waiting_row(self._source.waiting, self.partition, self.offset)
        if waiting is not None:
            self._waits, self.row = True, waiting

    @property
    def is_held(self) -> bool:
        return self._waits or self._ordinal is not None

    @property
    def is_read(self) -> bool:
        return self.offset < self._source.next_offsets.get(self.partition, 0)

    @property
    def may_match(self) -> bool:
        """Whether it is a row."""
        return self._decoded is None or len(self._decoded.batch) > 0

    @property
    def _ids(self) -> tuple[str, ...]:
        name, shard = self.entry.stream.name, self.entry.shard
        kinds = ("source", "queue/pending", "query-stem", "data-stem")
        return tuple(part_id(shard, f"{kind}/{name}") for kind in kinds)

    @property
    def outcome(self) -> str:
        """In a word."""
        if self._log.end is not None and self.offset >= self._log.end:
            return "not_written"
        if self._decoded is not None and self._decoded.bad:
            return "dead_letter"
        if self._decoded is not None and self._decoded.heartbeats:
            return "heartbeat"
        if self._decoded is not None and self._decoded.tombstones:
            return "tombstone"
        if not self.is_read:
            return "not_read"
        if self._waits:
            return "waiting"
        if self._ordinal is not None:
            return "held"
        if self.row is None:
            return "gone" if self._log.record is None and not self._is_in_log else "no_record"
        if self.letters is not None and self.letters.reason is not None:
            return "late" if self.letters.late else "rejected"
        return "left" if self.letters is not None and self.letters.whole else "unknown"

    @property
    def _is_in_log(self) -> bool:
        begin, end = self._log.begin, self._log.end
        return begin is not None and end is not None and begin <= self.offset < end

    # --- stages -----------------------------------------------------------------------------------

    def in_log(self) -> Stage:
        """Where it is in Kafka."""
        log, record = self._log, self._log.record
        facts: dict[str, Any] = {"begin": log.begin, "end": log.end}
        if record is not None:
            message = record.messages[0]
            value, key = record.values[0], message.key()
            facts |= {
                "timestamp_ms": int(record.append_ms[0]),
                "key": None if key is None else shown(key),
                "value": shown(value),
                "headers": len(message.headers() or ()),
            }
            return _stage("log", [], "the record is in the log", **facts)
        if log.end is None:
            return _stage("log", [], why="the topic is gone", **facts)
        if self.offset >= log.end:
            return _stage("log", [], "nothing was written there yet", **facts)
        if not self._is_in_log:
            return _stage("log", [], why="the log begins behind it: retention took the record", **facts)
        why = "the log has no record there: a marker of a transaction, or compaction took it"
        return _stage("log", [], why=why, **facts)

    def read(self) -> Stage:
        """Whether the broker has read it, and by which step."""
        following = self._source.next_offsets.get(self.partition)
        facts: dict[str, Any] = {"shard": self.entry.shard, "next_offset": following, "position": None}
        ids = self._ids[:1]
        if not self.is_read:
            return _stage("read", ids, "the broker has not read it yet", is_read=False, **facts)
        took = self.took
        if took is None or took.position is None:
            why = "" if took is None else took.why
            return _stage("read", ids, "the broker has read it", step_why=why, is_read=True, **facts)
        facts["position"] = str(took.position)
        return _stage("read", ids, f"step {took.position} took it", is_read=True, **facts)

    def decoded_as(self) -> Stage:
        """The record's columns, or why it has none."""
        ids, decoded = self._ids[:1], self._decoded
        if decoded is not None and decoded.heartbeats:
            (below,) = decoded.heartbeats.values()
            return _stage("decoded", ids, "it is a heartbeat, and no row", heartbeat_ms=below)
        if decoded is not None and decoded.tombstones:
            return _stage("decoded", ids, "it is a tombstone behind a delete, and no change")
        if decoded is not None and decoded.bad:
            reason = decoded.bad[0].reason
            return _stage("decoded", ids, f"it gives no row, and is a dead letter: {reason}", reason=reason)
        if self.row is None:
            return _stage("decoded", ids, why="there is no record to be read")
        at_ms = int(self.row.timestamp[0])
        return _stage("decoded", ids, "it gives a row", row=_columns(self.row), timestamp_ms=at_ms)

    def entered(self) -> Stage:
        """What became of the row."""
        source = self._source
        facts: dict[str, Any] = {"now_ms": source.now_ms, "retained_from_ms": source.retained_from_ms}
        outcome, ids = self.outcome, self._ids
        match outcome:
            case "held":
                told = "the row entered, and is held"
                return _stage("entered", ids, told, ordinal=self._ordinal, **facts, **self._shed())
            case "waiting":
                return _stage("entered", ids[:2], "the row is above NOW, and waits to enter", **facts)
            case "late":
                return _stage("entered", ids[:1], "the row came late, and did not enter", **facts)
            case "rejected":
                reason = None if self.letters is None else self.letters.reason
                told = f"the row was rejected, and is a dead letter: {reason}"
                return _stage("entered", ids[:1], told, reason=reason, **facts)
            case "left":
                told = "the row entered, and is no longer held: nothing needs it any more"
                return _stage("entered", ids, told, **facts)
            case "unknown":
                why = (
                    "the row is not held, and no letter about it is among the newest: it entered and has "
                    "left, or came late longer ago"
                )
                return _stage("entered", ids[:1], why=why, **facts)
            case "not_read" | "not_written":
                return _stage("entered", (), "it has not entered", **facts)
            case "dead_letter" | "heartbeat" | "tombstone":
                return _stage("entered", (), "nothing of it enters", **facts)
        why = "neither Kafka nor the broker holds it any more" if self.is_read else "there is no record"
        return _stage("entered", (), why=why, **facts)

    def _shed(self) -> dict[str, Any]:
        """Whether queries that tolerate it do not see the row."""
        sheds = self._source.rows.schema.sheds
        if sheds is None or self.row is None:
            return {}
        (level,) = sheds.levels(self.row.partition, self.row.offset).tolist()
        return {} if level == NOT_SHED else {"shed_ppm": level}


def _stage(
    stage: str, entities: Iterable[str], text: str = "", *, why: str | None = None, **facts: Any
) -> Stage:
    """why: it is not known."""
    known = why is None
    return {"stage": stage, "known": known, "why": why, "text": text, "entities": list(entities), **facts}


def _decoded(entry: SourceEntry, log: InLog) -> Decoded:
    record = log.record
    assert record is not None
    return decode_messages(
        entry.stream, record.messages, record.values, record.partition, record.offset, record.append_ms
    )


def _columns(row: Batch) -> list[dict[str, Any]]:
    """Each with the value's text in JSON, which is exact."""
    cells = row.to_arrow()
    return [
        {"column": field.name, "type": str(field.type), "text": json_values(column)[0].as_py()}
        for field, column in zip(row.schema, cells.columns, strict=True)
    ]


def _matched(ids: Iterable[str], total: int, joined: list[tuple[int, JoinedQueries]], limit: int) -> Stage:
    satisfied = [query.query_id for _, each in joined for query in each.satisfied]
    unknown = sum(each.total - each.looked_at for _, each in joined)
    told = f"it satisfies the predicates of {total:,} {_queries(total)} over its source alone"
    if satisfied or unknown:
        told += f" and of {len(satisfied):,} over several"
    if unknown:
        told += f"; of {unknown:,} more no matches are kept, so it is not known"
    return _stage(
        "matched",
        (),
        told,
        queries=list(ids),
        total=total,
        joined_queries=satisfied[:limit],
        joined_total=len(satisfied),
        joined_unknown=unknown,
    )


def _queries(count: int) -> str:
    return "query" if count == 1 else "queries"


def _joined(pairs: list[tuple[int, Partners]], one: _Way) -> Stage:
    if not one.is_held or one.outcome == "waiting":
        return _stage("joined", (), why="partners are found for rows that are held, and it is not")
    found = [
        {
            "join": part_id(shard, each.join),
            "with": each.inputs[each.other],
            "keys": each.keys,
            "partners": each.count,
        }
        for shard, each in pairs
    ]
    joins = len({each["join"] for each in found})
    told = f"its source is an input of {joins:,} {'join' if joins == 1 else 'joins'}"
    return _stage("joined", dict.fromkeys(str(each["join"]) for each in found), told, joins=found)
