"""Precision of operators, by hand-made figures and at their limits."""

from __future__ import annotations

import numpy as np
import pytest

from engine.overload.precision.composition import (
    distinct,
    excepted,
    joined,
    selected,
    united,
    wrongly_removed,
)
from engine.overload.precision.precision import EXACT, Precision


def figures(precision: Precision) -> tuple[float, float]:
    return float(precision.fp[0]), float(precision.fn[0])


def test_join_multiplies_right_and_found_shares() -> None:
    found = figures(joined(Precision.of(0.1, 0.2), Precision.of(0.15, 0.3)))
    assert found == pytest.approx((0.235, 0.44), abs=1e-12)


def test_except_turns_a_miss_on_the_right_into_a_wrong_row() -> None:
    left, right = Precision.of(0.1, 0.2), Precision.of(0.0, 0.25)
    found = figures(excepted(left, right, overlap=0.4, removed=0.02, wrong_removed=0.07))
    assert found == pytest.approx((0.257, 0.216), abs=5e-4)


def test_distinct_misses_a_value_when_all_its_copies_are_missed() -> None:
    copies = ((1, 0.4), (2, 0.2), (3, 0.2), (5, 0.2))
    found = figures(distinct(Precision.of(0.2, 0.3), copies=copies, wrong_copies=2.0))
    assert found == pytest.approx((0.197, 0.144), abs=5e-4)


def test_union_weighs_its_inputs_by_their_rows() -> None:
    # 100 rows due of which 80 are found, with 20 wrong ones; 300 due, all found, none wrong.
    found = figures(united([Precision.of(0.2, 0.2), EXACT], [100.0, 300.0]))
    assert found == pytest.approx((20 / 400, 20 / 400), abs=1e-12)


def test_selection_keeps_the_share_of_missing_rows() -> None:
    assert figures(selected(Precision.of(0.2, 0.3))) == pytest.approx((0.2, 0.3))
    halved = figures(selected(Precision.of(0.2, 0.3), wrong_passes=0.5))
    assert halved == pytest.approx((0.1 / 0.9, 0.3))
    assert figures(selected(Precision.of(0.2, 0.3), wrong_passes=0.0)) == pytest.approx((0.0, 0.3))


def test_own_precision_multiplies() -> None:
    found = figures(selected(Precision.of(0.2, 0.3), Precision.of(0.5, 0.1)))
    assert found == pytest.approx((1 - 0.8 * 0.5, 1 - 0.7 * 0.9))


def test_rows_of_the_right_that_are_wrong_remove_rows_of_the_difference() -> None:
    # Of 200 rows of B 75 % are found with a third as many wrong ones: 50, of which 20 % hit 500 rows.
    removed = wrongly_removed(Precision.of(0.25, 0.25), 200.0, 500.0, 0.2)
    assert float(removed[0]) == pytest.approx(200 * 0.75 / 3 * 0.2 / 500)
    assert float(wrongly_removed(EXACT, 200.0, 0.0, 0.2)[0]) == 0.0


@pytest.mark.parametrize(
    "composed",
    [
        lambda one: selected(one),
        lambda one: joined(one, one),
        lambda one: united([one, one], [1.0, 2.0]),
        lambda one: excepted(one, one, overlap=0.3),
        lambda one: distinct(one, copies=((2, 1.0),)),
    ],
)
def test_exact_inputs_give_exact_rows_and_no_input_gives_none(composed: object) -> None:
    assert callable(composed)
    assert figures(composed(EXACT)) == (0.0, 0.0)
    nothing = composed(Precision.of(0.0, 1.0))
    assert nothing.fn[0] == 1.0
    assert np.isfinite(nothing.fp[0])
    everything_wrong = composed(Precision.of(1.0, 1.0))
    assert 0.0 <= everything_wrong.fp[0] <= 1.0
    assert everything_wrong.fn[0] == 1.0


@pytest.mark.parametrize(("fp", "fn"), [(-0.1, 0.0), (0.0, 1.1), (float("nan"), 0.0)])
def test_what_is_no_share_is_refused(fp: float, fn: float) -> None:
    with pytest.raises(ValueError, match="no share"):
        Precision.of(fp, fn)
