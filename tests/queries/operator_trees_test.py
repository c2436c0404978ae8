"""Golden files: a query beside the operators that its changes come from; what these keep while queries run.

``TUREEN_UPDATE_GOLDEN=1 pytest tests/queries/operator_trees_test.py`` writes them anew; read the difference
before it is kept.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.model.step import Register, Registration
from tests.capacities import small_engine
from tests.queries.operator_trees import COLUMNS
from tests.strategies import batch_of
from tureen import plans

FOLDER = Path(__file__).parent / "operator_trees"
UPDATE = os.environ.get("TUREEN_UPDATE_GOLDEN") == "1"
GROUPED = "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] WHERE v > {} GROUP BY k HAVING COUNT(*) > {}"


def engine() -> Engine:
    made = small_engine()
    for name in "su":
        made.create(f"CREATE STREAM {name} {COLUMNS}")
    made.create("CREATE STREAM o (id BIGINT, ts TIMESTAMP, CONSTRAINT UNIQUE (id)) WITH (timestamp = 'ts')")
    made.create(
        "CREATE STREAM f (k BIGINT, v BIGINT, ts TIMESTAMP, CONSTRAINT CLUSTERED (k) WITHIN 5 ROWS, "
        "CONSTRAINT REFERENCES (k) TO o (id) WITHIN 2 SECONDS) WITH (timestamp = 'ts')"
    )
    made.create(
        "CREATE TABLE t (k STRING PRIMARY KEY, name STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
    )
    return made


@pytest.fixture(scope="module")
def empty() -> Engine:
    return engine()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sql")), ids=lambda path: path.stem)
def test_golden(path: Path, empty: Engine) -> None:
    plan = json.loads(json.dumps(empty.explain(sql=path.read_text(encoding="utf-8")).as_dict()))
    rows = plans.graph(plan)
    text = "".join(
        f"{edge:<10} {operator:<20} {detail}".rstrip() + "\n" for operator, detail, edge, *_ in rows
    )
    wanted = path.with_suffix(".tree")
    if UPDATE:
        wanted.write_text(text, encoding="utf-8")
    assert wanted.exists(), f"not what the golden file says:\n{text}"
    assert text == wanted.read_text(encoding="utf-8")
    assert {tuple(counts) for _, _, _, *counts in rows} == {(0, 0, 0)}
    assert rows[0][2].removesuffix(" by key") == plan["steps"][-1]["pattern"]


def test_every_golden_file_has_its_query() -> None:
    assert {path.stem for path in FOLDER.glob("*.tree")} == {path.stem for path in FOLDER.glob("*.sql")}


def follow(made: Engine, *constants: tuple[int, int]) -> None:
    texts = [f"{GROUPED.format(*each)} EMIT CHANGES" for each in constants]
    made._now(Register(tuple(Registration(f"q{place}", text) for place, text in enumerate(texts))), 0)
    rows = [(0, place, place * 10, (f"k{place % 7}", place % 13)) for place in range(3_000)]
    made.ingest("s", batch_of(made.catalogue["s"].schema, rows), clock_ms=100_000)


def states(plan: dict) -> dict[str, dict[str, int]]:
    found, trees = {}, [plan["graph"]]
    while trees:
        tree = trees.pop()
        found[tree["operator"]] = tree["state"]
        trees += tree["inputs"]
    return found


def test_a_followed_query_shows_what_its_operators_keep_and_who_shares_them() -> None:
    made = engine()
    follow(made, (5, 2), (5, 3), (6, 2), (6, 2))
    plan = made.explain(query_id="q0").as_dict()
    assert plan["followed"]
    found = states(plan)
    assert {word: state["queries"] for word, state in found.items()} == {
        "filter": 4,
        "group": 4,
        "scan": 4,
    }
    assert {word: state["columns"] for word, state in found.items()} == {
        "filter": 3,
        "group": 2,
        "scan": 2,
    }
    assert found["group"]["rows"] == 7 * 2
    assert found["group"]["bytes"] > 0
    assert found["scan"]["rows"] == found["scan"]["bytes"] == 0
    assert found["scan"]["visited"] == 2_999
    assert found["group"]["visited"] == sum(place % 13 > 5 for place in range(2_999))


@pytest.mark.parametrize(
    ("sql", "operator", "rows"),
    [
        ("SELECT v FROM s ORDER BY v LIMIT 3", "top-k", 2_999),
        ("SELECT v FROM s [PARTITION BY k ROWS 2]", "latest rows", 14),
        ("SELECT a.v FROM s [ROWS 10] AS a JOIN s [ROWS 20] AS b ON a.k = b.k", "join", 30),
        ("SELECT DISTINCT v FROM s", "distinct", 13),
    ],
)
def test_operators_show_how_many_rows_they_keep_and_looked_at(sql: str, operator: str, rows: int) -> None:
    made = engine()
    made._now(Register((Registration("q0", f"{sql} EMIT CHANGES"),)), 0)
    rows_in = [(0, place, place * 10, (f"k{place % 7}", place % 13)) for place in range(3_000)]
    made.ingest("s", batch_of(made.catalogue["s"].schema, rows_in), clock_ms=100_000)
    found = states(made.explain(query_id="q0").as_dict())
    assert found[operator]["rows"] == rows
    assert found[operator]["visited"] >= 2_999 or operator == "join"
    assert found[operator]["bytes"] > 0


def test_a_query_that_is_not_followed_shows_what_of_its_operators_is_there() -> None:
    made = engine()
    follow(made, (5, 2), (6, 2))
    same, other = (
        made.explain(sql=text).as_dict()
        for text in (GROUPED.format(7, 9), "SELECT k, SUM(v) AS n FROM s [RANGE 10 SECONDS] GROUP BY k")
    )
    assert not same["followed"]
    assert {state["queries"] for state in states(same).values()} == {2}
    assert {word: state["queries"] for word, state in states(other).items()} == {"group": 0, "scan": 2}
    assert states(other)["group"]["bytes"] == 0


def test_operators_of_queries_that_went_are_not_there_any_more() -> None:
    made = engine()
    follow(made, (5, 2))
    made._now(Register((Registration("still", "SELECT k FROM u EMIT CHANGES"),)), 100_000)
    made.unregister("q0")
    plan = made.explain(sql=GROUPED.format(5, 2)).as_dict()
    assert {state["queries"] for state in states(plan).values()} == {0}
    assert "not followed" in plans.graph_headline(plan)
