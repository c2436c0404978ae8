"""Kept answers are brought up to date where a step touched them, and stay as they are where it did not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from engine.engine import Engine
from engine.model.batch import versions
from engine.model.source import SourceName
from engine.model.step import Register, Registration
from engine.views import kept
from tests.capacities import small_engine
from tests.changes.ways import TEXTS, rows_of, seeds
from tests.strategies import batch_of

WINDOW = "[RANGE 4 MILLISECONDS]"
HOPS = (
    "SELECT window_end, COUNT(*) AS c FROM HOP(s, INTERVAL '2' MILLISECOND, INTERVAL '4' MILLISECOND) "
    f"{WINDOW} WHERE k = 1 GROUP BY window_end"
)
RANDOM = (
    f"SELECT k, v FROM s {WINDOW} WHERE v > 0",
    f"SELECT k, COUNT(*) AS c, MAX(v) AS m FROM s {WINDOW} WHERE v < 1 GROUP BY k",
    f"SELECT DISTINCT w FROM s {WINDOW} WHERE k = 1",
    f"SELECT 10 / k AS q, 10 / (k - 1) AS r, 10 / k AS t FROM s {WINDOW}",
    "SELECT 10 / k AS q, v FROM s [ROWS 3]",
    "SELECT v FROM s [ROWS 3] WHERE w = 'a' ORDER BY v",
    "SELECT k, v FROM s [PARTITION BY k ROWS 1] WHERE v > 0",
    HOPS,
    "SELECT k, COUNT(*) AS c FROM SESSION(s, INTERVAL '2' MILLISECOND) WHERE v > 0 GROUP BY k",
    "SELECT k, 10 / p AS q FROM h WHERE k = 1",
    "SELECT k, p FROM m WHERE p > 0",
    f"SELECT s.k, p FROM s {WINDOW} JOIN h ON s.k = h.k WHERE p > 0",
    f"SELECT v, p FROM s {WINDOW} LEFT JOIN m ON s.k = m.k WHERE v > 0",
    f"SELECT a.v, b.n FROM s {WINDOW} AS a JOIN u {WINDOW} AS b ON a.k = b.k WHERE n > 0",
    f"SELECT k FROM s {WINDOW} WHERE v > 0 EXCEPT SELECT k FROM u {WINDOW} WHERE n > 0",
    f"SELECT k, v FROM s {WINDOW} WHERE v > (SELECT MIN(n) FROM u {WINDOW} WHERE n > 0)",
    f"SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM s {WINDOW} WHERE v > 0",
)
MODES = ("none", "eager")


class Feed:
    """An engine with the sources of :mod:`tests.changes.ways`."""

    def __init__(self, texts: tuple[str, ...], retain_ms: int) -> None:
        self.engine: Engine = small_engine()
        self.offset = 0
        for text in TEXTS:
            split = text.split(" NON RETROACTIVE")
            self.engine.create(f"{split[0]} RETAIN {retain_ms} MILLISECONDS{text[len(split[0]) :]}")
        self.engine._now(
            Register(
                tuple(
                    Registration(f"{mode} {place}", text, options={"maintenance": mode})
                    for place, text in enumerate(texts)
                    for mode in MODES
                )
            ),
            0,
        )

    def bring(self, name: str, *rows: tuple[int, tuple[Any, ...]]) -> None:
        """Rows come in one step: each its instant and values; a version without a second value takes its key
        away.
        """
        of = []
        for at_ms, values in rows:
            of.append((0, self.offset, at_ms, values))
            self.offset += 1
        stream = self.engine.view().stream(SourceName(name))
        batch = batch_of(stream.schema, of)
        if stream.is_table:
            batch = versions(stream, batch, np.array([values[1] is None for _, values in rows], np.bool_))
        self.engine.ingest(name, batch, 10**6)

    def answer(self, query_id: str) -> tuple[Any, ...]:
        answer = self.engine.view().snapshot(query_id)
        return (
            repr(answer.table.to_pylist()),
            answer.complete_from_ms,
            answer.errors,
            answer.condition_errors,
        )


@settings(max_examples=2 * settings.default.max_examples)
@given(seed=seeds)
def test_kept_answers_are_those_that_nothing_is_kept_of(seed: int) -> None:
    """Whatever number of steps there are from one look at them to the next."""
    rng = random.Random(seed)
    feed = Feed(RANDOM, rng.choice((2, 8, 100)))
    names = ["s", "u", "h", "m"]
    left = {name: rows_of(rng, name, 14) for name in names}
    while any(left.values()):
        name = rng.choice([name for name in names if left[name]])
        count = rng.randint(1, 3)
        feed.bring(name, *left[name][:count])
        del left[name][:count]
        if not any(left.values()) or rng.random() < 0.6:
            for place in range(len(RANDOM)):
                none, eager = (feed.answer(f"{mode} {place}") for mode in MODES)
                assert eager == none, RANDOM[place]
            feed.engine._check()


def test_rows_whose_values_could_not_be_computed_are_not_evaluated_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed = Feed((f"SELECT 10 / k AS q, v FROM s {WINDOW}",), 100)
    looked_at: list[int] = []
    original = kept.rows_at

    def rows_at(schema: Any, places: Any) -> Any:
        looked_at.append(sum(len(where) for _, where in places))
        return original(schema, places)

    monkeypatch.setattr(kept, "rows_at", rows_at)
    for at_ms in range(1, 9):
        feed.bring("s", *((at_ms, (key, float(at_ms), "a", at_ms)) for key in (0, 1, 0)))
        assert feed.answer("eager 0") == feed.answer("none 0")
    assert feed.answer("eager 0")[2] == 2 * 5  # rows of five milliseconds
    assert max(looked_at) == 3


@pytest.mark.parametrize(
    ("text", "touching"),
    [
        (f"SELECT k, v FROM s {WINDOW} WHERE v > 5", "s"),
        (f"SELECT k, COUNT(*) AS c FROM s {WINDOW} WHERE v > 5 GROUP BY k", "s"),
        (f"SELECT v, p FROM s {WINDOW} JOIN h ON s.k = h.k WHERE v > 5 AND p > 5", "h"),
        ("SELECT k, p FROM h WHERE p > 5", "h"),
    ],
)
def test_answers_that_no_step_touched_stay_as_they_are(text: str, touching: str) -> None:
    feed = Feed((text,), 100)

    def pass_by(at_ms: int) -> None:
        """Rows that no condition accepts come to both; what came before is visible then."""
        feed.bring("h", (at_ms, (2, at_ms % 5, at_ms)))
        feed.bring("s", (at_ms, (2, at_ms / 10, "a", at_ms)))

    def rows() -> Any:
        return feed.engine.view().snapshot("eager 0").rows

    feed.bring("h", (1, (1, 7, 1)), (2, (2, 1, 2)))
    feed.bring("s", (18, (1, 7.0, "a", 18)), (18, (2, 0.0, "a", 18)))
    pass_by(19)
    before = rows()
    assert before.n == 1
    for at_ms in (20, 21):
        pass_by(at_ms)
        assert rows() is before
    feed.bring(touching, (21, (1, 9.0, "a", 21) if touching == "s" else (1, 9, 21)))
    pass_by(22)
    assert rows() is not before
    assert feed.answer("eager 0") == feed.answer("none 0")
