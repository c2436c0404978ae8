"""Defects elsewhere than in operators: binding, planning, what is kept of answers, groups, coming back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from engine import persistence
from engine.dataflow.graph import Graph
from engine.dataflow.graph_nodes import GraphNodes
from engine.engine import Engine
from engine.joins.group import JoinGroup
from engine.model.defects import internal
from engine.model.step import Register, Registration
from engine.operators.maintained.ranked_aggregates import RankedAggregates
from engine.promising.selections import PromisingSelection
from engine.queries import registrations
from engine.queries.planner import Planner
from engine.queries.strategist import Strategist
from tests.engine.faulty import VICTIM
from tests.engine.isolation import Driven
from tests.memory_state import MemoryState
from tests.queries.preferring import SELECTION, World, preferring
from tureen.errors import InternalError

ROWS = "SELECT k, v FROM s [RANGE 5 MILLISECONDS]"
MARK = 4711
MARKED = f"SELECT k, v FROM s [RANGE {MARK} MILLISECONDS]"
"""Text of the victim for cases where an argument is to tell that it is about the victim."""


def broken_if(original: Callable[..., Any], concerns: Callable[..., bool]) -> Callable[..., Any]:
    def struck(*args: Any, **more: Any) -> Any:
        if concerns(*args, **more):
            raise KeyError("a value of a row")
        return original(*args, **more)

    return struck


def of_victim(*args: Any, **more: Any) -> bool:
    """Whether an argument speaks of the victim's text."""
    return any(str(MARK) in repr(each) for each in (*args, *more.values()))


@pytest.fixture
def driven() -> Driven:
    found = Driven(["s"])
    found.register("other", ROWS)
    found.rows()
    return found


def test_what_is_told_of_a_defect_has_no_values_of_rows() -> None:
    try:
        raise KeyError("a value of a row")
    except KeyError as defect:
        error = internal(defect)
    assert "a value" not in error.trace + str(error.as_dict())
    assert "KeyError" in error.trace
    assert error.code == "internal_error"
    assert error.incident in error.message


def test_a_text_that_cannot_be_bound_is_refused_and_those_beside_it_come(driven: Driven) -> None:
    with mock.patch.object(registrations, "bound", broken_if(registrations.bound, of_victim)):
        body = Register((Registration(VICTIM, MARKED), Registration("beside", ROWS + " WHERE v > 0")))
        result = driven.step(body)
    assert isinstance(result.failed[VICTIM], InternalError)
    assert list(driven.engine._queries) == ["other", "beside"]


@pytest.mark.parametrize(
    ("of", "method"),
    [(Planner, "first"), (Strategist, "way"), (Graph, "_plan_of"), (GraphNodes, "build"), (Graph, "add")],
)
def test_a_plan_that_cannot_be_made_ends_its_query_alone(driven: Driven, of: type, method: str) -> None:
    with mock.patch.object(of, method, broken_if(getattr(of, method), of_victim)):
        driven.register(VICTIM, MARKED)
        driven.rows()
    assert driven.errors.keys() == {VICTIM}
    assert list(driven.engine._queries) == ["other"]
    assert any("other" in each for each in driven.told[-1:])


def test_a_choice_that_cannot_be_made_again_ends_its_query_alone(driven: Driven) -> None:
    driven.register(VICTIM, MARKED)
    with mock.patch.object(Planner, "again", broken_if(Planner.again, of_victim)):
        driven.engine.revisions.revise({}, 1.0)
        assert driven.engine.defects.keys() == {VICTIM}
        driven.rows()
    assert driven.errors.keys() == {VICTIM}


def test_tags_that_cannot_be_told_end_their_query_alone(driven: Driven) -> None:
    tellers = driven.engine._parts.tags.approximations._tellers
    broken = [broken_if(teller, of_victim) for teller in tellers]
    with mock.patch.object(driven.engine._parts.tags.approximations, "_tellers", broken):
        driven.register(VICTIM, MARKED)
    assert driven.errors.keys() == {VICTIM}


def test_partial_results_that_fail_end_the_queries_that_fail_alone(driven: Driven) -> None:
    text = "SELECT COUNT(*) AS c, SUM(v) AS t FROM s [RANGE 40 MILLISECONDS] WHERE k = {}"
    for name, key in (("one", 0), ("two", 1), (VICTIM, 2)):
        driven.register(name, text.format(key), maintenance="eager")
    expected = Driven(["s"])
    expected.register("other", ROWS)
    expected.rows()
    for name, key in (("one", 0), ("two", 1)):
        expected.register(name, text.format(key), maintenance="eager")
    expected.rows()
    concerns: Callable[..., bool] = lambda trees, *_: VICTIM in trees._queries  # noqa: E731
    added = RankedAggregates.add

    def adding(trees: RankedAggregates, queries: Any, rows: Any) -> None:
        added(trees, queries, rows)
        if VICTIM in queries:
            raise IndexError("it grows no more")

    with (
        mock.patch.object(RankedAggregates, "advance", broken_if(RankedAggregates.advance, concerns)),
        mock.patch.object(RankedAggregates, "add", adding),
    ):
        driven.rows()
    assert driven.errors.keys() == {VICTIM}
    assert driven.answers() == expected.answers()
    assert driven.engine._queries["one"].partials is not None
    driven.engine._check()


def test_a_shared_join_that_fails_ends_those_who_share_it(driven: Driven) -> None:
    driven.moving = ("s", "u")
    join = "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.{}"
    driven.register(VICTIM, join.format("k"), maintenance="lazy")
    driven.register("by n", join.format("n"), maintenance="lazy")
    shape = driven.engine._parts.sets.of(driven.engine._queries[VICTIM]).joins.shapes[VICTIM]
    concerns: Callable[..., bool] = lambda group, *_: group.shape == shape  # noqa: E731
    with mock.patch.object(JoinGroup, "advance", broken_if(JoinGroup.advance, concerns)):
        driven.rows()
    assert driven.errors.keys() == {VICTIM}
    driven.rows()
    assert list(driven.engine._queries) == ["other", "by n"]
    driven.engine._check()


@pytest.mark.parametrize("method", ["add", "arrive", "spend", "found", "_visit"])
def test_a_group_that_fails_ends_its_queries_alone(method: str) -> None:
    world = World()
    world.engine.register("ascending", preferring(SELECTION, order="asc"))
    concerns: Callable[..., bool] = lambda group, *_: VICTIM in group.members  # noqa: E731
    original = getattr(PromisingSelection, method)
    if method == "add":
        concerns = lambda _, member, at: member.query_id == VICTIM  # noqa: E731
    with mock.patch.object(PromisingSelection, method, broken_if(original, concerns)):
        world.engine.register(VICTIM, preferring(SELECTION, order="desc"))
        for at in (1, 3, 3_000, 6_000):
            world.bring("s", [(1.0, 1, at * 1_000), (2.0, 2, at * 1_000 + 9)], grant=100)
            world.engine.needs.preference_work()
            world.engine.view()
        assert world.engine.defects.keys() == {VICTIM}
        world.engine.unregister(VICTIM)
    assert not world.engine.defects
    world.bring("s", [(3.0, 3, 6_001_000)], grant=100)
    assert (2.0, 2) in world.rows("ascending")
    world.engine._check()


def test_a_snapshot_that_fails_ends_its_query_but_where_memory_was_short(driven: Driven) -> None:
    driven.register(VICTIM, MARKED)
    view = driven.engine.view()
    with mock.patch("engine.views.set_view.evaluate", side_effect=MemoryError), pytest.raises(InternalError):
        view.snapshot(VICTIM)
    assert not driven.engine.defects
    with mock.patch("engine.views.set_view.evaluate", side_effect=IndexError), pytest.raises(InternalError):
        view.snapshot(VICTIM)
    assert driven.engine.defects.keys() == {VICTIM}
    driven.rows()
    assert list(driven.engine._queries) == ["other"]


def test_a_query_that_cannot_come_back_goes_and_the_others_are_there(driven: Driven) -> None:
    driven.register(VICTIM, MARKED)
    store = MemoryState()
    driven.engine.save(store)
    answers = driven.answers()
    with mock.patch.object(persistence, "bound", broken_if(persistence.bound, of_victim)):
        driven.engine = Engine.restore(store)
    assert driven.engine.defects.keys() == {VICTIM}
    assert driven.answers() == {"other": answers["other"]}
    driven.rows()
    assert not driven.engine.defects
    again = MemoryState()
    driven.engine.copy(again)
    driven.engine.save(store)
    assert [state.registration.query_id for state in store.queries()] == ["other"]


def test_of_many_that_share_an_operator_few_tries_find_the_one() -> None:
    driven = Driven(["s"])
    text = "SELECT w, MAX(v) AS m FROM s [RANGE 4 MILLISECONDS] WHERE k < {} GROUP BY w"
    for place in range(40):
        driven.register(VICTIM if place == 17 else f"q{place}", text.format(place))
    tried = 0
    advance = Graph.advance

    def advancing(graph: Graph, *args: Any) -> Any:
        nonlocal tried
        tried += 1
        if VICTIM in graph:
            raise ZeroDivisionError
        return advance(graph, *args)

    with mock.patch.object(Graph, "advance", advancing):
        driven.rows()
    assert driven.errors.keys() == {VICTIM}
    assert tried < 20
