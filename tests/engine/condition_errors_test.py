"""Rows whose condition cannot be computed: an answer says how many it lacks by that, however it is kept."""

from __future__ import annotations

import pytest

from engine.model.maintenance import MODES
from engine.model.source import SourceName
from engine.model.step import Position, Records, Register, Registration, Step
from tests.capacities import small_engine
from tests.strategies import batch_of

SOURCE = "CREATE STREAM s (k BIGINT, v BIGINT, at TIMESTAMP NOT NULL) WITH (timestamp = 'at')"
TEXTS = {
    "all": ("SELECT k FROM s WHERE k / 0 > 1", 5),
    "some": ("SELECT k FROM s WHERE 6 / v > 1", 2),
    "count": ("SELECT COUNT(*) AS n FROM s WHERE 6 / v > 1", 2),
    "last": ("SELECT k FROM s [ROWS 4] WHERE 6 / v > 1", 2),
    "around": ("SELECT k FROM s WHERE 6 / v > 1 OR k > 0", 0),
    "groups": ("SELECT k, COUNT(*) AS n FROM s WHERE 6 / v > 1 GROUP BY k", 2),
    "union": ("SELECT k FROM s WHERE 6 / v > 1 UNION ALL SELECT k FROM s WHERE k / 0 > 1", 7),
    "exact": ("SELECT k FROM s WHERE k > 2", 0),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("later", [False, True], ids=["before the rows", "after them"])
def test_they_are_counted_in_every_mode(mode: str, later: bool) -> None:
    engine = small_engine()
    engine.create(SOURCE)
    values = [(1, 1, 10), (2, 0, 20), (3, 2, 30), (4, 0, 40), (5, 3, 50), (6, 1, 99)]
    stream = engine.view().stream(SourceName("s"))
    batch = batch_of(stream.schema, [(0, place, row[2], row) for place, row in enumerate(values)])
    records = Records(SourceName("s"), batch, {0: 6}, frozenset())
    made = tuple(Registration(name, sql, {"maintenance": mode}) for name, (sql, _) in TEXTS.items())
    for body in (records, Register(made)) if later else (Register(made), records):
        position = engine.position
        engine.enqueue(Step(Position(position.epoch, position.sequence + 1), 0, body))
        assert not any(result.failed for result in engine.run())
    for name, (_, expected) in TEXTS.items():
        assert engine.view().snapshot(name).condition_errors == expected, name
        assert engine.view().snapshot(name).errors == 0
