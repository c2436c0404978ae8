"""The choice of plans and strategies: by cost, with hysteresis, and without a wrong or repeated change."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given

from engine.dataflow import choice as choice_module
from engine.dataflow.choice import CHANGE_GAIN, Choice, choose
from engine.dataflow.cost.statistics import Statistics
from engine.dataflow.policy import ONE_STORE, Policy
from engine.engine import Engine
from engine.model.batch import Batch, versions
from engine.model.changes import Changes
from engine.model.maintenance import Costs, QueryOptions, UnitCosts
from engine.model.step import Register, Registration
from tests.capacities import small_engine
from tests.changes.ways import FEW, STREAMS, Row, bound, rows_of, seeds
from tests.dataflow.cost.known import ROWS, UNITS, distinct, statistics
from tests.strategies import batch_of

WINDOW = "[RANGE 9 SECONDS]"
JOIN = f"SELECT s.k, n FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.k"
DISTINCT_JOIN = f"SELECT DISTINCT s.k, u.k AS k2 FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.k"
NOT_IN = (
    f"SELECT s.k, n FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.k WHERE s.k NOT IN (SELECT k FROM u [ROWS 5])"
)


def chosen(
    text: str,
    known: Statistics | None = None,
    options: QueryOptions | None = None,
    present: tuple[tuple[str, ...], Policy] | None = None,
) -> Choice:
    return choose(bound(text), STREAMS, known or statistics(), UNITS, options or QueryOptions(), present)


def test_the_cheapest_is_chosen() -> None:
    for text in (JOIN, DISTINCT_JOIN, NOT_IN):
        found = chosen(text)
        assert all(found.chosen.estimate.ns <= other.estimate.ns * 1.03 for other in found.others), text


def test_direct_is_no_choice_where_rows_leave_before_their_time() -> None:
    text = f"SELECT s.k, n FROM s {WINDOW} JOIN u [ROWS 5] ON s.k = u.k"
    names = {candidate.policy.strategy for candidate in (chosen(text).chosen, *chosen(text).others)}
    assert names == {"nt", "upa"}
    structures = {candidate.policy.structure for candidate in chosen(text).others}
    assert structures >= {"partitioned", "indexed"} - {chosen(text).chosen.policy.structure}


def test_a_strategy_that_is_asked_for_is_taken() -> None:
    for strategy in ("nt", "direct", "upa"):
        found = chosen(JOIN, options=QueryOptions(strategy=strategy))
        assert found.chosen.policy.strategy == strategy
        assert found.asked_for


def test_distinct_goes_below_a_join_where_rows_repeat_their_values() -> None:
    repeated = statistics(samples={name: distinct(4, rows=int(ROWS[name])) for name in "su"})
    alone = statistics(samples={name: distinct(int(ROWS[name])) for name in "su"})
    assert chosen(DISTINCT_JOIN, repeated).chosen.rules == ("DISTINCT below join",)
    assert chosen(DISTINCT_JOIN, alone).chosen.rules == ()


def test_a_choice_stays_until_another_is_cheaper_by_the_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    best = chosen(JOIN)
    runner_up = best.runner_up
    assert runner_up is not None
    present = runner_up.rules, runner_up.policy
    factor = runner_up.estimate.ns / best.chosen.estimate.ns
    monkeypatch.setattr(choice_module, "CHANGE_GAIN", factor * 1.01)
    assert chosen(JOIN, present=present).chosen.policy == runner_up.policy
    monkeypatch.setattr(choice_module, "CHANGE_GAIN", factor * 0.99)
    assert chosen(JOIN, present=present).chosen.policy == best.chosen.policy


def test_the_reason_names_the_runner_up_and_what_it_costs_more() -> None:
    found = chosen(f"SELECT DISTINCT k FROM s {WINDOW}")
    assert found.runner_up is not None
    assert found.reason.startswith(f"{found.runner_up.name} would cost ")
    assert ", the difference mostly by " in found.reason
    found = chosen(JOIN)
    assert found.runner_up is not None
    even = replace(found, chosen=replace(found.runner_up, policy=found.chosen.policy))
    assert even.reason == f"{found.runner_up.name} would cost as much"
    asked = chosen(JOIN, options=QueryOptions(strategy="direct"))
    assert asked.reason.startswith("set by an option")
    stays = chosen(JOIN, present=(found.runner_up.rules, found.runner_up.policy))
    if stays.chosen.policy == found.runner_up.policy and stays.chosen.estimate.ns > found.chosen.estimate.ns:
        assert stays.reason.endswith(f"less by a factor of {CHANGE_GAIN}")


def test_a_plan_without_known_exits_has_one_strategy() -> None:
    found = chosen("SELECT k, COUNT(*) AS c FROM s WHERE v > 0 GROUP BY k")
    assert found.chosen.policy == ONE_STORE
    assert found.runner_up is None
    assert found.reason == "no other would change the plan"


# --- engines --------------------------------------------------------------------------------------

TEXTS = (
    JOIN,
    DISTINCT_JOIN,
    f"SELECT DISTINCT k FROM s {WINDOW}",
    f"SELECT k, v FROM s {WINDOW} WHERE k NOT IN (SELECT k FROM u {WINDOW})",
    NOT_IN,
    f"""SELECT x.k, x.w, p FROM (SELECT k, w FROM s {WINDOW}
    EXCEPT ALL ON (k) SELECT k, n FROM u {WINDOW}) AS x JOIN h ON x.k = h.k""",
    f"SELECT k FROM s {WINDOW} UNION SELECT k FROM u {WINDOW} UNION SELECT n FROM u [RANGE 4 SECONDS]",
    f"SELECT s.k, COUNT(*) AS c FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.k GROUP BY s.k",
)


def engine(units: UnitCosts | None) -> Engine:
    made = small_engine(costs=Costs(1, 1, 1, 1, 1, 1, units))
    for text in (
        "CREATE STREAM s (k BIGINT, v DOUBLE, w STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')",
        "CREATE STREAM u (k BIGINT, n BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')",
        "CREATE TABLE h (k BIGINT, p BIGINT, ts TIMESTAMP NOT NULL, PRIMARY KEY (k)) WITH (timestamp = 'ts')",
    ):
        made.create(text)
    registrations = (Registration(f"q{place}", f"{text} EMIT CHANGES") for place, text in enumerate(TEXTS))
    made._now(Register(tuple(registrations)), 0)
    return made


def told(all_changes: list[Changes]) -> Counter[tuple[str, str, int, int]]:
    found: Counter[tuple[str, str, int, int]] = Counter()
    for changes in all_changes:
        for place, query_id in enumerate(changes.query_ids):
            low, high = changes.starts[place : place + 2].tolist()
            rows = changes.table.slice(low, high - low).to_pylist()
            weights, at_ms = changes.weights[low:high].tolist(), changes.at_ms[low:high].tolist()
            for row, weight, at in zip(rows, weights, at_ms, strict=True):
                found[query_id, repr(tuple(row.values())), weight, at] += 1
    return found


def records(name: str, rows: list[Row], offset: int) -> Batch:
    """Rows a second apart where :mod:`tests.changes.ways` has them a ms apart."""
    stream, later = STREAMS[name], 1_000
    batch = batch_of(
        stream.schema,
        [
            (0, offset + place, at * later, (*values[:-1], at * later))
            for place, (at, values) in enumerate(rows)
        ],
    )
    if not stream.is_table:
        return batch
    return versions(stream, batch, np.array([values[1] is None for _, values in rows], np.bool_))


def random_units(rng: random.Random) -> UnitCosts:
    """A machine where other things are cheap."""
    names = UnitCosts.__dataclass_fields__
    return UnitCosts(**{name: 10 ** rng.uniform(-2, 3) for name in names})


@FEW
@given(seeds)
def test_queries_that_change_their_way_while_they_run_tell_the_same_changes(seed: int) -> None:
    rng = random.Random(seed)
    plain, weighed = engine(None), engine(random_units(rng))
    rows = {name: rows_of(rng, name, 40) for name in "suh"}
    for at in range(0, 25, 3):
        for name in "suh":
            some = [row for row in rows[name] if at <= row[0] < at + 3]
            if not some:
                continue
            batch = records(name, some, at * 100)
            one, other = (made.ingest(name, batch, at * 1_000 + 500) for made in (plain, weighed))
            assert told(one.changes) == told(other.changes), at
        if rng.random() < 0.6:
            weighed._following.graphs.strategist._units = random_units(rng)
            weighed._following.graphs.strategist._known.clear()
            event(f"{weighed.revisions.revise({}, 1.0)} changed")
    for graph in weighed._following.graphs.by_set.values():
        graph._check()


def test_without_measured_units_queries_run_as_they_are_written() -> None:
    made = engine(None)
    for place in range(len(TEXTS)):
        plan = made.explain(query_id=f"q{place}").as_dict()
        assert plan["strategy"]["strategy"] == "nt"
        assert plan["strategy"]["rules"] == ()
        assert plan["strategy"]["cost"] is None


def test_explain_says_what_a_query_costs_and_what_others_would() -> None:
    made = engine(UNITS)
    plan = made.explain(query_id="q0").as_dict()["strategy"]
    assert plan["cost"]["ns"] <= min(other["ns"] for other in plan["others"])
    assert plan["reason"]
    tree = made.explain(query_id="q0").as_dict()["graph"]
    assert tree["cost"]["rows_per_s"] > 0


def test_queries_of_a_shape_have_one_way() -> None:
    made = engine(UNITS)
    texts = [f"SELECT DISTINCT k FROM s {WINDOW} WHERE v > {place} EMIT CHANGES" for place in range(50)]
    made._now(Register(tuple(Registration(f"x{place}", text) for place, text in enumerate(texts))), 0)
    ways = {made._following.graphs._choices[f"x{place}"].stands for place in range(50)}
    assert len(ways) == 1
