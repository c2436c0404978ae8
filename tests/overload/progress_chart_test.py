"""Charts, their lower envelopes, and the same of plans that branch."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.overload.progress_chart import (
    ChartSlopes,
    ProgressPoint,
    Segment,
    Stage,
    points_of,
    segments_of,
)

MODULES = st.lists(
    st.tuples(st.integers(1, 8).map(float), st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0])),
    min_size=1,
    max_size=6,
)


def test_points_are_times_and_products_of_selectivities() -> None:
    points = points_of([(1, 0.2), (2, 0.5), (1, 0.7)], 100)
    assert [(one.spent, one.left) for one in points] == [(0, 100), (1, 20), (3, 10), (4, 0)]


def test_the_papers_plan_has_two_segments() -> None:
    segments = segments_of(points_of([(1, 0.2), (1, 0)]))
    assert [(one.first, one.after) for one in segments] == [(0, 1), (1, 2)]
    assert [one.slope for one in segments] == pytest.approx([0.8, 0.2])


def test_a_flat_module_before_a_steep_one_is_in_its_chain() -> None:
    first, second = segments_of(points_of([(1, 0.9), (1, 2 / 9), (1, 0)]))
    assert (first.first, first.after, second.after) == (0, 2, 3)
    assert first.slope == pytest.approx(0.4)


def test_of_equal_slopes_the_longest_segment_is_taken() -> None:
    points = [ProgressPoint(t, s) for t, s in ((0, 1.0), (1, 0.5), (2, 0.0))]
    assert segments_of(points) == (Segment(0, 2, 0.5),)


def test_a_join_that_lets_out_more_than_comes_in_has_a_negative_slope_of_its_own() -> None:
    points = points_of([(1, 3.0), (1, 1.0)])
    assert segments_of(points)[0].slope == pytest.approx(0.5)  # with what consumes it, it takes all away
    grows = [ProgressPoint(0, 1), ProgressPoint(1, 3), ProgressPoint(2, 3)]
    assert segments_of(grows)[0].slope == -1


def test_modules_that_take_no_time_are_as_steep_as_can_be() -> None:
    (segment,) = segments_of(points_of([(0, 0.5)]))
    assert segment.slope == math.inf


@pytest.mark.parametrize("module", [(-1, 0.5), (1, -0.5), (math.nan, 0.5), (1, math.nan), (1, math.inf)])
def test_times_and_selectivities_that_cannot_be_are_refused(module: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="module 1 takes"):
        points_of([module])


def test_time_that_goes_back_is_refused() -> None:
    with pytest.raises(ValueError, match="time goes back"):
        segments_of([ProgressPoint(1, 1), ProgressPoint(0, 0)])


@given(MODULES)
def test_slopes_fall_from_segment_to_segment_and_no_point_lies_below(
    modules: list[tuple[float, float]],
) -> None:
    points = points_of(modules)
    segments = segments_of(points)
    assert [one.first for one in segments] == [0, *(one.after for one in segments[:-1])]
    assert all(a.slope > b.slope for a, b in itertools.pairwise(segments))
    for segment in segments:
        begin = points[segment.first]
        for point in points[segment.first + 1 :]:
            line = begin.left - segment.slope * (point.spent - begin.spent)
            assert point.left >= line - 1e-9


@given(MODULES)
def test_in_a_row_the_subtree_is_the_lower_envelope(modules: list[tuple[float, float]]) -> None:
    size, stages = 1.0, {}
    for place, (time, selectivity) in enumerate(modules):
        if size == 0:
            return  # nothing passes: there is no unit of what comes in
        outputs = ((place + 1, selectivity),) if place + 1 < len(modules) else ()
        stages[place] = Stage(time / size, outputs)
        size *= selectivity
    points, slopes = points_of(modules), ChartSlopes[int]()
    slopes.redo(list(reversed(stages)), stages)
    for place in range(len(modules)):
        expected = segments_of(points[place:])[0].slope
        assert slopes.of(place) == pytest.approx(expected)


def _steepest(name: str, stages: dict[str, Stage[str]]) -> float:
    """All subtrees from a module on, one after the other."""

    def subtrees(at: str, share: float) -> list[tuple[float, float]]:
        stage = stages[at]
        found = [(share * stage.taken, share * stage.cost)]
        for consumer, part in stage.outputs:
            below = subtrees(consumer, share * part)
            found += [(taken + t, spent + s) for taken, spent in found for t, s in below]
        return found

    return max(taken / spent for taken, spent in subtrees(name, 1.0))


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(1, 8), st.sampled_from([0.25, 0.5, 1.0, 1.5])), min_size=6, max_size=6),
)
def test_of_plans_that_branch_the_steepest_subtree_is_found(
    feeders: list[int], numbers: list[tuple[int, float]]
) -> None:
    outputs: dict[int, list[tuple[str, float]]] = {place: [] for place in range(len(feeders) + 1)}
    for place, feeder in enumerate(feeders, 1):
        outputs[min(feeder, place - 1)].append((str(place), numbers[place][1]))
    stages = {str(place): Stage(float(numbers[place][0]), tuple(outputs[place])) for place in outputs}
    slopes = ChartSlopes[str]()
    slopes.redo(list(reversed(stages)), stages)  # a feeder stands before what it feeds
    for name in stages:
        assert slopes.of(name) == pytest.approx(_steepest(name, stages))
