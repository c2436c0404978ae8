"""What a sampled aggregate says of itself: estimates without bias, intervals that hold as often as said."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.model.allotment import Allotment, ScanAllotment
from engine.model.step import Allocate, Register, Registration
from engine.overload.sampled_aggregates import widest_error
from tests.engine.feed import Feed
from tests.overload.sampled_aggregates import covers, estimate
from tests.queries.subscriptions import register, step

ROWS = 1_200
RUNS = 1_000
PERCENT = Decimal(20)
GIVEN = Allotment((ScanAllotment(percent=PERCENT),))


def fed() -> tuple[Feed, np.ndarray]:
    """Its last row stays above NOW; column v of the others."""
    values = np.random.default_rng(5).gamma(2.0, 10.0, ROWS)
    feed = Feed()
    feed.put(*[(place, "ab"[place % 2], float(v)) for place, v in enumerate([*values, 0.0])])
    return feed, values


def test_intervals_hold_and_nothing_is_biased() -> None:
    feed, values = fed()
    for call, truth in (("SUM(v)", values.sum()), ("AVG(v)", values.mean())):
        sql = f"SELECT {call} AS x FROM s SAMPLE(100 DOWN TO 1, %d)"
        names = [f"{call[0]}{seed}" for seed in range(RUNS)]
        step(feed, Register(tuple(Registration(name, sql % seed) for seed, name in enumerate(names))))
        assert not step(feed, Allocate(tuple((name, GIVEN) for name in names))).failed
        view = feed.engine.view()
        found, held = [], 0
        for name in names:
            answer = view.snapshot(name)
            (tag,) = answer.approximation
            value = float(answer.table.column(0)[0].as_py())
            found.append(value)
            held += covers(value, tag.expected.error, float(truth))
        assert held >= 0.93 * RUNS, call
        assert abs(np.mean(found) - truth) <= 4 * np.std(found) / math.sqrt(RUNS), call


def test_the_widest_of_all_groups_and_columns_is_told_and_what_is_of_the_sample_alone() -> None:
    feed, _ = fed()
    outputs = "k, COUNT(*) AS n, SUM(v) AS total, AVG(v) AS mean, MAX(v) AS most"
    sql = f"SELECT {outputs} FROM s SAMPLE(100 DOWN TO 1) GROUP BY k"
    register(feed, "q", sql)
    register(feed, "rows", "SELECT k, v FROM s SAMPLE(20)")
    step(feed, Allocate((("q", GIVEN),)))
    answer = feed.engine.view().snapshot("q")
    (tag,) = answer.approximation
    assert len(tag.unscaled) == 1
    errors = []
    for k, n, total, mean, most in (tuple(row.values()) for row in answer.table.to_pylist()):
        mine = [v for key, v in feed.rows("rows") if key == k]
        for value, function in ((n, "COUNT"), (total, "SUM"), (mean, "AVG")):
            expected, error = estimate(function, mine, float(PERCENT / 100))
            assert value == pytest.approx(expected, abs=0.5)
            errors.append(error)
        assert most == max(mine)
    assert tag.expected.error == pytest.approx(max(errors))


def test_what_the_text_samples_has_its_interval_and_says_what_is_of_the_sample() -> None:
    feed, values = fed()
    for call, truth, q in (
        ("COUNT(v)", ROWS, 0.2),
        ("SUM(v)", values.sum(), 0.2),
        ("AVG(v)", values.mean(), 1),
    ):
        held = 0
        for seed in range(200):
            query_id = f"{call[0]}{seed}"
            register(feed, query_id, f"SELECT {call} AS x, MAX(v) AS m FROM s SAMPLE(20, {seed})")
            answer = feed.engine.view().snapshot(query_id)
            (tag,) = answer.approximation
            assert len(tag.unscaled) == (1 if call.startswith("AVG") else 2)
            # COUNT and SUM are those of the sample: what they make of all rows is they by its share.
            value = float(answer.table.column(0)[0].as_py()) / q
            held += covers(value, tag.expected.error, float(truth))
        assert held >= 0.9 * 200, call


def test_an_answer_by_a_sketch_carries_the_bound_of_the_sketch() -> None:
    rng = np.random.default_rng(3)
    held = ranks = 0
    for _ in range(20):
        count = int(rng.integers(2_000, 20_000))
        values = rng.permutation(count).astype(np.float64)
        feed = Feed()
        feed.put(*[(place, None, float(v)) for place, v in enumerate([*values, -1.0])])
        sql = "SELECT APPROX_COUNT_DISTINCT(v) AS n, APPROX_QUANTILE(v, 0.3) AS m FROM s"
        register(feed, "q", sql)
        answer = feed.engine.view().snapshot("q")
        distinct, quantile = answer.approximation
        assert (distinct.kind, distinct.origin, distinct.unit) == ("synopsis", "declared", "bytes")
        (row,) = answer.table.to_pylist()
        assert distinct.expected.error is not None
        assert quantile.expected.rank_error is not None
        held += abs(row["n"] / count - 1) <= distinct.expected.error
        ranks += abs(row["m"] / count - 0.3) <= quantile.expected.rank_error
    assert held >= 18
    assert ranks == 20


@example(groups=[[9.51e-299]], q=0.1)
@example(groups=[[1e153] * 100, [3.0]], q=0.1)
@example(groups=[[1e300], []], q=0.5)
@given(
    groups=st.lists(
        st.lists(st.floats(-100, 100) | st.floats(-1e153, 1e153), max_size=5), min_size=1, max_size=6
    ),
    q=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_the_widest_error_is_that_of_the_estimates(groups: list[list[float]], q: float) -> None:
    sums = [(len(g), math.fsum(g), math.fsum(v * v for v in g)) for g in groups]
    count, total, squares = np.array(sums, np.float64).reshape(-1, 3).T
    for function, columns in (
        ("COUNT", (count,)),
        ("SUM", (count, total, squares)),
        ("AVG", (count, total, squares)),
    ):
        errors = [e for one in groups if (e := estimate(function, one, q)[1]) is not None]
        assert all(map(math.isfinite, errors))
        found = widest_error((function,), columns, q)
        assert found == (pytest.approx(max(errors)) if errors else None)
