"""Archives as the archive job leaves them, written without Spark, and what plain Python folds of them."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from storage.archive.coverage import Coverage, Covered
from storage.archive.layout import RESULT_SCHEMA, table_uri
from tureen.results import ResultFold

TABLE_SCHEMA = pa.schema(
    [
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_timestamp", pa.int64()),
        ("_date", pa.date32()),
        ("_hour", pa.int32()),
        ("_deleted", pa.bool_()),
        ("id", pa.int64()),
        ("city", pa.string()),
        ("seen", pa.timestamp("us", "UTC")),
        ("copies", pa.int64()),  # a name that histories of results have, and a table may have, too
    ]
)
STREAM_SCHEMA = pa.schema([field for field in TABLE_SCHEMA if field.name != "_deleted"])
COPIES = 3
START_MS = 1_700_000_000_000


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)


def placed(partition: int, offset: int, ms: int) -> dict[str, Any]:
    """The archive's own columns of a record."""
    when = at(ms)
    return {
        "_partition": partition,
        "_offset": offset,
        "_timestamp": ms,
        "_date": when.date(),
        "_hour": when.hour,
    }


def append(
    uri: str, rows: Sequence[dict[str, Any]], schema: pa.Schema, by: list[str], topic_id: str = "life"
) -> None:
    """One commit of the archive job."""
    covered = coverage(uri)
    partitions = dict(covered.partitions) if covered else {}
    for row in rows:
        one = Covered(row["_offset"], row["_offset"] + 1, row["_timestamp"])
        before = partitions.get(row["_partition"])
        partitions[row["_partition"]] = one.union(before) if before else one
    complete = {} if covered is None else {"complete_from_ms": covered.complete_from_ms}
    told = Coverage(Path(uri).name, partitions, topic_id=topic_id, **complete)
    deltalake.write_deltalake(
        uri,
        pa.Table.from_pylist(list(rows), schema),
        mode="append",
        partition_by=by,
        commit_properties=deltalake.CommitProperties(custom_metadata={"userMetadata": told.to_text()}),
    )


def coverage(uri: str) -> Coverage | None:
    """What a table's commits say now."""
    from storage.archive.coverage import in_force

    if not deltalake.DeltaTable.is_deltatable(uri):
        return None
    return in_force(commit.get("userMetadata") for commit in deltalake.DeltaTable(uri).history(20))


# --- result topics --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """A record of a result topic, as Kafka has it and as the archive does."""

    query_id: str
    form: str
    key: bytes
    value: bytes | None
    archived: dict[str, Any]

    @property
    def at_ms(self) -> int:
        return int(self.archived["at_ms"])


def results(seed: int, count: int) -> list[Record]:
    """Changes of the answers of queries in three formats, and records without a key.

    Keys come, go, come again, and are replaced within one instant; equal rows are several in diff.
    """
    chance = random.Random(seed)
    queries = {"qa": "upsert", "qb": "debezium", "qc": "diff", "qd": "upsert"}
    offsets = [0, 0]
    bags: dict[str, list[dict[str, Any]]] = {query: [] for query in queries}
    now = START_MS
    found: list[Record] = []

    def record(query: str, key: dict[str, Any], value: dict[str, Any] | None, **said: Any) -> None:
        partition = len(found) % 2 if query == "log" else sorted(queries).index(query) % 2
        form = queries.get(query, "upsert")
        key = {"query": query} | key
        archived = placed(partition, offsets[partition], now + chance.randrange(100))
        del archived["_hour"]
        offsets[partition] += 1
        texts = {name: _text(one) if name in ("row", "before") else one for name, one in said.items()}
        archived |= {
            "query_id": query, "format": form, "encoding": "json", "kind": "log" if query == "log" else "row",
            "key": json.dumps(key.get("key", key.get("row"))), "position": f"1-{len(found)}",
            "sequence": len(found), "at_ms": now,
        } | texts  # fmt: skip
        found.append(
            Record(
                query, form, _text(key).encode(), None if value is None else _text(value).encode(), archived
            )
        )

    while len(found) < count:
        now += chance.choice([0, 0, 1, 7, 3_600_000, 20_000_000])
        query = chance.choice([*queries, "log"])
        v = chance.choice([0, 1, 2, 3])
        row = {"v": v, "n": chance.randrange(3), "name": chance.choice(['Z"ü', "", None])}
        if query == "log":
            record("log", {"row": f"{len(found)}-0"}, row, row=row)
            continue
        bag = bags[query]
        if query == "qc":
            if bag and chance.random() < 0.5:
                gone = bag.pop(chance.randrange(len(bag)))
                record(query, _hash(gone), {"row": gone, "weight": -1}, op="d", row=gone, weight=-1)
            else:
                bag.append(row)
                record(query, _hash(row), {"row": row, "weight": 1}, op="c", row=row, weight=1)
            continue
        before = next((one for one in bag if one["v"] == v), None)
        after = None if before is not None and chance.random() < 0.5 else row
        bags[query] = [one for one in bag if one["v"] != v] + ([after] if after else [])
        op = "d" if after is None else "u" if before or query != "qb" else "c"
        value = {"before": before, "after": after, "op": op, "ts_ms": now} if query == "qb" else after
        record(query, {"key": {"v": v}}, value, op=op, row=after, before=before)
    return found


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _hash(row: dict[str, Any]) -> dict[str, str]:
    text = _text(row)
    assert text is not None
    return {"row": hashlib.sha256(text.encode()).hexdigest()[:32]}


def archive_results(root: Path, topic: str, records: Iterable[Record]) -> None:
    rows = [record.archived for record in records]
    append(table_uri(str(root), "results", topic), rows, RESULT_SCHEMA, ["_date"])


def answer(records: Iterable[Record], query: str) -> list[str]:
    """The rows that a client folds from the records, as texts in order."""
    records = list(records)
    form = next((one.form for one in records if one.query_id == query), "upsert")
    fold = ResultFold(query, form)  # type: ignore[arg-type]
    for one in records:
        fold.apply(one.key, one.value)
    return sorted(str(_text(row)) for row in fold.rows())


# --- declared tables ------------------------------------------------------------------------------


def versions(seed: int, count: int) -> list[dict[str, Any]]:
    """Records of a compacted topic: late ones, ties, deletions of what is not there, rows that come again."""
    chance = random.Random(seed)
    offsets = [0, 0]
    found = []
    for number in range(count):
        key = chance.randrange(5)
        ms = START_MS + number * 1_000 + chance.choice([0, 0, -1_000, -5_500, 3_600_000])
        deleted = chance.random() < 0.35
        one = placed(key % 2, offsets[key % 2], ms) | {
            "_deleted": deleted,
            "id": key,
            "city": None,
            "seen": None,
        }
        if not deleted:
            one |= {"city": chance.choice(["Bern", "Zug", None]), "seen": at(ms), "copies": COPIES}
        offsets[key % 2] += 1
        found.append(one)
    return found


def archive_versions(root: Path, name: str, rows: Sequence[dict[str, Any]]) -> None:
    append(table_uri(str(root), "streams", name), rows, TABLE_SCHEMA, ["_date", "_hour"])


def relation(rows: Iterable[dict[str, Any]], at_ms: int | None = None) -> list[tuple[Any, ...]]:
    """The table's rows as of an instant (None: the end), by key."""
    found: dict[int, dict[str, Any]] = {}
    for one in sorted(rows, key=lambda one: (one["_timestamp"], one["_partition"], one["_offset"])):
        if at_ms is None or one["_timestamp"] <= at_ms:
            found[one["id"]] = one
    return sorted((one["id"], one["city"]) for one in found.values() if not one["_deleted"])
