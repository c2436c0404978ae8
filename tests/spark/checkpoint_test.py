"""Whose a checkpoint is, where several runs come to it at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs import checkpoint
from spark_jobs.checkpoint import BID, NAME, Identity, claim
from spark_jobs.errors import CheckpointMismatch

RUNS = 6
IDENTITY = Identity("job", {"topic": "a"})


def test_of_runs_that_begin_at_once_one_makes_it(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with ThreadPoolExecutor(RUNS) as runs:
        found = list(runs.map(lambda _: claim(spark, str(path), IDENTITY), range(RUNS)))
    assert len({one.id for one in found}) == 1
    assert [one.name for one in path.iterdir() if not one.name.endswith(".crc")] == [NAME]


@pytest.mark.parametrize("other", ["0", "f"])
def test_a_bid_that_stays_is_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(checkpoint, "BIDS_S", 0.3)
    bid = tmp_path / f"{BID}{other * 32}"
    bid.write_text("{}")
    with pytest.raises(CheckpointMismatch, match="is being taken") as caught:
        claim(spark, str(tmp_path), IDENTITY)
    assert BID in str(caught.value.hint)
    bid.unlink()
    assert claim(spark, str(tmp_path), IDENTITY).fresh
