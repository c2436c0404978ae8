"""Nexmark on a published sample with published answers: those of RisingWave's tests.

Our text of each query is in ``nexmark/`` and says what differs from theirs. Of query 13, which joins a table,
no answer is published; here it is computed by hand.
"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from tests.capacities import small_engine
from tests.workloads import loading

WITH = "WITH (topic = '{name}', timestamp = 'date_time', idle_advances = true) RETAIN 3650 DAYS"
COLUMNS = {
    "person": """
        id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING,
        date_time TIMESTAMP NOT NULL, extra STRING
    """,
    "auction": """
        id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT,
        date_time TIMESTAMP NOT NULL, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
    """,
    "bid": """
        auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
        date_time TIMESTAMP NOT NULL, extra STRING
    """,
}
SIDE_INPUT = """
CREATE TABLE side_input (key BIGINT PRIMARY KEY, value STRING, since TIMESTAMP NOT NULL)
WITH (topic = 'side_input', timestamp = 'since', idle_advances = true) RETAIN 3650 DAYS NON RETROACTIVE
"""


@pytest.fixture(scope="module")
def sample() -> Path:
    return loading.folder("nexmark")


@pytest.fixture(scope="module")
def engine(sample: Path) -> Engine:
    engine = small_engine()
    for name, columns in COLUMNS.items():
        engine.create(f"CREATE STREAM {name} ({columns}) {WITH.format(name=name)}")
        rows = sorted(loading.lines(sample / "sample" / f"{name}.ndjson"), key=lambda row: row["date_time"])
        loading.read(engine, name, rows)
    engine.create(SIDE_INPUT)
    _, change = bids_and_change(sample)
    first = [{"key": n, "value": f"old {n}", "since": "2015-01-01 00:00:00"} for n in range(5)]
    then = [{"key": n, "value": f"new {n}", "since": change} for n in range(0, 8, 2)]
    loading.read(engine, "side_input", [*first, *then])
    for name in (*COLUMNS, "side_input"):
        loading.let_time_pass(engine, name)
    return engine


def bids_and_change(sample: Path) -> tuple[list[dict[str, Any]], str]:
    """The bids in the order of time, and when the table changes, in their midst."""
    rows = sorted(loading.lines(sample / "sample" / "bid.ndjson"), key=lambda row: row["date_time"])
    return rows, rows[len(rows) // 2]["date_time"]


def word(text: str) -> str:
    """One word of an answer; numbers to twelve digits."""
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text


def shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds").removesuffix(".000")
    if value is None:
        return "NULL"
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


def test_the_version_of_a_table_that_held_at_a_bid(engine: Engine, sample: Path) -> None:
    """Query 13 with a key of 10 in place of 10,000, and a table that changed in the midst of the bids."""
    rows, change = bids_and_change(sample)
    expected = []
    for row in rows:
        key, later = row["auction"] % 10, row["date_time"] >= change
        age = "new" if later and key in (0, 2, 4, 6) else "old" if key < 5 else None
        if age is not None:
            expected.append([row["auction"], row["price"], f"{age} {key}"])
    assert {row[2][:3] for row in expected} == {"old", "new"}
    table = loading.answer(
        engine,
        """
        SELECT B.auction, B.price, S.value
        FROM bid AS B JOIN side_input AS S ON B.auction % 10 = S.key
        """,
    )
    assert sorted(list(row.values()) for row in table.to_pylist()) == sorted(expected)


def test_every_query_is_served(sample: Path) -> None:
    published = {file.name.removesuffix(".slt.part") for file in (sample / "sample_answers").glob("q*.part")}
    assert {text.stem for text in loading.texts("nexmark")} == published
