"""The formulas of costs, in entries of scanned lists, and what the estimates rest on."""

from __future__ import annotations

from dataclasses import replace
from math import isclose, log2

import pytest

from engine.algebra.aggregate.stage import Aggregate
from engine.dataflow.cost.flows import JoinedInput, joined_inputs
from engine.dataflow.cost.statistics import ValueSample
from engine.dataflow.cost.structures import KeptState
from engine.dataflow.policy import TOLD, Policy
from tests.changes.ways import TABLES, bound
from tests.dataflow.cost.known import RATE, ROWS, cost, distinct, statistics, term

UPA, DIRECT = Policy("upa"), Policy("direct")
WINDOW = "[RANGE 9999 MILLISECONDS]"
JOIN = f"SELECT s.k, n FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.k"
DISTINCT = f"SELECT DISTINCT k FROM s {WINDOW}"
GROUPED = f"SELECT k, COUNT(*) AS c FROM s {WINDOW} GROUP BY k"
NEGATION = f"SELECT k FROM s {WINDOW} EXCEPT ALL ON (k) SELECT k FROM u {WINDOW}"
NEGATION_WHOLE = f"SELECT k FROM s {WINDOW} EXCEPT ALL SELECT k FROM u {WINDOW}"


def kept(text: str, policy: Policy) -> list[KeptState]:
    found, waiting = [], [cost(text, policy)]
    while waiting:
        each = waiting.pop(0)
        found += each.kept
        waiting += each.inputs
    return found


def test_a_selection_costs_its_rows_and_twice_so_many_where_exits_are_told() -> None:
    text = f"SELECT k FROM s {WINDOW} WHERE v > 0"
    assert term(cost(text), "rows") == 2 * RATE["s"]
    assert term(cost(DISTINCT, UPA), "rows") == RATE["s"]


def test_a_row_of_a_join_reads_the_other_side() -> None:
    probes = RATE["s"] * ROWS["u"] + RATE["u"] * ROWS["s"]
    assert term(cost(JOIN, UPA), "probe") == probes
    assert term(cost(JOIN, DIRECT), "probe") == probes
    assert term(cost(JOIN), "probe") == 2 * probes
    printed = RATE["s"] * ROWS["s"] + RATE["u"] * ROWS["u"]  # in the paper
    assert printed > 1.3 * probes


def test_distinct_reads_half_of_its_output() -> None:
    known = statistics(samples={"s": distinct(200, rows=1_000)})
    assert term(cost(DISTINCT, UPA, known), "probe") == RATE["s"] * 200 / 2
    assert term(cost(DISTINCT, TOLD, known), "probe") == 2 * RATE["s"] * 200 / 2


@pytest.mark.parametrize("policy", [TOLD, DIRECT, UPA], ids=lambda policy: policy.strategy)
def test_a_group_changes_when_a_row_comes_and_when_it_goes_in_any_strategy(policy: Policy) -> None:
    assert term(cost(GROUPED, policy), "fold") == 2 * RATE["s"]


@pytest.mark.parametrize("text", [NEGATION, NEGATION_WHOLE])
def test_a_negation_counts_each_row_twice_in_sorted_counters(text: str) -> None:
    known = statistics(samples={"s": distinct(254, rows=1_016), "u": distinct(254, rows=1_016)})
    counted = 2 * (RATE["s"] + RATE["u"]) * log2(256)
    assert isclose(term(cost(text, TOLD, known), "count"), counted)


def test_no_row_leaves_early_where_no_value_is_shared() -> None:
    apart = statistics(samples={"s": distinct(100), "u": distinct(100, first=100)})
    together = statistics(samples={"s": distinct(100), "u": distinct(100)})
    half = statistics(samples={"s": distinct(100), "u": distinct(100, first=50)})
    assert cost(NEGATION, TOLD, apart).premature == 0
    shares = [cost(NEGATION, TOLD, known).premature for known in (half, together)]
    assert 0 < shares[0] < shares[1] < 1
    assert term(cost(NEGATION, UPA, apart), "negative tuples") == 0
    assert term(cost(NEGATION, TOLD, apart), "negative tuples") == RATE["s"]


def test_a_bag_difference_leaves_what_the_samples_leave() -> None:
    left, right = ValueSample(1_000, {1: 600, 2: 400}), ValueSample(400, {1: 100, 3: 300})
    assert cost(NEGATION, TOLD, statistics(samples={"s": left, "u": right})).flow.rows == 500 + 400


def test_a_join_has_the_pairs_that_the_samples_have() -> None:
    left, right = ValueSample(10, {1: 6, 2: 4}), ValueSample(4, {1: 1, 3: 3})
    found = cost(JOIN, UPA, statistics(samples={"s": left, "u": right}))
    assert isclose(found.flow.rows, 6 / 40 * ROWS["s"] * ROWS["u"])
    assert isclose(found.flow.rate, 6 / 40 * (RATE["s"] * ROWS["u"] + RATE["u"] * ROWS["s"]))


@pytest.mark.parametrize(
    ("text", "policy", "structures"),
    [
        (JOIN, TOLD, ["hashed", "hashed"]),
        (JOIN, UPA, ["calendar", "fifo", "fifo"]),
        (JOIN, DIRECT, ["list", "list", "list"]),
        (DISTINCT, UPA, ["calendar", "groups"]),
        (GROUPED, UPA, ["groups"]),
        (NEGATION, UPA, ["calendar", "fifo", "fifo"]),
        ("SELECT k FROM s WHERE v > 0", UPA, []),
    ],
)
def test_structures_are_by_pattern_and_strategy(text: str, policy: Policy, structures: list[str]) -> None:
    assert [each.structure for each in kept(text, policy)] == structures


def test_more_partitions_make_ordered_insertion_cheaper_and_take_room() -> None:
    few, many = (cost(JOIN, replace(UPA, partitions=partitions)) for partitions in (2, 50))
    assert term(few, "insert") > term(many, "insert")
    assert [each.partitions for each in few.kept] == [2]


def test_a_list_is_scanned_at_each_look_for_exits() -> None:
    seldom, often = (cost(JOIN, DIRECT, statistics(steps=steps)) for steps in (1.0, 100.0))
    assert often.entries > seldom.entries
    assert cost(JOIN, UPA).entries < seldom.entries


def test_of_the_rows_that_tie_with_the_last_half_are_behind_it() -> None:
    known = statistics(samples={"s": distinct(10, rows=1_000)})
    found = cost("SELECT k FROM s ORDER BY k FETCH FIRST 5 ROWS WITH TIES", known=known)
    assert found.flow.rows == pytest.approx(5 + 100 / 2)


def test_an_array_is_taken_to_have_four_elements() -> None:
    known = statistics()
    plain, unnested = (
        cost(f"SELECT k FROM s{more}", known=known) for more in ("", ", UNNEST(ARRAY[k]) AS e")
    )
    assert unnested.flow.rows == pytest.approx(4 * plain.flow.rows)
    assert unnested.flow.rate == pytest.approx(4 * plain.flow.rate)


def test_costs_are_pure() -> None:
    for text in (JOIN, DISTINCT, GROUPED, NEGATION):
        assert cost(text, UPA) == cost(text, UPA)


def test_a_plan_knows_whether_all_exits_can_be_known() -> None:
    assert cost(NEGATION).is_strict
    assert cost("SELECT k FROM h").is_strict
    assert not cost(JOIN).is_strict


def test_recomputation_costs_all_rows_at_each_step() -> None:
    text = f"SELECT k, w, v FROM s {WINDOW} WHERE k IN (SELECT n FROM u) ORDER BY w LIMIT 2"
    assert bound(text)
    known = statistics()
    again = cost("SELECT k, v FROM SESSION(s, INTERVAL '3' MILLISECOND)", TOLD, known)
    assert again.ns > 0


def test_values_met_once_stand_for_others() -> None:
    assert distinct(10).distinct(10) == 10
    assert distinct(10).distinct(1_000) == 100
    assert distinct(10, rows=100).distinct(1_000) == 10
    assert distinct(10).distinct(3) == 3
    assert ValueSample(0, {}).distinct(5) == 0


def test_partners_are_uneven_by_what_chance_does_not_make() -> None:
    # Of 100 rows each, half find 40 partners and half 10: the mean is 25, the deviation 15.
    left = ValueSample(100, {1: 50, 2: 50})
    assert isclose(left.unevenness(ValueSample(50, {1: 40, 2: 10})), (40 * 39 + 10 * 9) / 2 / 25**2 - 1)
    assert left.unevenness(ValueSample(50, {1: 25, 2: 25})) == 0
    assert left.unevenness(ValueSample(50, {3: 50})) == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            f"SELECT s.w, COUNT(*) AS n FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.n GROUP BY s.w",
            [JoinedInput(100.0, grouped=True), JoinedInput(400.0)],
        ),
        (
            f"SELECT SUM(s.v) AS n FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.n",
            [JoinedInput(1_000.0, summed=True), JoinedInput(400.0)],
        ),
        (f"SELECT COUNT(*) AS n FROM s {WINDOW} WHERE k IN (SELECT n FROM u {WINDOW})", []),
    ],
)
def test_groups_have_rows_of_the_inputs_of_joins(text: str, found: list[JoinedInput]) -> None:
    known = statistics(samples={"s": distinct(10, rows=1_000), "u": distinct(10, rows=400)})
    query = bound(text)
    place = next(at for at, stage in enumerate(query.stages) if isinstance(stage, Aggregate))
    assert list(joined_inputs(query, place, TABLES, known)) == found
