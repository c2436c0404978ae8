"""What a shard keeps in the checkpoint: found again by any process, refused where it is not what it was."""

from __future__ import annotations

import random
from pathlib import Path

import orjson
import pytest

from engine.model.step import Step
from spark_jobs.errors import CheckpointMismatch, CheckpointUnreadable
from spark_jobs.scale_out.shards import shard as at_work
from spark_jobs.scale_out.shards.entries import StoredEntry, decode_entries, encode_entries
from spark_jobs.scale_out.shards.layout import Layout
from spark_jobs.scale_out.shards.state import open_shards
from tests.scale_out.sharded import Round, Sharded, net_of
from tests.scale_out.shards_keyed import KEYS, QUERIES, history

LAYOUT = Layout(2, KEYS)


def begun(checkpoint: Path, snapshot_batches: int = 4) -> tuple[Sharded, list[Round]]:
    """A run of some micro-batches."""
    rng = random.Random(7)
    sharded = Sharded(str(checkpoint), LAYOUT, rng, snapshot_batches)
    steps: list[Step] = list(history(rng, QUERIES[:5]))
    rounds = list(sharded.rounds(steps))
    return sharded, rounds


def files(checkpoint: Path, shard: int) -> list[str]:
    return sorted(one.name for one in (checkpoint / "shards" / str(shard)).iterdir())


def numbers(names: list[str], kind: str) -> list[int]:
    return sorted(int(one.split("-")[1].split(".")[0]) for one in names if one.startswith(kind))


def test_old_pieces_go_and_what_is_needed_stays(tmp_path: Path) -> None:
    sharded, rounds = begun(tmp_path)
    for one in rounds:
        told = sharded.shard(0, one)
        names = files(tmp_path, 0)
        snapshots = numbers(names, "engine")
        assert len(snapshots) <= 2
        assert numbers(names, "rows")[-1] == one.batch.number
        assert told.needed_from == (snapshots[0] + 1 if len(snapshots) > 1 else 1)
        assert numbers(names, "rows") == [*range(told.needed_from, one.batch.number + 1)]
    assert len(snapshots) == 2
    assert told.rows > 0


def test_any_process_takes_over_at_any_point(tmp_path: Path) -> None:
    """One goes on, one begins anew at each micro-batch, and takes each turn twice."""
    sharded, rounds = begun(tmp_path / "one")
    other, same = begun(tmp_path / "two")
    for one, again in zip(rounds, same, strict=True):
        at_work.forget()
        first = sharded.shard(1, one)
        at_work.forget()
        second = sharded.shard(1, one)
        assert sharded.shard(1, one) is second
        assert net_of(second.changes) == net_of(first.changes) == net_of(other.shard(1, again).changes)
        assert second.outputs == first.outputs
        assert second.rows == first.rows


def test_rows_that_are_missing_are_told(tmp_path: Path) -> None:
    sharded, rounds = begun(tmp_path, snapshot_batches=1_000)
    for one in rounds[:6]:
        sharded.shard(0, one)
    at_work.forget()
    (tmp_path / "shards" / "0" / "rows-3.arrow").unlink()
    with pytest.raises(CheckpointUnreadable, match=r"rows-3\.arrow cannot be read: it is missing"):
        sharded.shard(0, rounds[6])


def test_a_damaged_snapshot_is_told(tmp_path: Path) -> None:
    sharded, rounds = begun(tmp_path)
    for one in rounds[:8]:
        sharded.shard(0, one)
    at_work.forget()
    last = numbers(files(tmp_path, 0), "engine")[-1]
    path = tmp_path / "shards" / "0" / f"engine-{last}.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(CheckpointUnreadable, match=path.name):
        sharded.shard(0, rounds[8])
    path.write_bytes(bytes(data[: len(data) // 2]))
    with pytest.raises(CheckpointUnreadable, match=path.name):
        sharded.shard(0, rounds[8])


def test_other_rows_for_a_micro_batch_are_refused(tmp_path: Path) -> None:
    sharded, rounds = begun(tmp_path)
    there = next(one for one in rounds if any(len(rows) > 3 for rows in one.rows.values()))
    for one in rounds[: there.batch.number]:
        sharded.shard(LAYOUT.whole_shard, one)
        sharded.shard(0, one)
        sharded.shard(1, one)
    at_work.forget()
    there.rows = {name: rows.slice(0, max(0, len(rows) - 3)) for name, rows in there.rows.items()}
    with pytest.raises(CheckpointMismatch, match="other rows"):
        [sharded.shard(shard, there) for shard in LAYOUT.every]


def test_another_layout_is_refused(tmp_path: Path) -> None:
    run = open_shards(str(tmp_path), LAYOUT)
    assert open_shards(str(tmp_path), LAYOUT) == run
    with pytest.raises(CheckpointMismatch, match=r"cut as 2 shards, fares by k.* not as 3 shards"):
        open_shards(str(tmp_path), Layout(3, KEYS))
    with pytest.raises(CheckpointMismatch, match="s whole as well"):
        open_shards(str(tmp_path), Layout(2, KEYS, frozenset({"s"})))
    path = tmp_path / "shards" / "layout.json"
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "v": 99}))
    with pytest.raises(CheckpointUnreadable, match="version 99"):
        open_shards(str(tmp_path), LAYOUT)
    path.write_bytes(b"{")
    with pytest.raises(CheckpointUnreadable, match="damaged"):
        open_shards(str(tmp_path), LAYOUT)


def test_files_of_another_version_are_refused() -> None:
    entries = [StoredEntry("rows", "s", 3, b"123"), StoredEntry("rows", "t", 0, b"")]
    data = encode_entries({"digest": "d"}, entries)
    assert decode_entries(data, "f") == ({"v": 1, "digest": "d"}, entries)
    assert decode_entries(encode_entries({}, []), "f") == ({"v": 1}, [])
    with pytest.raises(CheckpointUnreadable, match="version 2"):
        decode_entries(encode_entries({"v": 2}, entries), "f")
    for bad in (data[: len(data) // 2], b"", data[1:], b"no such thing"):
        with pytest.raises(CheckpointUnreadable, match="damaged"):
            decode_entries(bad, "f")
