"""Golden files: a query beside its strategy, what its operators keep and cost, and what other plans would.

``TUREEN_UPDATE_GOLDEN=1 pytest tests/queries/strategies_test.py`` writes them anew; read the difference
before it is kept. Costs are those of a machine where each thing takes what the defaults say, and of sources
without rows, which are taken to be alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.model.maintenance import Costs, UnitCosts
from engine.model.step import Register, Registration
from tests.capacities import small_engine
from tests.queries.operator_trees import COLUMNS
from tests.strategies import batch_of
from tureen import plans

FOLDER = Path(__file__).parent / "strategies"
UPDATE = os.environ.get("TUREEN_UPDATE_GOLDEN") == "1"


def engine(*, timed: bool = False) -> Engine:
    ticks = iter(range(1_000_000))
    timer = (lambda: next(ticks)) if timed else None
    made = small_engine(costs=Costs(1, 1, 1, 1, 1, 1, UnitCosts()), timer=timer)
    for name in "su":
        made.create(f"CREATE STREAM {name} {COLUMNS}")
    made.create(
        "CREATE TABLE t (k STRING PRIMARY KEY, name STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
    )
    return made


def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    cells = [names, *([str(value) for value in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(names))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sql")), ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    plan = json.loads(json.dumps(engine().explain(sql=path.read_text(encoding="utf-8")).as_dict()))
    lines = [
        *plans.strategy(plan),
        "",
        *table(plans.COST_COLUMNS, plans.costs(plan)),
        "",
        *table(plans.WAY_COLUMNS, plans.ways(plan)),
    ]
    text = "".join(line.rstrip() + "\n" for line in lines)
    wanted = path.with_suffix(".plan")
    if UPDATE:
        wanted.write_text(text, encoding="utf-8")
    assert wanted.exists(), f"not what the golden file says:\n{text}"
    assert text == wanted.read_text(encoding="utf-8")
    assert sorted(plan["graph"]["cost"]) == ["kept", "premature", "rows", "rows_per_s", "terms"]


def test_every_golden_file_has_its_query() -> None:
    assert {path.stem for path in FOLDER.glob("*.plan")} == {path.stem for path in FOLDER.glob("*.sql")}


def test_analyze_adds_what_operators_counted() -> None:
    made = engine(timed=True)
    text = "SELECT DISTINCT k FROM s [RANGE 10 SECONDS] EMIT CHANGES"
    made._now(Register((Registration("q", text),)), 0)
    rows = [(0, place, place * 10, (f"k{place % 7}", place % 13)) for place in range(3_000)]
    made.ingest("s", batch_of(made.catalogue["s"].schema, rows), clock_ms=100_000)  # type: ignore[union-attr]
    plan = made.explain(query_id="q", timer=lambda: 0).as_dict()
    found = plans.costs(plan)
    assert {len(row) for row in found} == {len(plans.COST_COLUMNS) + len(plans.COUNTED_COLUMNS)}
    distinct = next(row for row in found if "distinct" in row[0])
    assert distinct[-1] >= 2_999


def test_a_join_with_a_table_above_a_negation_says_that_it_keeps_its_pairs() -> None:
    text = (FOLDER / "negation_joined_with_a_table.sql").read_text(encoding="utf-8")
    made = small_engine()
    for name in "su":
        made.create(f"CREATE STREAM {name} {COLUMNS}")
    made.create(
        "CREATE TABLE t (k STRING PRIMARY KEY, name STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
    )
    plan = made.explain(sql=text).as_dict()
    details = [detail for _, detail, *_ in plans.graph(plan)]
    assert any("pairs are kept by the ids of their rows" in detail for detail in details)
    assert plans.costs(plan) == plans.ways(plan) == []
    assert plans.strategy(plan) == ["strategy nt: no costs were measured yet"]
