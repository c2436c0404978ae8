"""What is remembered between steps changes no change, however the way is cut and whatever was forgotten."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings

from engine.changes import running
from engine.changes.changes_of import Told, changes_of
from engine.changes.course import NEVER, Course, Leg
from engine.changes.memory import Memory, marks_of
from engine.model.source import SourceName
from tests.changes.ways import LAST_MS, LIMITS, bound, random_course, rows_of, seeds, stored

QUERIES = (
    "SELECT k, COUNT(*) AS n FROM s GROUP BY k",
    "SELECT COUNT(*) AS n, COUNT(v) FILTER (WHERE v > 0) AS m, AVG(k) AS a FROM s [RANGE 3 MILLISECONDS]",
    "SELECT w, SUM(k) AS t FROM s [ROWS 3] GROUP BY w HAVING COUNT(*) > 1 ORDER BY t",
    "SELECT k, window_end, COUNT(*) AS n FROM TUMBLE(s, INTERVAL '2' MILLISECOND) GROUP BY k, window_end",
    "SELECT DISTINCT k, w FROM s [RANGE 4 MILLISECONDS]",
    "SELECT DISTINCT v FROM s",
    "SELECT a.w, COUNT(*) AS n FROM s [RANGE 2 MILLISECONDS] a JOIN s b ON a.k = b.k GROUP BY a.w",
    "SELECT COUNT(*) AS n FROM (SELECT k, COUNT(*) AS m FROM s GROUP BY k) WHERE m > 1",
)


def told(found: Told) -> list[Any]:
    rows = [repr(row) for row in found.table.to_pylist()]
    return sorted(zip(found.at_ms.tolist(), found.weights.tolist(), rows, strict=True))


def ways_on(rng: random.Random) -> list[Course]:
    """One way after another over a stream, in some of which retention takes rows."""
    rows = rows_of(rng, "s", 20)
    cuts = sorted(rng.sample(range(LAST_MS + 1), min(5, LAST_MS + 1)))
    since, retained, courses = NEVER, None, []
    for until in cuts:
        to = None
        if rng.random() < 0.4:
            to = max(-2 if retained is None else retained, rng.randint(-1, until))
        seen = [row for row in rows if row[0] <= until]
        courses.append(
            Course(since, until, {SourceName("s"): Leg(stored("s", seen, until, retained), True, None, to)})
        )
        retained, since = retained if to is None else to, until
    return courses


@pytest.mark.parametrize("sql", QUERIES)
@given(seeds)
@settings(max_examples=10)
def test_nothing_changes(sql: str, seed: int) -> None:
    rng = random.Random(seed)
    query, memory = bound(sql), Memory()
    operator = rng.choice(("changes", "changes", "istream", "dstream"))
    for course in ways_on(rng):
        if rng.random() < 0.2:  # nobody asked in this step
            continue
        wanted = told(changes_of(query, operator, course, LIMITS))
        assert told(changes_of(query, operator, course, LIMITS, memory=memory)) == wanted


@given(seeds)
def test_what_is_remembered_is_of_the_way_before_alone(seed: int) -> None:
    rng = random.Random(seed)
    (stage,) = (stage for stage in bound(QUERIES[0]).stages if hasattr(stage, "calls"))
    memory = Memory()
    first, second, third = ways_on(rng)[:3]
    on_first = memory.on(first)
    assert on_first is not None
    assert on_first.get(stage) is None
    on_first.put(stage, "known")
    unfinished = memory.on(second)
    assert unfinished is not None
    assert unfinished.get(stage) is None
    on_first.keep()
    again = memory.on(second)
    assert again is not None
    assert again.get(stage) == "known"
    other = memory.on(third)
    assert other is not None
    assert other.get(stage) is None


def test_nothing_is_remembered_of_several_sources() -> None:
    assert marks_of(random_course(random.Random(1), ["s", "u"])) is None
    assert marks_of(random_course(random.Random(1), ["s"], standing=["s"])) is None
    assert marks_of(random_course(random.Random(1), ["s"])) is not None


@given(seeds)
def test_of_too_many_groups_nothing_is_remembered(seed: int) -> None:
    rng = random.Random(seed)
    query, memory = bound(QUERIES[0]), Memory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "GROUPS_MAX", 1)
        for course in ways_on(rng):
            wanted = told(changes_of(query, "changes", course, LIMITS))
            assert told(changes_of(query, "changes", course, LIMITS, memory=memory)) == wanted
