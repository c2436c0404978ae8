"""Records a second to columns, by the format they are written in: ten flat fields, one core.

The same rows in every format: numbers, texts of few and of many values, a flag, an instant, NULLs. Batches
have 8,192 records, as the broker takes them from Kafka; time is the processor's, so that other work on the
machine matters less. `json` is the baseline, and `json_nested` the same ten values at paths of nested
objects.

Figures: `records_per_s.<format>`; `nested_ratio`, how many times as long nested JSON takes as flat.
"""

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fastavro
import numpy as np
import orjson
from google.protobuf.message_factory import GetMessageClass

from benchmarks.report import Figure, Report
from benchmarks.timing import repeat
from engine.model.paths import parse_path
from engine.model.record_format import USUAL, RecordFormat
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, TIMESTAMP, Type
from topics.formats.metadata import Written
from topics.formats.protobuf_schema import message_named, parse_schema
from topics.keyed import decode_records

RECORDS = 8_192
BASE_MS = 1_700_000_000_000
COLUMNS: Mapping[str, Type] = {
    "id": BIGINT,
    "at": TIMESTAMP,
    "device": STRING,
    "site": STRING,
    "temperature": DOUBLE,
    "humidity": DOUBLE,
    "count": INTEGER,
    "total": BIGINT,
    "ok": BOOLEAN,
    "note": STRING,
}
PATHS = {
    "id": "$.id",
    "at": "$.meta.at",
    "device": "$.meta.device.name",
    "site": "$.meta.device.site",
    "temperature": "$.values.temperature",
    "humidity": "$.values.humidity",
    "count": "$.values.count",
    "total": "$.values.total",
    "ok": "$.state.ok",
    "note": "$.state.note",
}
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "device", "type": "string"},
        {"name": "site", "type": "string"},
        {"name": "temperature", "type": "double"},
        {"name": "humidity", "type": ["null", "double"]},
        {"name": "count", "type": "int"},
        {"name": "total", "type": "long"},
        {"name": "ok", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
    ],
}

PROTOBUF = """syntax = "proto3";
message Reading {
  int64 id = 1;
  int64 at = 2;
  string device = 3;
  string site = 4;
  double temperature = 5;
  optional double humidity = 6;
  int32 count = 7;
  int64 total = 8;
  bool ok = 9;
  optional string note = 10;
}
"""

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--formats", nargs="*", choices=FORMATS, default=list(FORMATS), help="(default: all)")
    parser.add_argument(
        "--batches", type=int, default=40, help="timed batches of each (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """Each format in turn."""
    rows = _rows(options.seed)
    figures: dict[str, Figure] = {}
    for name in options.formats:
        written, write, paths = FORMATS[name]
        per_s = _measure(written, write(rows), paths, options.batches)
        figures[f"records_per_s.{name}"] = per_s
        print(f"{name}: {per_s:,.0f} records/s", file=sys.stderr)
    if {"json", "json_nested"} <= set(options.formats):
        figures["nested_ratio"] = figures["records_per_s.json"] / figures["records_per_s.json_nested"]
    return Report(figures)


def _measure(written: RecordFormat, values: Sequence[bytes], paths: Mapping[str, str], batches: int) -> float:
    fields = tuple(
        Field(name, type_, True, parse_path(paths[name]) if name in paths else None)
        for name, type_ in COLUMNS.items()
    )
    stream = Stream(SourceName("s"), Schema(fields), "s", format=written)
    place = np.zeros(len(values), np.int32), np.arange(len(values)), np.full(len(values), BASE_MS)

    def call() -> None:
        decoded = decode_records(stream, Written(values, *place))
        assert len(decoded.batch) == len(values), decoded.bad[:1]

    return repeat(call, times=batches, warm_ups=3, clock=time.thread_time).per_s(len(values))


def _rows(seed: int) -> list[Row]:
    random = np.random.default_rng(seed)
    temperature, humidity = random.normal(20, 5, RECORDS).tolist(), random.random(RECORDS).round(3).tolist()
    counts, ids = random.integers(0, 1_000, RECORDS).tolist(), random.integers(2**40, size=RECORDS).tolist()
    return [
        {
            "id": ids[i],
            "at": BASE_MS + i * 7,
            "device": f"device-{ids[i] % 5_000}",
            "site": ("berlin", "oslo", "warehouse north", "são paulo")[i % 4],
            "temperature": temperature[i],
            "humidity": None if i % 10 == 0 else humidity[i],
            "count": counts[i],
            "total": ids[i] * 3 - 2**40,
            "ok": i % 7 != 0,
            "note": f'note "{i}"' if i % 20 == 0 else None,
        }
        for i in range(RECORDS)
    ]


def _in_json(rows: Sequence[Row]) -> list[bytes]:
    return [orjson.dumps(row) for row in rows]


def _in_nested_json(rows: Sequence[Row]) -> list[bytes]:
    found = []
    for row in rows:
        whole: Row = {}
        for name, path in PATHS.items():
            *outer, inner = path.removeprefix("$.").split(".")
            at = whole
            for step in outer:
                at = at.setdefault(step, {})
            at[inner] = row[name]
        found.append(orjson.dumps(whole))
    return found


def _in_csv(rows: Sequence[Row]) -> list[bytes]:
    def text(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return '"' + value.replace('"', '""') + '"'
        return str(value)

    return [",".join(map(text, row.values())).encode() for row in rows]


def _in_avro(rows: Sequence[Row]) -> list[bytes]:
    parsed, found = fastavro.parse_schema(AVRO), []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        found.append(out.getvalue())
    return found


def _in_protobuf(rows: Sequence[Row]) -> list[bytes]:
    made = GetMessageClass(message_named(parse_schema(PROTOBUF), None))
    return [made(**row).SerializeToString() for row in rows]


def _in_debezium(rows: Sequence[Row]) -> list[bytes]:
    source = {"version": "3.0.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": BASE_MS,
              "snapshot": "false", "db": "shop", "schema": "public", "table": "readings",
              "lsn": 24023128}  # fmt: skip
    event = {
        "before": None,
        "after": None,
        "source": source,
        "op": "c",
        "ts_ms": BASE_MS,
        "transaction": None,
    }
    return [orjson.dumps(event | {"after": row}) for row in rows]


Format = tuple[RecordFormat, Callable[[Sequence[Row]], list[bytes]], Mapping[str, str]]

FORMATS: Mapping[str, Format] = {
    "json": (USUAL, _in_json, {}),
    "json_nested": (USUAL, _in_nested_json, PATHS),
    "csv": (RecordFormat("csv"), _in_csv, {}),
    "avro": (RecordFormat("avro", schema=json.dumps(AVRO), framed=False), _in_avro, {}),
    "protobuf": (RecordFormat("protobuf", schema=PROTOBUF, framed=False), _in_protobuf, {}),
    "debezium": (RecordFormat("debezium", changelog=True), _in_debezium, {}),
}
"""By name: what is declared, what writes the records, and the paths of columns."""
