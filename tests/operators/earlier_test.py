"""Earlier instants of queries over several sources: what is gone from any of them is missing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from engine.algebra.join.stage import Join
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.language.query import Query, Scan
from engine.model import expressions as ex
from engine.model.source import SourceName
from engine.model.types import BIGINT
from engine.operators.earlier import can_answer, first_answer_ms
from engine.operators.pipeline import evaluate
from engine.operators.scan import ScanAt
from engine.windows.clauses import UNBOUNDED, Window
from tests.operators.stored import NAME, parts
from tests.time_windows import range_window

OTHER = SourceName("t")
KEY = ex.Column(1, "c1", BIGINT)
ROWS = [(1, place, 0.5, "a", None) for place in range(100)]
STORED, _ = parts(ROWS, list(range(100)), [40])
RETAINED_MS = {NAME: 20, OTHER: 50}
"""From when either source is whole; both have a row every millisecond from 0 to 99."""


def standing_at(instant_ms: int) -> Mapping[SourceName, ScanAt]:
    return {name: ScanAt.earlier(STORED, instant_ms, kept) for name, kept in RETAINED_MS.items()}


def query(one: Window, other: Window, semi: bool) -> Query:
    key = Project((Output("k", KEY),))
    inner = Query("", Scan(OTHER, other), (key,))
    stage = SemiJoin((KEY,), inner) if semi else Join(inner, "inner", ((KEY, ex.Column(0, "k", BIGINT)),))
    return Query("", Scan(NAME, one), (stage, key))


@pytest.mark.parametrize("semi", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "first"),
    [(5, 5, 55), (5, 0, 50), (40, 5, 60), (0, 30, 80), (90, 5, None), (5, 90, None)],
)
def test_the_source_that_reaches_back_least_counts(semi, one, other, first):
    asked = query(range_window(one), range_window(other), semi)
    assert first_answer_ms(asked, standing_at, 10, 99) == first
    for instant in range(10, 100):
        assert can_answer(asked, standing_at(instant)) is (first is not None and instant >= first)


@pytest.mark.parametrize("semi", [False, True])
def test_an_answer_is_complete_from_the_latest_of_all(semi):
    asked = query(UNBOUNDED, range_window(90), semi)
    assert evaluate(asked, standing_at(99), 100).complete_from_ms == 50
    asked = query(UNBOUNDED, range_window(5), semi)
    assert evaluate(asked, standing_at(99), 100).complete_from_ms == 20
