"""What CREATE answers about a topic: whether it was there, and what its records have.

A wrong name of a topic or a column is no error to the broker: a topic that is missing is made, a column that
no record has is NULL. So whoever creates is shown both.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.language.query import CreateStream
from engine.model.source import Stream
from topics.admin import Admin
from topics.formats.table import refusal_of
from topics.newest import TopicExtent, facts_of, newest
from topics.sampling import Sample, sample
from tureen.errors import NotSupported, TopicMissing, TureenError

SAMPLE_RECORDS = 100
SAMPLE_WAIT_S = 2.0
IDLE_TIMEOUT_SAFE_MS = 10_000
"""A producer, or a broker on a busy machine, may well pause for some seconds."""
REASONS_TOLD = 3
KAFKA_TIME = "_timestamp"
"""The member by which a column has the time that Kafka has of a record."""


@dataclass(frozen=True, slots=True)
class TopicBefore:
    """A topic before CREATE. facts: None where it did not exist. similar: topics of nearly that name."""

    facts: TopicExtent | None
    similar: tuple[str, ...]


def refuse_unreadable(stream: Stream) -> None:
    """Raise NotSupported where no record could ever be read as the statement says."""
    reason = refusal_of(stream)
    if reason is not None:
        raise NotSupported(reason, hint="write the schema as its format has it")


def look_before(admin: Admin, statement: CreateStream) -> TopicBefore:
    """Raises TopicMissing where the topic is not to be made; KafkaUnavailable."""
    topic = statement.stream.topic
    known = admin.topics()
    if topic in known:
        return TopicBefore(facts_of(admin, topic), ())
    similar = similar_topics([one for one in known if _without_digits(one) != _without_digits(topic)], topic)
    if not statement.create_topic:
        hint = f"there is a topic {similar[0]}" if similar else f"create it: tureen topic create {topic}"
        raise TopicMissing(topic, hint=f"{hint}; or leave create_topic = false out")
    return TopicBefore(None, tuple(similar))


def similar_topics(known: Iterable[str], topic: str) -> list[str]:
    """Topics of nearly this name, at most three."""
    return difflib.get_close_matches(topic, list(known), n=3, cutoff=0.8)


def _without_digits(name: str) -> str:
    """Topics that differ in a number alone are meant to be several."""
    return re.sub(r"\d+", "", name)


def topic_answer(kafka: dict[str, str], statement: CreateStream, before: TopicBefore) -> dict[str, Any]:
    """``{topic_existed, partitions, topic_records, sample, warnings}``, once the stream is there.

    sample: None where there is no record, or Kafka did not give any in time.
    """
    stream = statement.stream
    found: Sample | None = None
    partitions = statement.partitions
    if before.facts is not None:
        partitions = before.facts.partitions
        found = _sampled(kafka, stream, before.facts)
    return {
        "topic_existed": before.facts is not None,
        "partitions": partitions,
        "topic_records": before.facts.records if before.facts is not None else 0,
        "sample": None if found is None else found.as_dict(),
        "warnings": [
            *_of_topic(stream, before),
            *_of_sample(found),
            *_of_seconds(stream, found),
            *_of_time(stream, partitions),
            *_of_deletions(stream),
        ],
    }


def _sampled(kafka: dict[str, str], stream: Stream, facts: TopicExtent) -> Sample | None:
    try:
        messages = newest(kafka, stream.topic, facts, SAMPLE_RECORDS, timeout_s=SAMPLE_WAIT_S)
        return sample(stream, messages) if messages else None
    except TureenError:  # the stream is there; this is only said besides
        return None


def _warning(code: str, message: str, hint: str) -> dict[str, Any]:
    return {"code": code, "message": message, "hint": hint}


def _of_topic(stream: Stream, before: TopicBefore) -> list[dict[str, Any]]:
    if before.facts is not None or not before.similar:
        return []
    names = " and ".join(before.similar)
    return [
        _warning(
            "topic_created",
            f"the topic {stream.topic} did not exist and was created; there is {names}",
            f"if you meant that one: DROP {stream.kind.upper()} {stream.name}, then create it with topic = "
            f"'{before.similar[0]}'; create_topic = false refuses a missing topic",
        )
    ]


def _of_sample(found: Sample | None) -> list[dict[str, Any]]:
    if found is None:
        return []
    warnings = []
    if found.columns_without_member:
        others = ", ".join(found.members_without_column) or "no others"
        warnings.append(
            _warning(
                "columns_without_member",
                f"none of the newest {found.records:,} records has "
                f"{', '.join(found.columns_without_member)}; members that are no column: {others}",
                "a column is the member of its name, in any letter case, or what stands at its PATH; "
                "without one it is NULL",
            )
        )
    if found.unreadable:
        warnings.append(
            _warning(
                "records_unreadable",
                f"{found.unreadable:,} of the newest {found.records:,} records give no row: {_why(found)}",
                "they become dead letters: tureen dead-letters",
            )
        )
    return warnings


def _of_seconds(stream: Stream, found: Sample | None) -> list[dict[str, Any]]:
    if found is None or not found.like_seconds:
        return []
    return [
        _warning(
            "timestamps_like_seconds",
            f"{stream.timestamp_column} of {found.like_seconds:,} of the newest {found.records:,} records is "
            "in the first weeks of 1970, and looks like seconds since then",
            "TIMESTAMP is read from milliseconds since 1970 or from text",
        )
    ]


def _why(found: Sample) -> str:
    """The first reasons, with how many records have each where there are several."""
    if len(found.reasons) == 1:
        return found.reasons[0].reason
    told = [f"{one.reason} ({one.records:,})" for one in found.reasons[:REASONS_TOLD]]
    rest = found.unreadable - sum(one.records for one in found.reasons[:REASONS_TOLD])
    return "; ".join(told) + (f"; others ({rest:,})" if rest else "")


def _of_time(stream: Stream, partitions: int) -> list[dict[str, Any]]:
    if not stream.event_time or partitions < 2 or stream.idle_timeout_ms >= IDLE_TIMEOUT_SAFE_MS:
        return []
    return [
        _warning(
            "idle_timeout_short",
            f"idle_timeout is {stream.idle_timeout_ms:,} ms and the topic has {partitions} partitions: one "
            "that pauses for so long no longer delays NOW, and its rows are late when it continues",
            f"choose at least {IDLE_TIMEOUT_SAFE_MS // 1_000} seconds, or leave it out (30 seconds)",
        )
    ]


def _of_deletions(stream: Stream) -> list[dict[str, Any]]:
    """A null value has no columns, so its time is the one that Kafka has of its record."""
    if not stream.is_table or stream.timestamp_column is None:
        return []
    place = stream.schema.index(stream.timestamp_column)
    assert place is not None
    if stream.timestamp_column == KAFKA_TIME or stream.schema.field(place).path == (KAFKA_TIME,):
        return []
    return [
        _warning(
            "deletions_by_kafka_time",
            f"rows come at their {stream.timestamp_column}, but a null value deletes at the time that Kafka "
            "has of its record: where that is ahead of the rows' time, NOW is ahead too, and updates that "
            "come after it are late",
            "let producers give each record, deletions above all, the time of its row as Kafka's timestamp; "
            f"or leave timestamp = '{stream.timestamp_column}' out, so that all is in the order of the topic",
        )
    ]
