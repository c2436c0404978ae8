"""Plans: what they tell of operators, sharing, maintenance, patterns and costs."""

from __future__ import annotations

import itertools
import json

import pytest

from engine.engine import Engine
from engine.model.maintenance import Costs
from engine.model.step import Position, Register, Registration, Step
from tests.capacities import small_engine
from tests.strategies import batch_of
from tureen import plans
from tureen.errors import NotSupported, UnknownColumn, UnknownQuery

COSTS = Costs(match_ns=0.1, evaluate_ns=5, read_ns=0.5, gather_ns=20, answer_ns=100_000, keep_ns=50_000)
GROUPED = (
    "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] WHERE v > 5 "
    "GROUP BY k HAVING COUNT(*) > 2 ORDER BY n LIMIT 3"
)


@pytest.fixture
def engine() -> Engine:
    made = small_engine(costs=COSTS)
    made.create("CREATE STREAM s (k STRING, v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')")
    stream = made.catalogue["s"]
    rows = [(0, place, place * 10, (f"k{place % 7}", place % 13)) for place in range(3_000)]
    made.ingest("s", batch_of(stream.schema, rows), clock_ms=100_000)
    return made


def test_a_plan_tells_operators_rows_costs_and_patterns(engine):
    plan = engine.explain(sql=GROUPED, timer=itertools.count(0, 1_000).__next__)
    json.dumps(plan.as_dict())
    assert [step.operator.split(" ")[0] for step in plan.steps] == [
        "scan",
        "aggregate",
        "filter",
        "sort",
        "limit",
    ]
    assert [step.pattern for step in plan.steps] == ["WKS", "WK", "WK", "WK", "STR"]
    scanned = [row for row in range(3_000) if row * 10 >= 29_989 - 10_000 and row % 13 > 5 and row < 2_999]
    assert plan.steps[0].actual_rows == len(scanned)
    assert plan.steps[0].estimated_rows == pytest.approx(len(scanned), rel=0.2)
    assert [step.actual_rows for step in plan.steps[1:]] == [7, 7, 7, 3]
    assert all(step.estimated_ns > 0 and step.actual_ns >= 0 for step in plan.steps)
    assert plan.steps[0].details == ("window NOW - 10 seconds to NOW", "where (v > 5::BIGINT)")
    assert plan.reason == "no costs were measured yet"


def test_a_standing_plan_tells_what_is_shared_and_why_it_is_maintained_so(engine):
    engine.register("one", GROUPED)
    engine.register("two", "SELECT v FROM s [ROWS 5] WHERE v > 5")
    options = {"maintenance": "eager"}
    step = Register((Registration("three", "SELECT k FROM s WHERE v > 5 OR k = 'k1'", options=options),))
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, step))
    engine.run()
    one, three = engine.explain(query_id="one"), engine.explain(query_id="three")
    assert one.query_id == "one"
    assert one.predicates[0].predicate == "(v > 5::BIGINT)"
    assert one.predicates[0].facts["holders"] == 2
    assert three.predicates[0].facts["holders"] == 1
    assert (one.maintenance, three.maintenance) == ("lazy", "eager")
    assert three.reason.startswith("set by an option")
    assert not one.reason.startswith("set by an option")
    assert one.steps[0].actual_rows is None


def test_what_has_no_plan_is_refused(engine):
    with pytest.raises(UnknownQuery):
        engine.explain(query_id="nobody")
    with pytest.raises(NotSupported):
        engine.explain(sql="DROP STREAM s")
    with pytest.raises(UnknownColumn):
        engine.explain(sql="SELECT nothing FROM s")


@pytest.mark.parametrize(
    ("sql", "operator", "into", "key"),
    [
        (GROUPED, "changes", None, ["k"]),
        ("SELECT v FROM s EMIT CHANGES INTO a", "istream", "a", None),
        ("DSTREAM (SELECT v FROM s [NOW]) EMIT CHANGES INTO b", "dstream", "b", None),
        ("SELECT RSTREAM(DISTINCT k, v) FROM s [ROWS 3]", "rstream", None, ["k", "v"]),
        ("SELECT COUNT(*) AS n FROM s EMIT CHANGES INTO c", "changes", "c", []),
    ],
)
def test_a_plan_tells_what_leaves_and_where_to(engine, sql, operator, into, key):
    plan = engine.explain(sql=sql).as_dict()
    told = json.loads(json.dumps(plan))
    assert (told["operator"], told["key"]) == (operator, key)
    assert (told["emit"] is None) == (" EMIT " not in sql)
    head, first = "\n".join(plans.headline(told)), plans.rows(told)[0][0]
    assert (f"written to the topic {into} as upsert in json, after a snapshot" in head) == (into is not None)
    assert first == f"emit {operator}" if into else first in ("limit 3 rows", "project", "distinct")
    apart = {None: "all their values", 0: "at most one row"}.get(len(key) if key is not None else None)
    assert (apart or f"identified by {', '.join(key)}") in head


def test_streams_of_which_nothing_was_read_are_not_called_empty(engine):
    """Where a query is not registered, their topics may be full and not read yet."""
    for name in ("t", "u"):
        engine.create(f"CREATE STREAM {name} (v BIGINT, at TIMESTAMP NOT NULL) WITH (timestamp = 'at')")
    text = "SELECT t.v FROM t [ROWS 3] JOIN u [ROWS 3] ON t.v = u.v"
    before = "\n".join(plans.headline(engine.explain(sql=text).as_dict()))
    assert "no figures yet: no row of t and u was read where the query would be" in before
    assert "a topic only once a query needs it" in before
    engine.register("joined", text)
    after = "\n".join(plans.headline(engine.explain(query_id="joined").as_dict()))
    assert "no answer yet: no row of t and u was read so far, and NOW is the earliest" in after
    assert "once a query" not in after


def test_windows_are_views_of_one_store(engine):
    engine.register("minute", "SELECT v FROM s [RANGE 10 SECONDS]")
    engine.register("rows", "SELECT v FROM s [ROWS 7]")
    wide, narrow = (engine.explain(query_id=name).views for name in ("minute", "rows"))
    (store,) = {(one.source, one.store_begin, one.store_end, one.queries) for one in (*wide, *narrow)}
    assert store == ("s", 0, 2_999, 2)
    assert (wide[0].begin, wide[0].end) == (1_999, 2_999)
    assert (narrow[0].begin, narrow[0].end) == (2_999 - 7, 2_999)
    joined = engine.explain(sql="SELECT a.v FROM s [ROWS 3] AS a JOIN s [ROWS 5] AS b ON a.k = b.k")
    assert [one.end - one.begin for one in joined.views] == [3, 5]
    assert plans.views(joined.as_dict())[0] == (
        "s: 3 rows, a view of the store, which holds 2,999 for 2 queries"
    )
