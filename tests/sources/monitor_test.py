"""What is observed of streams: for the columns of live queries, and the k that rows need."""

from __future__ import annotations

from typing import Any

import pytest

from engine.engine import Engine
from engine.model.constraint import References
from engine.model.source import SourceName
from engine.sources.monitor import CYCLE_ROWS, STRETCH_ROWS
from tests.capacities import small_engine
from tests.engine.feed import Feed
from tests.sources.references import Fed
from tureen.errors import AttributeRefused


def observed(engine: Engine) -> dict[str, dict[str, Any]]:
    """Attributes of constraints, by id."""
    return {name: found for name, found in engine.stats().items() if name.startswith("constraint/")}


def test_columns_of_live_queries_are_observed_as_long_as_they_live() -> None:
    feed = Feed("SELECT k, COUNT(*) FROM s GROUP BY k", "SELECT DISTINCT v FROM s")
    feed.engine.register("j", "SELECT a.k FROM s a JOIN s b ON a.v = b.v AND a.k = b.k")
    feed.engine.register("p", "SELECT k, COUNT(*) FROM s WHERE v > 1 GROUP BY k, UPPER(k)")
    assert not observed(feed.engine)
    feed.engine.revisions.revise({}, 1.0)
    assert observed(feed.engine).keys() == {
        "constraint/s/CLUSTERED (k)",
        "constraint/s/ORDERED (v)",
        "constraint/s/CLUSTERED (v)",
        "constraint/s/CLUSTERED (k, v)",
    }
    for query in ("q0", "j"):
        feed.engine.unregister(query)
    for _ in range(2):
        feed.engine.revisions.revise({}, 1.0)
    assert observed(feed.engine).keys() == {"constraint/s/ORDERED (v)", "constraint/s/CLUSTERED (v)"}


def test_k_is_what_rows_need() -> None:
    feed = Feed("SELECT v, COUNT(*) FROM s GROUP BY v", "SELECT k, v FROM s GROUP BY k, v")
    feed.engine.edit("monitor/s", {"mode": "every"})
    feed.engine.revisions.revise({}, 1.0)
    values = [float(n) for n in range(2_000)]
    values[100], values[103] = values[103], values[100]
    values[1_500] = values[1_490]
    feed.put(*((at, "a", value) for at, value in enumerate(values)))
    feed.now(2_000)
    found = observed(feed.engine)
    assert found["constraint/s/ORDERED (v)"] == {"k_observed": 9, "k_usual": 0}
    assert found["constraint/s/CLUSTERED (v)"] == {"k_observed": 9, "k_usual": 0}
    assert found["constraint/s/CLUSTERED (k, v)"]["k_observed"] == 9
    assert feed.engine.stats()["monitor/s"]["observed_rows"] == 2_000

    feed.engine.edit("monitor/s", {"mode": "off"})
    feed.put(*((2_000 + at, "a", 0.0) for at in range(1_100)))
    feed.now(4_000)
    assert observed(feed.engine)["constraint/s/ORDERED (v)"] == {"k_observed": None, "k_usual": None}
    with pytest.raises(AttributeRefused):
        feed.engine.edit("monitor/s", {"mode": "always"})


def test_a_declared_k_stands_beside_the_observed_one() -> None:
    engine = small_engine()
    engine.create(
        "CREATE STREAM t (id BIGINT, ts TIMESTAMP, CONSTRAINT UNIQUE (id), "
        "CONSTRAINT ORDERED (id) WITHIN 7 ROWS) WITH (timestamp = 'ts')"
    )
    nothing = {"k_observed": None, "k_usual": None, "violations": 0, "values_forgotten": 0}
    assert observed(engine) == {
        "constraint/t/UNIQUE (id)": {"k_declared": None} | nothing,
        "constraint/t/ORDERED (id)": {"k_declared": 7} | nothing,
        "constraint/t/CLUSTERED (id)": {"k_observed": None, "k_usual": None},
    }


@pytest.mark.parametrize(("within", "longest"), [((4, None), 3), ((None, 9), 6)])
def test_how_long_rows_wait_for_their_match(within: tuple[int | None, int | None], longest: int) -> None:
    fed = Fed(References(("n",), SourceName("s"), ("id",), *within))
    fed.put("s", [(0, 0, "a", 1), (1, 5, "a", 2)])
    fed.put("f", [(0, 5, "a", 1), (1, 6, "a", 5), (2, 7, "a", 4), (3, 8, None, None)])
    fed.put("s", [(2, 8, "a", 3), (3, 10, "a", 4), (4, 12, "a", 5)])
    fed.put("s", [(number, 20 + number, "a", 10 + number) for number in range(5, 12)])
    fed.flush()
    assert fed.lacking() == []
    found = observed(fed.engine)["constraint/f/REFERENCES (n) TO s (id)"]
    assert found == {
        "k_declared": within[0] if within[1] is None else within[1],
        "k_observed": longest,
        "k_usual": None,
        "violations": 0,
        "values_forgotten": 0,
    }


def test_a_sample_looks_at_stretches_each_for_itself() -> None:
    feed = Feed("SELECT v, COUNT(*) FROM s GROUP BY v")
    feed.engine.revisions.revise({}, 1.0)
    feed.put((0, "a", 1e9), *((at, "a", float(at)) for at in range(1, STRETCH_ROWS)))
    assert observed(feed.engine)["constraint/s/ORDERED (v)"]["k_observed"] == STRETCH_ROWS - 2
    for start in range(STRETCH_ROWS, CYCLE_ROWS + 2_000, 2_000):
        feed.put(*((at, "a", float(at)) for at in range(start, start + 2_000)))
    found = observed(feed.engine)["constraint/s/ORDERED (v)"]
    assert STRETCH_ROWS - 2 <= found["k_observed"] <= STRETCH_ROWS + 2_000
    assert found["k_usual"] > 0
    assert STRETCH_ROWS <= feed.engine.stats()["monitor/s"]["observed_rows"] < STRETCH_ROWS + 8_000


@pytest.mark.parametrize("cut", [1, 3, 50])
def test_waits_for_partners_are_counted_in_rows_of_the_other_stream(cut: int) -> None:
    fed = Fed(None)
    for name in "fs":
        fed.engine.edit(f"monitor/{name}", {"mode": "every"})
    fed.engine.revisions.revise({}, 1.0)
    refers = [(number, 10 * number, None, number % 7) for number in range(20)]
    comes = [(number, 10 * number + 3 + 15 * (number % 3), None, number) for number in range(20)]
    comes.sort(key=lambda row: row[1])
    comes = [(offset, *row[1:]) for offset, row in enumerate(comes)]
    for start in range(0, 20, cut):
        fed.put("f", refers[start : start + cut])
        fed.put("s", comes[start : start + cut])
    fed.flush()
    waits = [
        (k, partner[1] - row[1])
        for row in refers
        for place, partner in enumerate(comes)
        if partner[3] == row[3]
        for k in [place + 1 - sum(other[1] <= row[1] for other in comes) if partner[1] > row[1] else 0]
    ]
    found = observed(fed.engine)["constraint/f/REFERENCES (n) TO s (id)"]
    assert found["k_observed"] == max(k for k, _ in waits) > 0
    assert found["wait_ms"] == max(ms for _, ms in waits)
    assert observed(fed.engine)["constraint/s/REFERENCES (id) TO f (n)"]["k_observed"] is not None
