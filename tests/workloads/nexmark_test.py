"""Nexmark's queries that need one stream, on a published sample with published answers.

The answers are those of RisingWave's tests; our text of each query is in ``nexmark/`` and says what differs
from theirs. Q5 and Q7, published as joins of a stream with itself, need one stream as well.
"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from tests.workloads import loading

BID = """
CREATE STREAM bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP NOT NULL,
    extra STRING
) WITH (topic = 'bid', timestamp = 'date_time', idle_advances = true) RETAIN 3650 DAYS
"""
JOINS = {f"q{n}" for n in (3, 4, 8, 9, 20, 101, 102, 103, 104, 105, 106)} | {"q6_group_top1"}


@pytest.fixture(scope="module")
def sample() -> Path:
    return loading.folder("nexmark")


@pytest.fixture(scope="module")
def engine(sample: Path) -> Engine:
    engine = Engine()
    engine.create(BID)
    rows = sorted(loading.lines(sample / "sample" / "bid.ndjson"), key=lambda row: row["date_time"])
    loading.read(engine, "bid", rows)
    loading.let_time_pass(engine, "bid")
    return engine


def word(text: str) -> str:
    """One word of an answer; numbers to twelve digits."""
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text


def shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds").removesuffix(".000")
    return value.isoformat() if isinstance(value, date) else str(value)


def words(row: str) -> list[str]:
    return [word(text) for text in row.split()]


@pytest.mark.parametrize("text", loading.texts("nexmark"), ids=lambda text: text.stem)
def test_the_published_answer(engine: Engine, sample: Path, text: Path) -> None:
    published = (sample / "sample_answers" / f"{text.stem}.slt.part").read_text()
    expected = [words(row) for row in published.partition("----\n")[2].splitlines() if row.strip()]
    table = loading.answer(engine, text.read_text())
    rows = zip(*[column.to_pylist() for column in table.columns], strict=True)
    assert sorted(words(" ".join(shown(value) for value in row)) for row in rows) == sorted(expected)


def test_every_query_is_served_here_or_needs_a_join(sample: Path) -> None:
    published = {file.name.removesuffix(".slt.part") for file in (sample / "sample_answers").glob("q*.part")}
    assert {text.stem for text in loading.texts("nexmark")} == published - JOINS
