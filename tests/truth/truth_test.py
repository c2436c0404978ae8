"""Tag and truth of answers that are given less: a few allocations here, a thousand in ``make test-slow``.

``python -m tests.truth`` prints the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.truth.cases import CASES
from tests.truth.runs import NEAR, Found, runs

FEW = {
    "allotments": [name for name, case in CASES.items() if case.keys is None or "r" not in "".join(case.cut)],
    "hand edits": ["join", "in", "count over a join", "except all"],
    "budgets": ["join", "count over a join", "join in in"],
    "sheds": ["selection"],
}
"""Without samples, which take many queries to tell their error of."""
MANY = {"allotments": 20, "hand edits": 10, "budgets": 8}
"""Allocations of each case: a thousand of all."""
FEW_TAKEN = 6
"""So few edits by hand, of those that a bound lets pass, are no mean yet."""


def assert_true(found: Sequence[Found], near: float) -> None:
    assert not [one for one in found if one.breaks]
    apart = [one.apart for one in found]
    assert abs(float(np.mean(apart))) <= near, found
    assert max(one.fp for one in found) == 0.0, found


@pytest.mark.parametrize("path", FEW)
def test_tags_are_true(path: str) -> None:
    for name in FEW[path]:
        count = {"allotments": 1, "sheds": 20}.get(path, 3)
        if found := list(runs(path, name, count, seed=7)):
            assert_true(found, 2 * NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("path", MANY)
def test_tags_are_true_of_many_allocations(path: str, case: str) -> None:
    if found := list(runs(path, case, MANY[path], seed=11)):
        assert_true(found, NEAR if len(found) > FEW_TAKEN else 1.5 * NEAR)
