"""What Kafka knows of one record: itself, the letter about it, and the step that took it.

Blocking: each function runs in a thread of its own, bounded in what it reads and in how long it waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker.http.heartbeats import UnknownPartition
from broker.node.node import Node
from engine.model.source import SourceName, Stream
from engine.model.step import Position
from topics.consumer import OffsetLost, Polled
from topics.journal_search import STEPS_SCANNED, step_of
from topics.newest import facts_of, newest
from topics.one_record import record_at
from tureen.errors import TopicMissing, TureenError
from tureen.protocol import HEADER_OFFSET, HEADER_PARTITION, HEADER_REASON, HEADER_TOPIC, TopicNames

LETTERS_SCANNED = 50_000
TEXT_BYTES_MAX, HEX_BYTES_MAX = 4_096, 1_024


@dataclass(frozen=True, slots=True)
class InLog:
    """A place of a partition. begin, end: of its log; None where the topic is gone. record: None: there is
    none.
    """

    begin: int | None
    end: int | None
    record: Polled | None


@dataclass(frozen=True, slots=True)
class Letters:
    """reason: why the record was passed on, None: no letter was found. late: in the topic of late rows.
    whole: every letter there ever was has been looked at.
    """

    reason: str | None
    late: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Took:
    """The step that took a record; None: it was not found, ``why``."""

    position: Position | None
    why: str


def in_log(node: Node, stream: Stream, partition: int, offset: int) -> InLog:
    """Raises UnknownPartition, KafkaUnavailable."""
    try:
        facts = facts_of(node.setup.admin, stream.topic)
        if partition not in facts.end:
            raise UnknownPartition(
                f"topic {stream.topic} has no partition {partition}",
                hint=f"it has the partitions 0 to {facts.partitions - 1}",
            )
        begin, end = facts.begin.get(partition, 0), facts.end[partition]
        record = None
        if begin <= offset < end:
            record = record_at(node.setup.kafka, stream.topic, partition, offset)
    except TopicMissing:
        return InLog(None, None, None)
    except OffsetLost:  # it went between the two requests
        return InLog(facts_of(node.setup.admin, stream.topic).begin.get(partition, 0), end, None)
    return InLog(begin, end, record)


def letter_about(node: Node, names: TopicNames, topic: str, partition: int, offset: int) -> Letters:
    """The letter about a record, of those about late rows and of the dead letters, the newest of either.

    Raises KafkaUnavailable.
    """
    wanted = {HEADER_TOPIC: topic, HEADER_PARTITION: str(partition), HEADER_OFFSET: str(offset)}
    whole = True
    for place in (names.late, names.dead_letters):
        try:
            facts = facts_of(node.setup.admin, place)
        except TopicMissing:
            continue
        whole = whole and facts.records <= LETTERS_SCANNED and not any(facts.begin.values())
        found = newest(
            node.setup.kafka,
            place,
            facts,
            1,
            wanted=lambda one: _is_about(one, wanted),
            scanned_max=LETTERS_SCANNED,
        )
        if found:
            reason = _headers(found[-1]).get(HEADER_REASON, "no reason is given")
            return Letters(reason, place == names.late, whole=True)
    return Letters(None, late=False, whole=whole)


def _is_about(message: Any, wanted: dict[str, str]) -> bool:
    told = _headers(message)
    return all(told.get(name) == value for name, value in wanted.items())


def _headers(message: Any) -> dict[str, str]:
    """By name; of several of one name the last, which is the broker's."""
    return {name: (value or b"").decode("utf-8", "replace") for name, value in message.headers() or ()}


def step_that_took(
    node: Node, names: TopicNames, shard: int, source: SourceName, partition: int, offset: int
) -> Took:
    """By the journal of the source's home."""
    try:
        facts = facts_of(node.setup.admin, names.steps)
        found = step_of(node.setup.kafka, names.steps, facts, shard, source, partition, offset)
    except TureenError as refused:
        return Took(None, f"the journal cannot be read: {refused.message}")
    why = f"none of the newest {STEPS_SCANNED:,} journalled steps of shard {shard} took it"
    return Took(found, "" if found is not None else why)


def shown(data: bytes | None) -> dict[str, Any]:
    """Bytes for people: ``{"text" or "hex", "bytes", "cut"}``; text is null where there are none."""
    if data is None:
        return {"text": None, "bytes": 0, "cut": False}
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": data[:HEX_BYTES_MAX].hex(), "bytes": len(data), "cut": len(data) > HEX_BYTES_MAX}
    text = data[:TEXT_BYTES_MAX].decode("utf-8", "ignore")
    return {"text": text, "bytes": len(data), "cut": len(data) > TEXT_BYTES_MAX}
