"""The options that ``WITH (name = value, ...)`` may hold, by the statement it stands in: names, and what each
may be. The binder admits these names; the listing of the language tells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from engine.language.query import ResultEncoding, ResultFormat
from engine.model.record_format import FormatName, KeyFormat
from engine.model.summary import BucketFunction, SummaryKind
from engine.model.tolerance import AMOUNTS

Form = Literal["text", "column", "duration", "flag", "number", "choice"]


@dataclass(frozen=True, slots=True)
class KnownOption:
    """One option. example: a value as it is written. choices: all values, where they are few."""

    form: Form
    about: str
    example: str
    choices: tuple[str, ...] = ()


def _choice(about: str, choices: tuple[str, ...]) -> KnownOption:
    return KnownOption("choice", about, f"'{choices[0]}'", choices)


def _flag(about: str, usual: str) -> KnownOption:
    return KnownOption("flag", about, usual, ("true", "false"))


DURATIONS: Mapping[str, KnownOption] = {
    "lateness": KnownOption(
        "duration", "how much earlier than the largest timestamp a row may be", "'5 seconds'"
    ),
    "idle_timeout": KnownOption(
        "duration", "after so long without records a partition no longer delays the others", "'30 seconds'"
    ),
    "future_max": KnownOption(
        "duration", "a timestamp further ahead of the clock makes a dead letter", "'1 day'"
    ),
    "past_max": KnownOption(
        "duration", "a timestamp further behind Kafka's time of the record makes a dead letter", "'30 days'"
    ),
    "retain": KnownOption("duration", "how long rows stay", "'1 day'"),
}
STREAM: Mapping[str, KnownOption] = {
    "topic": KnownOption("text", "the Kafka topic; the stream's name by default", "'name'"),
    "timestamp": KnownOption(
        "column", "the TIMESTAMP column of event time; arrival time by default", "'column'"
    ),
    "idle_advances": _flag("when all partitions are idle the stream's time moves with the clock", "true"),
    "partitions": KnownOption("number", "of the topic, if the broker creates it", "4"),
    "create_topic": _flag("a topic that does not exist is made; false: it is refused", "false"),
    "format": _choice("how records are written", get_args(FormatName)),
    "delimiter": KnownOption("text", "between the fields of CSV; a comma by default", "';'"),
    "schema": KnownOption(
        "text",
        "of Avro: what records are written with, or, where they name schemas, read by; of Protobuf: a .proto",
        "'\"string\"'",
    ),
    "message": KnownOption("text", "of Protobuf: which of the schema's messages records are", "'shop.Order'"),
    "framed": _flag("values begin with the id of a schema in the registry", "true"),
    "key_format": _choice("how keys of a table's records are written", get_args(KeyFormat)),
    "changelog": _flag("of Debezium: each change of a row is a row of the stream", "false"),
    **DURATIONS,
}
"""The options of CREATE STREAM and CREATE TABLE."""

EMIT: Mapping[str, KnownOption] = {
    "format": _choice("what a record of a change has", get_args(ResultFormat)),
    "encoding": _choice("how a record is written", get_args(ResultEncoding)),
    "snapshot": _flag("whether the answer of the beginning is written too", "false"),
}
"""The options of EMIT CHANGES."""

SUMMARY: Mapping[str, KnownOption] = {
    "kind": _choice("what a cell counts with", get_args(SummaryKind)),
    "sketch_depth": KnownOption("number", "rows of a sketch; an estimate is their median", "5"),
    "sketch_width": KnownOption(
        "number", "counters in a row of a sketch; of a histogram its intervals", "64"
    ),
    "buckets": KnownOption("number", "buckets of values; a cell is a bucket in a zone", "16"),
    "bucket_function": _choice("how a value finds its bucket", get_args(BucketFunction)),
    "theta": KnownOption("number", "the confidence, 0 to 1, below which a zone ends", "0.7"),
    "zone_length_max": KnownOption("duration", "the longest zone of the first granularity", "'2 seconds'"),
    "zone_rows_min": KnownOption("number", "rows of a zone before its confidence is looked at", "64"),
}
"""The options of CREATE SUMMARY ... SETTINGS; ALTER SUMMARY ... SET takes some of them."""

QUERY: Mapping[str, KnownOption] = {
    name: KnownOption("number", form, form.split(" as ")[-1].split(";")[0] if " as " in form else "2")
    for name, (_, _, form) in AMOUNTS.items()
}
"""The options of a SELECT: what it tolerates, and its weight."""

PLACES: Mapping[str, Mapping[str, KnownOption]] = {
    "stream": STREAM,
    "emit": EMIT,
    "summary": SUMMARY,
    "query": QUERY,
}
