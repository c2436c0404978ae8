"""Archived streams read back: order, each row once, the files of an hour alone, older files, errors."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.batch import Batch, concatenate, versions
from engine.model.source import Field, Schema, Stream
from engine.model.types import BIGINT, DOUBLE, STRING, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, Kind
from storage.archive import layout
from storage.archive.errors import ArchiveMismatch, ArchiveMissing, ArchiveUnreadable, ColumnMismatch
from storage.archive.reader import Archive, ArchivedStream
from storage.archive.rows import to_batch, to_table
from tests.storage.archive.cases import STREAM, TABLE, H, commit, covered, rows
from tests.strategies import batches, examples, schemas
from tureen.errors import LimitExceeded

EVER = {"from_ms": TIMESTAMP_MS_MIN, "until_ms": TIMESTAMP_MS_MAX + 1}
MANY = 1_000_000


def opened(root: Path, name: str = "orders") -> ArchivedStream:
    found = Archive(str(root)).stream(name)
    assert found is not None
    return found


def told(batch: Batch) -> list[tuple[int, int, int, tuple[object, ...]]]:
    """(timestamp, partition, offset, values without the timestamp)."""
    declared = [one.to_arrow().to_pylist() for one in batch.columns if one.type.kind is not Kind.TIMESTAMP]
    place = (batch.timestamp.tolist(), batch.partition.tolist(), batch.offset.tolist())
    return list(zip(*place, zip(*declared, strict=True), strict=True))


def all_of(stream: ArchivedStream, of: Stream = STREAM, **asked: int) -> list[tuple[int, int, int, object]]:
    asked = {**EVER, "rows_max": MANY, **asked}
    return [row for batch in stream.rows(of, **asked) for row in told(batch)]


def test_rows_come_in_order_each_once(tmp_path: Path) -> None:
    late, doubled = (0, 5, 3, (5, "late")), (1, 0, 7, (6, "again"))
    commit(tmp_path, rows((0, 0, 7, (1, "a")), doubled, (0, 1, 2 * H, (2, None))), covered(2))
    commit(tmp_path, rows(late, doubled, (0, 2, 2 * H, (3, "b")), (0, 3, H, (4, ""))), covered(6))
    assert all_of(opened(tmp_path)) == [
        (3, 0, 5, (5, "late")),
        (7, 0, 0, (1, "a")),
        (7, 1, 0, (6, "again")),
        (H, 0, 3, (4, "")),
        (2 * H, 0, 1, (2, None)),
        (2 * H, 0, 2, (3, "b")),
    ]


def test_a_part_of_the_time(tmp_path: Path) -> None:
    commit(tmp_path, rows(*((0, n, n * H // 4, (n, "x")) for n in range(16))), covered(16))
    archived = opened(tmp_path)
    assert [row[2] for row in all_of(archived, from_ms=H // 2, until_ms=2 * H)] == [2, 3, 4, 5, 6, 7]
    assert archived.count(H // 2, 2 * H) == 6
    assert archived.count(H, 3 * H + 1) == 9
    assert archived.count(50 * H, 60 * H) == archived.count(H, H) == 0
    assert all_of(archived, from_ms=5, until_ms=5) == []


def test_an_hour_is_read_from_its_files_alone(tmp_path: Path) -> None:
    for first in (0, 50):
        told = ((0, first + n, n * H + first, (n, "x")) for n in range(48))
        uri = commit(tmp_path, rows(*told), covered(first + 48))
    archived = opened(tmp_path)
    directories = {path.parent for path in Path(uri).rglob("*.parquet")}
    assert len(directories) == 48
    for directory in directories:
        if (directory.parent.name, directory.name) != ("_date=1970-01-02", "_hour=5"):
            shutil.rmtree(directory)
    assert [row[2] for row in all_of(archived, from_ms=29 * H, until_ms=30 * H)] == [29, 79]
    assert archived.count(29 * H, 30 * H) == 2
    with pytest.raises(ArchiveUnreadable, match=r"gone|No such file|Failed to open"):
        all_of(archived)


def test_the_limit_counts_before_it_reads(tmp_path: Path) -> None:
    commit(tmp_path, rows(*((0, n, n, (n, "x")) for n in range(10))), covered(10))
    assert len(all_of(opened(tmp_path), rows_max=10)) == 10
    with pytest.raises(LimitExceeded) as refused:
        opened(tmp_path).rows(STREAM, **EVER, rows_max=9)
    assert (refused.value.limit, refused.value.got) == ("archive_rows_max", 10)


def test_columns_that_old_files_lack_are_null(tmp_path: Path) -> None:
    wider = replace(
        STREAM, schema=Schema((*STREAM.schema.fields[:2], Field("price", DOUBLE), STREAM.schema.fields[2]))
    )
    commit(tmp_path, rows((0, 0, 1, (1, "a"))), covered(1))
    assert all_of(opened(tmp_path), wider) == [(1, 0, 0, (1, "a", None))]  # before anybody wrote the column
    commit(tmp_path, rows((0, 1, 2, (2, "b", 1.5)), stream=wider), covered(2), wider, schema_mode="merge")
    assert all_of(opened(tmp_path), wider) == [(1, 0, 0, (1, "a", None)), (2, 0, 1, (2, "b", 1.5))]
    assert all_of(opened(tmp_path)) == [
        (1, 0, 0, (1, "a")),
        (2, 0, 1, (2, "b")),
    ]  # and one that is declared no more


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    commit(tmp_path, rows((0, 0, 1, (1, "a"))), covered(1))
    other = replace(STREAM, schema=Schema((Field("id", STRING), *STREAM.schema.fields[1:])))
    with pytest.raises(ColumnMismatch) as refused:
        opened(tmp_path).rows(other, **EVER, rows_max=9)
    assert (refused.value.name, refused.value.archived, refused.value.declared) == ("id", "int64", "string")
    with pytest.raises(ArchiveMismatch, match="has the rows of a stream"):
        opened(tmp_path).chunks_backward(replace(TABLE, name=STREAM.name), 0, 1, 1)


def test_versions_of_a_table(tmp_path: Path) -> None:
    there = rows((0, 0, 1, ("bern", 1)), (0, 1, 2, ("bern", None)), stream=TABLE)
    commit(tmp_path, versions(TABLE, there, np.array([False, True])), covered(2), TABLE)
    (batch,) = opened(tmp_path, "cities").rows(TABLE, **EVER, rows_max=9)
    assert batch.schema == TABLE.stored_schema
    assert batch.to_arrow().to_pylist() == [
        {"city": "bern", "n": 1, "deleted": False},
        {"city": "bern", "n": None, "deleted": True},
    ]


INSTANTS = st.lists(st.integers(0, 30 * H // 5_000).map(lambda n: n * 5_000), max_size=40)


@given(INSTANTS, st.integers(1, 15), st.sampled_from(["hour", "day"]))
@settings(max_examples=examples(12))
def test_chunks_backward_are_the_rows_whatever_a_partition_holds(
    tmp_path_factory: pytest.TempPathFactory, instants: list[int], size: int, by: layout.PartitionBy
) -> None:
    root = tmp_path_factory.mktemp("archive")
    until_ms = 25 * H
    half = len(instants) // 2
    told_rows = [(n % 2, n, at, (n, "x")) for n, at in enumerate(instants)]
    commit(root, rows(*told_rows[:half]), covered(half), by=by)
    commit(root, rows(*told_rows[half:]), covered(len(instants)), by=by)
    archived = opened(root)
    forward = all_of(archived, from_ms=1_000, until_ms=until_ms)
    chunks = list(archived.chunks_backward(STREAM, 1_000, until_ms, size))
    assert [row for chunk in reversed(chunks) for row in told(chunk)] == forward
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert len(forward) == archived.count(1_000, until_ms) == sum(1_000 <= at < until_ms for at in instants)
    assert sorted(forward) == forward


@given(st.data())
def test_every_value_comes_back(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    stream = replace(STREAM, schema=schema)
    batch = data.draw(batches(schema))
    again = to_batch(stream, to_table(stream, batch))
    assert again.to_arrow().equals(batch.to_arrow()) or _equal_with_nan(again, batch)
    assert again.timestamp.tolist() == batch.timestamp.tolist()
    assert concatenate(schema, [again, batch]) is not None


def _equal_with_nan(one: Batch, other: Batch) -> bool:
    return [str(row) for row in one.to_arrow().to_pylist()] == [
        str(row) for row in other.to_arrow().to_pylist()
    ]


def test_every_value_comes_back_from_files(tmp_path: Path) -> None:
    edges = rows(
        (0, 0, TIMESTAMP_MS_MIN, (-(2**63), "")),
        (2, 2**40, TIMESTAMP_MS_MAX, (2**63 - 1, "日本\0")),
        (1, 1, -1, (0, None)),
    )
    commit(tmp_path, edges, covered(1))
    assert all_of(opened(tmp_path)) == [
        (TIMESTAMP_MS_MIN, 0, 0, (-(2**63), "")),
        (-1, 1, 1, (0, None)),
        (TIMESTAMP_MS_MAX, 2, 2**40, (2**63 - 1, "日本\0")),
    ]


def test_a_version_stays_what_it_was(tmp_path: Path) -> None:
    commit(tmp_path, rows((0, 0, 1, (1, "a"))), covered(1))
    before = opened(tmp_path)
    commit(tmp_path, rows((0, 1, 2, (2, "b"))), covered(2))
    assert (len(all_of(before)), before.coverage.partitions[0].next_offset, before.version) == (1, 1, 0)
    after = opened(tmp_path)
    assert (len(all_of(after)), after.coverage.partitions[0].next_offset, after.version) == (2, 2, 1)


def test_coverage_outlives_commits_that_say_nothing(tmp_path: Path) -> None:
    uri = commit(tmp_path, rows((0, 0, 1, (1, "a"))), covered(1))
    commit(tmp_path, rows((0, 1, 2, (2, "b"))), covered(2))
    DeltaTable(uri).optimize.compact()
    archived = opened(tmp_path)
    assert archived.coverage.partitions[0].next_offset == 2
    assert len(all_of(archived)) == 2


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArchiveMissing):
        Archive(str(tmp_path / "nowhere")).stream("orders")
    assert Archive(str(tmp_path)).stream("orders") is None


def test_what_cannot_be_read(tmp_path: Path) -> None:
    uri = commit(tmp_path, rows((0, 0, 1, (1, "a"))), None)
    with pytest.raises(ArchiveUnreadable, match="none of its newest commits"):
        opened(tmp_path)
    commit(tmp_path, rows((0, 1, 2, (2, "b"))), covered(2))
    (file,) = (path for path in Path(uri).rglob("*.parquet") if path.stat().st_mtime_ns == _newest(uri))
    file.write_bytes(b"not parquet")
    archived = opened(tmp_path)
    with pytest.raises(ArchiveUnreadable):
        all_of(archived)
    (Path(uri) / "_delta_log" / f"{1:020}.json").write_text("broken")
    with pytest.raises(ArchiveUnreadable):
        opened(tmp_path)


def _newest(uri: str) -> int:
    return max(path.stat().st_mtime_ns for path in Path(uri).rglob("*.parquet"))


def test_names_of_any_characters(tmp_path: Path) -> None:
    odd = replace(
        STREAM,
        name="a b/../c",
        schema=Schema((Field("x, y", BIGINT), Field("Ünï~", STRING))),
        timestamp_column=None,
    )  # type: ignore[arg-type]
    uri = commit(tmp_path, rows((0, 0, 1, (1, "a")), stream=odd), covered(1), odd)
    assert Path(uri).parent == tmp_path / "streams"
    assert layout.table_name(Path(uri).name) == "a b/../c"
    assert all_of(opened(tmp_path, "a b/../c"), odd) == [(1, 0, 0, (1, "a"))]
