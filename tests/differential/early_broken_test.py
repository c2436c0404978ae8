"""A pair that is lost since a stream broke a promise, of which a join had let go of rows, is told: counted,
among the late rows, and by a tag of the answer, whatever RETAIN is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from engine.engine import Engine
from engine.model.step import StepResult
from tests.capacities import small_restored
from tests.differential.promised_streams import Row, World, batch
from tests.memory_state import MemoryState

WIDE = "[RANGE 900 MILLISECONDS]"
JOINS = {
    "windows": f"SELECT o.id AS a, f.id AS b FROM o {WIDE} JOIN f {WIDE} ON f.k = o.id",
    "rows that come": f"ISTREAM(SELECT o.id AS a, f.id AS b FROM o {WIDE} JOIN f {WIDE} ON f.k = o.id)",
    "left": f"SELECT o.id AS a, f.id AS b FROM f {WIDE} LEFT JOIN o {WIDE} ON f.k = o.id",
    "in": f"SELECT id FROM o {WIDE} WHERE id IN (SELECT k FROM f {WIDE})",
    "all rows": "SELECT o.id AS a, f.id AS b FROM o JOIN f ON f.k = o.id",
    "three": (
        f"SELECT o.id AS a, f.id AS b, p.id AS c FROM p {WIDE} JOIN f {WIDE} ON p.k = f.id "
        f"JOIN o {WIDE} ON f.k = o.id"
    ),
    "groups": f"SELECT o.v AS v, COUNT(*) AS n FROM o {WIDE} JOIN f {WIDE} ON f.k = o.id GROUP BY o.v",
}
ORDERS = [(one, 0, 0, one) for one in range(8)]
END = 90
BROKEN: Mapping[str, tuple[Mapping[str, Sequence[Row]], str, str, bool]] = {
    "CLUSTERED, at once": ({"f": [(0, 1, 0, 10), (1, 2, 0, 11), (2, 1, 0, 12)]}, "f", "f", True),
    "CLUSTERED, after RETAIN": ({"f": [(0, 1, 0, 10), (1, 2, 0, 11), (2, 1, 0, 50)]}, "f", "f", False),
    "UNIQUE, at once": ({"o": [(1, 0, 0, 4)]}, "o", "o", True),
    "UNIQUE, after RETAIN": ({"f": [(0, 1, 0, 10)], "o": [(1, 0, 0, 60)]}, "o", "o", False),
    "REFERENCES": ({"f": [(0, 30, 0, 10)], "o": [(30, 0, 0, 40)]}, "f", "f REFERENCES o", False),
}
"""Rows beside the orders, the stream of which one breaks a promise, where the tag says that it was, and
whether the row is withheld.
"""


def fed(engine: Engine, brought: Mapping[str, Sequence[Row]]) -> tuple[Engine, list[StepResult]]:
    """The rows, one a step, with restarts, and then such by which NOW comes to all."""
    results, store = [], MemoryState()
    every = sorted(
        ((row[3], name, row) for name, rows in brought.items() for row in rows), key=lambda one: one[:2]
    )
    last = [(END, "o", (80, 0, 0, END)), (END, "f", (80, 0, 0, END)), (END, "p", (80, 0, 0, END))]
    offsets = dict.fromkeys("ofp", 0)
    for _, name, row in [*every, *last]:
        results.append(engine.ingest(name, batch(engine, name, [row], offsets[name])))
        offsets[name] += 1
        for other in "ofp":  # a heartbeat of a row without a key
            if other != name and row[3] < END:
                beat = (1_000 + offsets[other], None, 0, row[3])
                results.append(engine.ingest(other, batch(engine, other, [beat], offsets[other])))  # type: ignore[list-item]
                offsets[other] += 1
        engine._check()
        if offsets["o"] % 3 == 0:
            engine.save(store)
            engine = small_restored(store)
    return engine, results


@pytest.mark.parametrize("broken", sorted(BROKEN))
def test_a_broken_promise_is_told(broken: str) -> None:
    rows, source, where, withheld = BROKEN[broken]
    engine = World({}, 0, 0).engine()
    for query_id, sql in JOINS.items():
        engine.register(query_id, sql + " EMIT CHANGES")
    engine.register("beside", "SELECT id FROM l EMIT CHANGES")
    brought = {"o": [*ORDERS, *rows.get("o", ())], "f": rows.get("f", ())}
    engine, results = fed(engine, brought)
    late = [one for result in results for one in result.violations]
    assert [(one.source, len(one.rows), one.withheld) for one in late] == [(source, 1, withheld)]
    assert broken.split(",")[0] in late[0].reasons[0]
    (counted,) = [sum(one.violations) for one in engine.view().sources() if one.name == source]
    assert counted == 1
    tags = {
        one.query_id: [(tag.kind, tag.where) for tag in one.approximation] for one in engine.view().queries()
    }
    assert tags == {name: [("constraint", where)] for name in JOINS} | {"beside": []}
