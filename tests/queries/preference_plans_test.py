"""Golden files: a query with a preference beside what EXPLAIN ANALYZE tells of its promising set.

``TUREEN_UPDATE_GOLDEN=1 pytest tests/queries/preference_plans_test.py`` writes them anew; read the difference
before it is kept. The step after the rows grants units for some of the work, so something is left.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.model.step import Body, Heartbeat, Position, Register, Registration, Step
from tests.capacities import small_engine
from tests.strategies import batch_of
from tureen import plans
from tureen.errors import AttributeRefused, NotSupported

FOLDER = Path(__file__).parent / "preference_plans"
UPDATE = os.environ.get("TUREEN_UPDATE_GOLDEN") == "1"
ROWS, GRANT = 600, 80
COUNTED = re.compile(
    r"[0-9.,]+(?= (?:entries|left|cut|lapsed|pruned|rows|found|units)|% of all|\) of (?:its|one))"
)
"""What was counted while rows were visited; that is for the tests of promising sets."""


def apply(engine: Engine, body: Body) -> int:
    """A step; the units that it spent."""
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 100_000, body))
    (result,) = engine.run()
    assert not result.failed, result.failed
    return result.spent


def engine() -> Engine:
    made = small_engine()
    for name in "su":
        made.create(f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')")
        made.create(f"CREATE SUMMARY of_{name} ON {name} (k) WITH GRANULARITY 1 SECOND AND COLLAPSE (2, 3)")
    return made


def feed(made: Engine) -> None:
    for name in "su":
        rows = [(0, place, place * 10, (place % 17 % 5, place % 7)) for place in range(ROWS)]
        made.ingest(name, batch_of(made.catalogue[name].schema, rows), clock_ms=100_000)


def plan_of(made: Engine, **of: str) -> dict[str, Any]:
    timer = itertools.count(0, 1_000).__next__
    found: dict[str, Any] = json.loads(json.dumps(made.explain(timer=timer, **of).as_dict()))
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sql")), ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    made, sql = engine(), path.read_text(encoding="utf-8")
    apply(made, Register((Registration("first", sql), Registration("second", sql))))
    feed(made)
    assert apply(made, Heartbeat("s", grant=GRANT)) == GRANT
    plan = plan_of(made, query_id="first")
    lines = [*plans.preference(plan), plans.graph_headline(plan)]
    lines += [f"{row[0]}: {row[4]:,} rows" for row in plans.rows(plan)]
    text = "".join(COUNTED.sub("#", line) + "\n" for line in lines)
    wanted = path.with_suffix(".plan")
    if UPDATE:
        wanted.write_text(text, encoding="utf-8")
    assert wanted.exists(), f"not what the golden file says:\n{text}"
    assert text == wanted.read_text(encoding="utf-8")
    answer = made.view().snapshot("first")
    assert plan["steps"][-1]["actual_rows"] == answer.table.num_rows
    counts = plan["preference"]["counts"]
    assert counts["visited"] >= counts["spent"] == GRANT  # the last visit is whole
    assert answer.approximate
    apply(made, Heartbeat("s", grant=1 << 40))
    plan = plan_of(made, query_id="first")["preference"]
    assert (plan["is_whole"], plan["precision"], plan["counts"]["short"]) == (True, 1.0, 0)
    assert made.view().snapshot("first").approximate is False


def test_query_that_is_not_registered_or_paused_has_a_plan_and_no_set() -> None:
    made = engine()
    sql = (FOLDER / "selection.sql").read_text(encoding="utf-8")
    feed(made)
    plan = plan_of(made, sql=sql)
    assert plan["preference"]["group"] is None
    assert plan["steps"][-1]["actual_rows"] == 0
    assert plans.preference(plan)[-1] == "it is not registered, so nothing is found for it"
    apply(made, Register((Registration("q", sql, options={"paused": "true"}),)))
    assert plan_of(made, query_id="q")["preference"]["group"] is None
    assert plan_of(made, sql="SELECT k FROM s")["preference"] is None


def test_summaries_and_sets_are_entities_that_queries_share() -> None:
    made = engine()
    sql = (FOLDER / "join.sql").read_text(encoding="utf-8")
    apply(made, Register((Registration("first", sql), Registration("second", sql))))
    feed(made)
    apply(made, Heartbeat("s", grant=GRANT))
    report = made.entities()
    (group,) = (part for part in report.parts if part.id.startswith("promising/"))
    summaries = [part for part in report.parts if part.id.startswith("summary/")]
    values = {one.name: one.value for one in group.attributes}
    assert (group.kind, group.readers, values["spent"], values["members"]) == ("operator", 2, GRANT, 2)
    assert values["visited"] >= GRANT  # the last visit is whole
    assert values["entries"] == values["done"] + values["entries_left"] + values["cut"] + values["lapsed"]
    assert group.reads == ("summary/of_s", "summary/of_u")
    assert [(one.kind, one.readers) for one in summaries] == [("synopsis", 2)] * 2
    assert group.nbytes > 0
    shared = report.entities_of(made.view().standing["first"])
    assert {group.id, "summary/of_s", "summary/of_u"} <= set(shared)
    with pytest.raises(NotSupported, match="set by a step"):
        made.edit("summary/of_s", {"theta": 0.5})
    with pytest.raises(AttributeRefused, match="theta"):
        made.edit("summary/of_s", {"theta": 1.5})
