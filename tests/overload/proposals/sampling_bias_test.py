"""Samples that are pushed down have no bias: by the chi-square statistic their values come as of all rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from engine.embedding import Embedding
from engine.model.batch import versions
from engine.model.source import Stream
from engine.overload.proposals.propose import rewrites
from tests.capacities import small_engine
from tests.strategies import batch_of

KEYS, ROWS, SEEDS, PERCENT = 20, 4_000, 25, 20
LIMIT = 4.0
"""Standard deviations; the samples are the same in each run."""

TEXTS = {
    "selection": "SELECT k FROM (SELECT k, id FROM a WHERE id % 3 <> 0) AS x SAMPLE({}) WHERE k <> 7",
    "projection": "SELECT k FROM (SELECT 2 * k AS k FROM a) AS x SAMPLE({})",
    "join with a table": "SELECT x.k FROM (SELECT k, id FROM a) AS x SAMPLE({}) JOIN d ON x.k = d.k",
}


@pytest.fixture(scope="module")
def engine() -> Embedding:
    made: Embedding = small_engine()
    made.create("CREATE STREAM a (id INT, k INT, ts TIMESTAMP NOT NULL) WITH (topic = 'a', timestamp = 'ts')")
    made.create(
        "CREATE TABLE d (k INT, ts TIMESTAMP NOT NULL, PRIMARY KEY (k)) WITH (topic = 'd', timestamp = 'ts')"
    )
    rng = np.random.default_rng(5)
    keys = (rng.random(ROWS) ** 2 * KEYS).astype(int).tolist()  # some come more often
    stream, table = made.catalogue["a"], made.catalogue["d"]
    assert isinstance(stream, Stream)
    assert isinstance(table, Stream)
    known = batch_of(table.schema, [(0, key, ROWS * (key // KEYS), (key, 0)) for key in range(KEYS + 1)])
    made.ingest("d", versions(table, known))
    made.ingest(
        "a", batch_of(stream.schema, [(at % 3, at // 3, at, (at, key, at)) for at, key in enumerate(keys)])
    )
    return made


def counted(engine: Embedding, sql: str) -> Counter[int]:
    engine.register("q", sql)
    found = Counter(engine.view().snapshot("q").table.column(0).to_pylist())
    engine.unregister("q")
    return found


def deviations(found: Counter[int], whole: Counter[int]) -> float:
    """How many standard deviations the chi-square statistic of kept and left rows is from its mean."""
    share = found.total() / whole.total()
    freedom = len(whole) - 1
    statistic = sum(
        (found[key] - share * count) ** 2 / (share * (1 - share) * count) for key, count in whole.items()
    )
    return float(abs(statistic - freedom) / np.sqrt(2 * freedom))


def pushed_down(engine: Embedding, sql: str) -> str:
    (found,) = [
        one.sql for one in rewrites(sql, engine.catalogue, engine.limits) if one.rule == "sample pushed down"
    ]
    return found


@pytest.mark.parametrize("sql", TEXTS.values(), ids=TEXTS)
def test_values_of_a_pushed_sample_come_as_often_as_of_all_rows(engine: Embedding, sql: str) -> None:
    whole = counted(engine, sql.replace(" SAMPLE({})", ""))
    found: Counter[int] = Counter()
    for seed in range(SEEDS):
        found += counted(engine, pushed_down(engine, sql.format(f"{PERCENT}, {seed}")))
    due = Counter({key: SEEDS * count for key, count in whole.items()})
    assert abs(found.total() / due.total() - PERCENT / 100) < 0.01
    assert deviations(found, due) < LIMIT
    # The statistic sees a sample that leaves a tenth of one value out.
    key, count = due.most_common(1)[0]
    found[key] -= round(count * PERCENT / 1000)
    assert deviations(found, due) > LIMIT
