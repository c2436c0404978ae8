"""Every aggregate of the catalogue has a function, and no function has none."""

from __future__ import annotations

from engine.language.aggregates import AGGREGATES
from engine.operators.aggregate import FUNCTIONS


def test_catalogue_and_functions_name_the_same_aggregates() -> None:
    assert FUNCTIONS.keys() == AGGREGATES.keys()


def test_invertible_aggregates_do_not_depend_on_order() -> None:
    assert not [one.name for one in AGGREGATES.values() if one.invertible and not one.mergeable]
