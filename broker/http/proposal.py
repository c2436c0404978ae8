"""CREATE STREAM or CREATE TABLE for a sample of a topic's records, parsed, and tried on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from broker.http.errors import NotInferred
from broker.http.proposal_warnings import no_columns, reasons_of_none, warnings
from broker.http.sampled_topic import Topic
from engine.language.query import CreateFromTopic, CreateStream
from engine.language.render import quoted, render_span
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.paths import path_text
from engine.model.record_format import USUAL, RecordFormat
from engine.model.source import Field, Stream
from engine.windows.source_clock import SourceClock
from topics.codec import Decoded
from topics.formats.detection import Detected, detect
from topics.formats.plain_detection import raw_column
from topics.in_band import heartbeats
from topics.inference import LOG_TIME, Inferred, Rules, infer_raw, infer_stream, infer_table, with_log_time
from topics.inferred_columns import Sampled
from topics.keyed import decode_messages
from topics.sampling import grouped
from tureen.errors import TureenError
from tureen.literals import name as name_sql


def admits_name(name: str) -> bool:
    """Whether SQL takes a name, in quotes if it has to."""
    try:
        parse(f"CREATE STREAM s ({name_sql(name)} STRING)", {}, Limits())
    except (TureenError, UnicodeEncodeError):
        return False
    return True


def propose(
    topic: Topic, messages: Sequence[Any], limits: Limits, asked: CreateFromTopic | None = None
) -> dict[str, Any]:
    """The statement and what was guessed for it. messages: by partition and offset. Heartbeats among them are
    passed over. asked: what is known of the statement; None: its name alone.

    Raises SyntaxRefused where a name is none; of what is asked QueryError where records are not so,
    NotInferred where they have no keys of a table.
    """
    told, refused = heartbeats(one.headers() for one in messages)
    rows = [one for place, one in enumerate(messages) if place not in told and place not in refused]
    written = [
        Sampled(one.key(), one.value(), one.partition(), one.offset(), one.timestamp()[1]) for one in rows
    ]
    detected = detect(
        written,
        None if asked is None else asked.format,
        is_stream=asked is not None and asked.kind == "stream",
    )
    records = detected.records
    inferred = _inferred(topic, detected, limits, asked)
    format_ = detected.format if inferred.key else replace(detected.format, key=None)
    facts = {
        "format": format_.value,
        "format_options": [f"{name} = {value}" for name, value in _format_options(format_).items()],
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
    sample: dict[str, Any] = {"records": len(records), "heartbeats": len(told), "names": detected.names}
    if all(one.name == LOG_TIME for one in inferred.columns):
        sample |= {"read": 0, "late": 0, "unreadable": reasons_of_none(records)}
        nothing: dict[str, Any] = {"columns": [], "timestamp": None, "sql": None}
        return facts | nothing | {"sample": sample, "warnings": [no_columns(written)]}
    sql = statement(topic, inferred, format_, asked)
    parsed = parse(sql, {}, limits)
    assert isinstance(parsed, CreateStream)
    tried, reasons = _tried(parsed.stream, rows)
    sample |= {**tried, "unreadable": reasons}
    found = warnings(topic, inferred, records, sample, detected)
    return facts | {"sql": sql, "sample": sample, "warnings": found}


def _inferred(topic: Topic, detected: Detected, limits: Limits, asked: CreateFromTopic | None) -> Inferred:
    """The columns, the key and the column of event time."""
    records, timestamp = detected.records, None if asked is None else asked.timestamp
    is_old = asked is not None and "past_max" in asked.given
    rules = Rules(admits_name, limits.columns_max, detected.declared, timestamp, is_old)
    is_raw = detected.format.value == "raw"
    as_table = (topic.compacted and not is_raw) or (detected.events and not detected.format.changelog)
    if asked is not None:
        as_table = asked.kind == "table"
    inferred: Inferred | None
    if is_raw and records:
        inferred = infer_raw(records, raw_column(records), rules, as_table=as_table)
    elif as_table:
        inferred = infer_table(records, rules, event_time=not topic.stamps and not detected.events)
    else:
        inferred = infer_stream(records, rules)
    if inferred is None:
        if asked is not None and records:
            raise NotInferred(
                topic.topic,
                "the keys of its records are none of a table: some are missing or cannot be read",
                hint="CREATE STREAM ... FROM TOPIC reads the values",
            )
        inferred = infer_stream(records, rules)
    by_log = inferred.event_time is None and not topic.stamps and not inferred.key
    if records and (by_log or timestamp == LOG_TIME):
        return with_log_time(inferred, records, limits.columns_max)
    return inferred


def statement(
    topic: Topic, inferred: Inferred, format_: RecordFormat, asked: CreateFromTopic | None = None
) -> str:
    """The text. Raises SyntaxRefused where a name is none."""
    lines = ["    " + column_sql(field) for field in inferred.fields()]
    if inferred.key:
        lines.append(f"    PRIMARY KEY ({', '.join(map(name_sql, inferred.key))})")
    options = {"topic": quoted(topic.topic), **_format_options(format_)}
    if inferred.event_time is not None:
        options["timestamp"] = quoted(inferred.event_time.column)
        if inferred.event_time.lateness_ms:
            options["lateness"] = quoted(render_span(inferred.event_time.lateness_ms))
    if asked is not None:
        options |= {name: value for name, value in asked.given.items() if name != "timestamp"}
    kind = "TABLE" if inferred.key else "STREAM"
    missing = "IF NOT EXISTS " if asked is not None and asked.if_not_exists else ""
    body, said = ",\n".join(lines), ", ".join(f"{name} = {value}" for name, value in options.items())
    return f"CREATE {kind} {missing}{name_sql(topic.name)} (\n{body}\n) WITH ({said})"


def _format_options(format_: RecordFormat) -> dict[str, str]:
    """What WITH says of a format, as it is written."""
    options = {}
    if format_.value != USUAL.value:
        options["format"] = quoted(format_.value)
    if format_.delimiter != USUAL.delimiter:
        options["delimiter"] = quoted(format_.delimiter)
    if format_.schema is not None:
        options["schema"] = quoted(format_.schema)
    if format_.framed != (format_.schema is None):
        options["framed"] = str(format_.framed).lower()
    if format_.key is not None:
        options["key_format"] = quoted(format_.key)
    if format_.changelog:
        options["changelog"] = "true"
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
