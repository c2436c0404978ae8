"""CREATE STREAM or CREATE TABLE for a sample of a topic's records, parsed, and tried on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from engine.language.query import CreateStream
from engine.language.render import quoted, render_span
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.paths import path_text
from engine.model.record_format import USUAL, RecordFormat
from engine.model.source import Field, Stream
from engine.windows.source_clock import SourceClock
from topics.codec import SCHEMA_ID_BYTES, WIRE_FORMAT, Decoded
from topics.formats.detection import detect
from topics.in_band import heartbeats
from topics.inference import Inferred, infer_stream, infer_table
from topics.inferred_columns import Sampled
from topics.keyed import decode_messages
from topics.sampling import grouped
from tureen.errors import TureenError
from tureen.literals import name as name_sql

FEW_RECORDS = 20


@dataclass(frozen=True, slots=True)
class Topic:
    """What is known of a topic besides its records. name: of the source that is to read it. stamps: Kafka
    stamps records when they arrive.
    """

    topic: str
    name: str
    partitions: int
    records: int
    compacted: bool
    stamps: bool


def admits_name(name: str) -> bool:
    """Whether SQL takes a name, in quotes if it has to."""
    try:
        parse(f"CREATE STREAM s ({name_sql(name)} STRING)", {}, Limits())
    except (TureenError, UnicodeEncodeError):
        return False
    return True


def propose(topic: Topic, messages: Sequence[Any], limits: Limits) -> dict[str, Any]:
    """The statement and what was guessed for it. messages: by partition and offset. Heartbeats among them are
    passed over. Raises SyntaxRefused where a name is none.
    """
    told, refused = heartbeats(one.headers() for one in messages)
    rows = [one for place, one in enumerate(messages) if place not in told and place not in refused]
    written = [
        Sampled(one.key(), one.value(), one.partition(), one.offset(), one.timestamp()[1]) for one in rows
    ]
    detected = detect(written)
    records = detected.records
    inferred = None
    if detected.events and not detected.format.changelog:
        inferred = infer_table(records, admits_name, limits.columns_max, event_time=False)
    elif topic.compacted:
        inferred = infer_table(records, admits_name, limits.columns_max, event_time=not topic.stamps)
    if inferred is None:
        inferred = infer_stream(records, admits_name, limits.columns_max)
    format_ = detected.format if inferred.key else replace(detected.format, key=None)
    facts = {
        "format": format_.value,
        "format_options": _format_options(format_),
        "topic": topic.topic,
        "name": topic.name,
        "name_sql": name_sql(topic.name),
        "kind": "table" if inferred.key else "stream",
        "partitions": topic.partitions,
        "topic_records": topic.records,
        "columns": [_column(inferred, place) for place in range(len(inferred.columns))],
        "left_out": [
            {"member": one.member, "reason": one.reason, "values": one.values, "examples": list(one.examples)}
            for one in inferred.left_out
        ],
        "key": list(inferred.key),
        "timestamp": _timestamp(inferred),
    }
    if not inferred.columns:
        reasons = _reasons_of_none(records)
        sample = {
            "records": len(records),
            "read": 0,
            "late": 0,
            "unreadable": reasons,
            "heartbeats": len(told),
        }
        warnings = [_no_columns(records)]
        return facts | {"sql": None, "sample": sample, "warnings": warnings}
    sql = statement(topic, inferred, format_)
    parsed = parse(sql, {}, limits)
    assert isinstance(parsed, CreateStream)
    tried, reasons = _tried(parsed.stream, rows)
    sample = {"records": len(records), **tried, "unreadable": reasons, "heartbeats": len(told)}
    return facts | {"sql": sql, "sample": sample, "warnings": _warnings(topic, inferred, records, sample)}


def statement(topic: Topic, inferred: Inferred, format_: RecordFormat) -> str:
    """The text. Raises SyntaxRefused where a name is none."""
    lines = ["    " + column_sql(field) for field in inferred.fields()]
    if inferred.key:
        lines.append(f"    PRIMARY KEY ({', '.join(map(name_sql, inferred.key))})")
    options = [f"topic = {quoted(topic.topic)}"]
    options += _format_options(format_)
    if inferred.event_time is not None:
        options.append(f"timestamp = {quoted(inferred.event_time.column)}")
        if inferred.event_time.lateness_ms:
            options.append(f"lateness = {quoted(render_span(inferred.event_time.lateness_ms))}")
    kind = "TABLE" if inferred.key else "STREAM"
    body = ",\n".join(lines)
    return f"CREATE {kind} {name_sql(topic.name)} (\n{body}\n) WITH ({', '.join(options)})"


def _format_options(format_: RecordFormat) -> list[str]:
    """What WITH says of a format, as it is written."""
    options = []
    if format_.value != USUAL.value:
        options.append(f"format = {quoted(format_.value)}")
    if format_.key is not None:
        options.append(f"key_format = {quoted(format_.key)}")
    if format_.changelog:
        options.append("changelog = true")
    return options


def column_sql(field: Field) -> str:
    """A column as it is declared. Raises SyntaxRefused where its name is none."""
    path = "" if field.path is None else f" PATH {quoted(path_text(field.path))}"
    return f"{name_sql(field.name)} {field.type}{'' if field.nullable else ' NOT NULL'}{path}"


def _column(inferred: Inferred, place: int) -> dict[str, Any]:
    one, field = inferred.columns[place], inferred.fields()[place]
    return {
        "name": one.name,
        "name_sql": name_sql(one.name),
        "member": one.member,
        "type": str(one.type),
        "path": None if one.path is None else path_text(one.path),
        "path_sql": None if one.path is None else quoted(path_text(one.path)),
        "nullable": field.nullable,
        "values": one.values,
        "examples": list(one.examples),
        "guessed": one.guessed,
        "misfits": one.misfits,
        "key": one.name in inferred.key,
    }


def _timestamp(inferred: Inferred) -> dict[str, Any] | None:
    at = inferred.event_time
    if at is None:
        return None
    (column,) = (one for one in inferred.columns if one.name == at.column)
    unit = "text" if column.examples and column.examples[0].startswith('"') else "ms"
    return {
        "column": at.column,
        "unit": unit,
        "from_ms": at.from_ms,
        "to_ms": at.to_ms,
        "disorder_ms": at.disorder_ms,
        "lateness_ms": at.lateness_ms,
    }


# --- trying it ------------------------------------------------------------------------------------


def _tried(stream: Stream, rows: Sequence[Any]) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """How many of the records give a row, and how many of these come later than their partition allows; why
    others give none. rows: by partition and offset.
    """
    decoded = _decoded(stream, rows)
    reasons = [one.reason for one in decoded.bad]
    late = 0
    if stream.event_time:
        batch = decoded.batch
        clock_ms = max((one.timestamp()[1] for one in rows), default=0)
        for partition in batch.partitions():
            part = batch.take(np.flatnonzero(batch.partition == partition))
            passage = SourceClock(stream).records(part, clock_ms, frozenset())
            late += passage.late
            reasons += ["the timestamp is beyond the clock plus future_max"] * passage.rejected
    return {"read": len(rows) - len(reasons), "late": late}, [asdict(one) for one in grouped(reasons)]


def _decoded(stream: Stream, rows: Sequence[Any]) -> Decoded:
    return decode_messages(
        stream,
        rows,
        [one.value() for one in rows],
        [one.partition() for one in rows],
        [one.offset() for one in rows],
        [one.timestamp()[1] for one in rows],
    )


# --- what to look at before it is created ---------------------------------------------------------


def _warning(code: str, message: str, hint: str) -> dict[str, Any]:
    return {"code": code, "message": message, "hint": hint}


def _reasons_of_none(records: Sequence[Sampled]) -> list[dict[str, Any]]:
    return [{"reason": "it holds no member that can be a column", "records": len(records)}] if records else []


def _no_columns(records: Sequence[Sampled]) -> dict[str, Any]:
    if not records:
        return _warning(
            "topic_empty",
            "the topic has no records to look at",
            "write the columns yourself, or send some records",
        )
    values = [one.value for one in records if one.value is not None]
    if values and all(value[:1] == b"\0" and len(value) > SCHEMA_ID_BYTES for value in values):
        return _warning(
            "not_json", f"the records {WIRE_FORMAT.replace('looks', 'look', 1)}", "send JSON objects"
        )
    return _warning(
        "not_json",
        "none of the records is a JSON object with a member that can be a column",
        "a record is one JSON object; `tureen records` shows some",
    )


def _warnings(
    topic: Topic, inferred: Inferred, records: Sequence[Sampled], sample: dict[str, Any]
) -> list[dict[str, Any]]:
    found = []
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
        _warning("column_guessed", f"{one.name}: {one.guessed}", "correct the type if it is another")
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
    if at is None and not topic.stamps and not inferred.key:
        return [
            _warning(
                "no_timestamp",
                "no column is an instant that every record has, and Kafka does not stamp the records",
                f"a stream without a timestamp is refused, unless Kafka stamps its records: tureen topic set "
                f"{topic.topic} message.timestamp.type=LogAppendTime",
            )
        ]
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
    if topic.compacted and not inferred.key:
        return [
            _warning(
                "compacted_without_keys",
                "the topic is compacted, but its keys are none of a table: some are missing or unreadable",
                "a stream over it loses records when Kafka compacts",
            )
        ]
    if not inferred.key and any(one.key is not None for one in records):
        return [
            _warning(
                "keys_unread",
                "the records have keys, which a stream does not read",
                "a table reads them: its topic is compacted (cleanup.policy=compact)",
            )
        ]
    return []
