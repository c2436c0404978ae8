"""What is to be looked at before a proposed statement is carried out: what was guessed, what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.http.sampled_topic import Topic
from engine.language.render import render_span
from topics.codec import SCHEMA_ID_BYTES, WIRE_FORMAT
from topics.formats.detection import Detected
from topics.formats.schemas import schemas
from topics.inference import Inferred
from topics.inferred_columns import Sampled
from tureen.errors import RegistryUnavailable

FEW_RECORDS = 20
IDS_TOLD = 5


def _warning(code: str, message: str, hint: str) -> dict[str, Any]:
    return {"code": code, "message": message, "hint": hint}


def reasons_of_none(records: Sequence[Sampled]) -> list[dict[str, Any]]:
    """Why no record gives a row, where there is no column."""
    return [{"reason": "it holds no member that can be a column", "records": len(records)}] if records else []


def no_columns(records: Sequence[Sampled]) -> dict[str, Any]:
    """The warning that nothing is proposed."""
    if not records:
        return _warning(
            "topic_empty",
            "the topic has no records to look at",
            "write the columns yourself, or send some records",
        )
    values = [one.value for one in records if one.value is not None]
    if values and all(value[:1] == b"\0" and len(value) > SCHEMA_ID_BYTES for value in values):
        unknown = _of_ids(values)
        if unknown is not None:
            return unknown
        return _warning(
            "not_json",
            f"the records {WIRE_FORMAT.replace('looks', 'look', 1)}",
            "set schema_registry_url to the registry that has their schemas, or give format and schema",
        )
    return _warning(
        "not_json",
        "none of the records has a member that can be a column",
        "`tureen records` shows some; the format may be another",
    )


def _of_ids(values: Sequence[bytes]) -> dict[str, Any] | None:
    """Why the registry that there is does not tell the schemas that records name; None: there is none."""
    ids = sorted({int.from_bytes(value[1:SCHEMA_ID_BYTES], "big") for value in values})
    some = ", ".join(map(str, ids[:IDS_TOLD])) + (" and others" if len(ids) > IDS_TOLD else "")
    if not schemas().has_registry:
        return None
    try:
        unknown = [one for one in ids[:IDS_TOLD] if schemas().get(one) is None]
    except RegistryUnavailable as away:
        told = f"the records name schemas ({some}), and the registry does not tell them: {away}"
        return _warning("schema_unknown", told, away.hint or "try it again once the registry answers")
    if not unknown:
        return None
    return _warning(
        "schema_unknown",
        f"the records name schemas ({some}), and the registry at schema_registry_url knows none such",
        "they were registered with another registry, or deleted there; or the records are in another format: "
        "give format, and schema",
    )


def warnings(
    topic: Topic,
    inferred: Inferred,
    records: Sequence[Sampled],
    sample: dict[str, Any],
    detected: Detected,
) -> list[dict[str, Any]]:
    """detected: the format, and what of it is a guess."""
    found = []
    if detected.guessed is not None:
        found.append(_warning("format_guessed", detected.guessed, "name another: WITH (format = ...)"))
    if len(records) < FEW_RECORDS:
        found.append(
            _warning(
                "few_records",
                f"only {len(records):,} records were looked at",
                "look at each type before you create it",
            )
        )
    if sample["read"] < sample["records"]:
        found.append(
            _warning(
                "records_unreadable",
                f"{sample['records'] - sample['read']:,} of {sample['records']:,} records give no row",
                "they become dead letters; the reasons are in sample.unreadable",
            )
        )
    found += [
        _warning("column_guessed", f"{one.name}: {one.guessed}", "correct it if it is otherwise")
        for one in inferred.columns
        if one.guessed
    ]
    found += [
        _warning("member_left_out", f"{one.member}: {one.reason}", "it is in no column; the others are read")
        for one in inferred.left_out
    ]
    return found + _of_time(topic, inferred, sample) + _of_keys(topic, inferred, records)


def _of_time(topic: Topic, inferred: Inferred, sample: dict[str, Any]) -> list[dict[str, Any]]:
    at = inferred.event_time
    if at is None:
        return []
    found = []
    if at.disorder_ms:
        found.append(
            _warning(
                "lateness_guessed",
                f"rows of the sample are up to {render_span(at.disorder_ms)} earlier than one before them",
                f"lateness is {render_span(at.lateness_ms)}; NOW is so far behind the latest row",
            )
        )
    if sample["late"]:
        found.append(
            _warning(
                "rows_late", f"{sample['late']:,} rows would be late even so", "choose a larger lateness"
            )
        )
    return found


def _of_keys(topic: Topic, inferred: Inferred, records: Sequence[Sampled]) -> list[dict[str, Any]]:
    if inferred.key and not topic.compacted:
        return [
            _warning(
                "not_compacted",
                "the topic is not compacted, and a table reads one that is",
                f"tureen topic set {topic.topic} cleanup.policy=compact; or create a stream",
            )
        ]
    if topic.compacted and not inferred.key:
        return [
            _warning(
                "compacted_without_keys",
                "the topic is compacted, but its keys are none of a table: some are missing or unreadable",
                "a stream over it loses records when Kafka compacts",
            )
        ]
    if any(one.key is not None for one in records):
        return [
            _warning(
                "keys_unread",
                "the records have keys, which no column reads",
                "a column that says KEY does, as key STRING KEY; so does a table, whose topic is compacted",
            )
        ]
    return []
