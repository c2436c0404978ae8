"""Where the changes of a query go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.model.changes import Operator
from engine.model.paths import Path

Format = Literal["upsert", "debezium", "diff"]
Encoding = Literal["json", "avro", "json_schema", "protobuf"]


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the changes of a query go, and as what.

    compacted: the topic keeps the last record of every key. shared: by all queries that name no topic; then
    the records of one query are all in one partition. key: numbers of the answer's columns that tell its
    rows apart, None where there are none; of operator ``changes`` alone. stream: the topic is that of this
    stream, whose rows the records are; it is shared. paths: where columns stand in these records, one each,
    where one of them is elsewhere than under its name; else none.
    """

    topic: str
    compacted: bool
    shared: bool
    format: Format
    encoding: Encoding
    operator: Operator
    key: tuple[int, ...] | None = None
    stream: str | None = None
    paths: tuple[Path, ...] = ()
