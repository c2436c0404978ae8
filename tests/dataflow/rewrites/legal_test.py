"""Every rewrite on every small plan that it fits: the same answers, errors and changes at every instant."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import event, given

from engine.algebra.limit.stage import Limit
from engine.algebra.set_operation.stage import SetOperation
from engine.changes.transition import Transition
from engine.dataflow.rewrites import RULES, alternatives
from engine.dataflow.rewrites.rule import Rule, applied
from engine.language.query import Query
from tests.changes.ways import FEW, STREAMS, bound, random_transition, seeds, told_of
from tests.dataflow.graph import bag
from tests.dataflow.rewrites.small_plans import BASES, KEYED, OPERATORS, base, closed, small_plans, snapshots

NAMES = [rule.name for rule in RULES]


@cache
def pairs() -> tuple[tuple[str, str, Query, Query], ...]:
    """Each small plan with what each rule makes of it: the rule, the plan's name, before, after."""
    return tuple(
        (rule.name, name, query, other)
        for depth in (1, 2)
        for name, query in small_plans(depth)
        for rule in RULES
        for other in applied(rule, query, STREAMS)
    )


def agree(before: Query, after: Query, transition: Transition, *, in_order: bool, name: str) -> None:
    assert after.columns == before.columns
    assert set(after.sources) == set(before.sources)
    one, other = snapshots(before, transition), snapshots(after, transition)
    for instant, (rows, errors) in one.items():
        found, met = other[instant]
        assert Counter(found) == Counter(rows), (name, instant)
        assert met == errors, (name, instant)
        if in_order:
            assert found == rows, (name, instant)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_each_rule_on_each_small_plan_keeps_every_answer(rule: Rule) -> None:
    rng = random.Random(20_050_614)
    fitting = [each for each in pairs() if each[0] == rule.name]
    assert len(fitting) >= 2
    for _, name, before, after in fitting:
        for _ in range(3):
            transition = random_transition(rng, before.sources, most=30)
            agree(before, after, transition, in_order=rule.keeps_order, name=name)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
@FEW
@given(seeds)
def test_changes_are_those_of_the_plan_without_it(rule: Rule, seed: int) -> None:
    rng = random.Random(seed)
    _, name, before, after = rng.choice([each for each in pairs() if each[0] == rule.name])
    event(name)
    transition = random_transition(rng, before.sources, most=30)
    operator = rng.choice(("changes", "istream", "dstream"))
    copies = rng.random() < 0.3 and operator == "changes"
    one = told_of(before, operator, transition, copies=copies)
    other = told_of(after, operator, transition, copies=copies)
    assert bag(one) == bag(other), name


@FEW
@given(seeds)
def test_several_rules_after_each_other_keep_every_answer(seed: int) -> None:
    rng = random.Random(seed)
    query = base(rng.choice(BASES))
    for name in rng.choices(list(OPERATORS), k=rng.randint(3, 5)):
        query = OPERATORS[name](query)
    query = closed(query)
    found = list(alternatives(query, STREAMS))
    assert found[0] == (query, ())
    after, names = rng.choice(found)
    event(", ".join(sorted(set(names))) or "as written")
    agree(query, after, random_transition(rng, query.sources, most=20), in_order=False, name=f"{names}")


@FEW
@given(seeds)
def test_a_bag_difference_goes_above_a_left_join_with_the_version_of_each_row(seed: int) -> None:
    """Each left row has one pair, whatever its version."""
    rng = random.Random(seed)
    joined = bound("SELECT s.k, p FROM s [RANGE 5 MILLISECONDS] LEFT JOIN m ON s.k = m.k")
    as_of, columns = joined.stages
    negation = SetOperation("except", base(KEYED), on=((0, 0),))
    query = replace(joined, stages=(negation, as_of, columns))
    (after,) = (found for found, names in alternatives(query, STREAMS) if names)
    assert after.stages == (as_of, negation, columns)
    agree(query, after, random_transition(rng, query.sources, most=30), in_order=True, name="")


def test_no_rule_that_moves_rows_is_applied_below_a_limit() -> None:
    merging = next(rule for rule in RULES if not rule.keeps_order)
    plans = dict(small_plans(2))
    for name, query in plans.items():
        if name.endswith("union of unions, limit"):
            assert list(applied(merging, query, STREAMS)) == []
            unlimited = tuple(stage for stage in query.stages if not isinstance(stage, Limit))
            assert len(list(applied(merging, replace(query, stages=unlimited), STREAMS))) == 1


def test_a_query_no_rule_concerns_has_no_alternatives() -> None:
    query = base("SELECT k, v FROM s [RANGE 5 MILLISECONDS]")
    assert list(alternatives(query, STREAMS)) == [(query, ())]
