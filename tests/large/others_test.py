"""Summaries, queries with a preference and shards over thousands of rows and keys."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from engine.engine import Engine
from engine.model.source import SourceName, Stream
from engine.model.step import CreateSource, Heartbeat, Position, Records, Register, Registration, Step
from engine.model.summary import SummaryDefinition, SummarySettings
from spark_jobs.scale_out.shards.layout import Layout
from tests.capacities import small_engine
from tests.differential.agreement import plain_rows
from tests.engine.preferences import ALL, JOIN, PREFERRED, Feed
from tests.large.course import SOURCES, Course
from tests.large.families import FAMILIES
from tests.scale_out.shards_same_answers import agree_on
from tests.summaries.summary import Rows, check

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("theta", [0.0, 0.7])
def test_summaries_count_thousands_of_values(theta: float) -> None:
    rng, n = np.random.default_rng(7), 5_000
    common = rng.integers(0, 20, n)
    values = np.where(rng.random(n) < 0.9, common, rng.integers(-(2**63), 2**63 - 1, n))
    given = Rows(
        tuple(None if one < 0.02 else int(value) for one, value in zip(rng.random(n), values, strict=True)),
        tuple(np.cumsum(rng.integers(0, 3, n)).tolist()),
    )
    settings = SummarySettings(sketch_depth=4, sketch_width=8, buckets=3, theta=theta, zone_rows_min=40)
    check(SummaryDefinition("s", "a", "x", 300, 2, 3, settings), given, [1, 7, 700, 4_096, 4_097], 50)


@pytest.mark.parametrize("make", [Engine, small_engine])
def test_all_that_is_promising_is_the_join(make: Callable[[], Engine]) -> None:
    """With all that it may spend, a query with a preference finds each pair of the join once."""
    feed, rng, at_ms = Feed(make(), fresh=True), np.random.default_rng(3), 1_000
    feed.step(Register((Registration("preferred", PREFERRED), Registration("join", JOIN))))
    for size in (1, 40, 3_000, 7, 1_500, 256):
        for name in "ab":
            keys = np.where(rng.random(size) < 0.1, rng.integers(0, 30, size), rng.integers(0, 2**40, size))
            stamps = np.sort(rng.integers(at_ms, at_ms + 200, size))
            stamps[-1] = at_ms + 200
            feed.put(name, *zip(stamps.tolist(), keys.tolist(), rng.random(size).tolist(), strict=True))
        at_ms += 201
        feed.step(Heartbeat(SourceName("a"), grant=ALL))
        view = feed.engine.view()
        found, exact = (plain_rows(view.snapshot(id_).table) for id_ in ("preferred", "join"))
        assert sorted(found) == sorted(exact)
    feed.engine._check()


@pytest.mark.parametrize("family", ["groups", "extremes of strings", "distinct", "joins"])
def test_shards_tell_what_one_engine_tells(family: str) -> None:
    """Streams that are cut by ``k`` and ``g``, of which most values come once."""
    steps: list[Step] = []

    def add(body: CreateSource | Register | Records) -> None:
        steps.append(Step(Position(1, len(steps) + 1), 10**9, body))

    course = Course(9)
    for sql in SOURCES:
        stream = course.engine.catalogue[sql.split()[2]]
        assert isinstance(stream, Stream)
        add(CreateSource(stream, sql))
    texts = enumerate(FAMILIES[family])
    add(Register(tuple(Registration(f"q{n}", f"{sql} EMIT CHANGES") for n, sql in texts)))
    for _ in course.run((1, 300, 2_500, 7, 900)):
        pass
    for name, batch in course.batches:
        add(Records(SourceName(name), batch, {0: int(batch.offset[-1]) + 1}))
    lanes = agree_on(steps, Layout(3, {"s": "g", "u": "g"}, frozenset()), random.Random(4))
    assert lanes
