"""Options ``fade`` and ``priority``: what counts for a query, and which queries can have them."""

from __future__ import annotations

import pytest

from engine.language.preference import preference_of
from engine.language.query import Query
from engine.model.maintenance import QueryOptions
from engine.queries.possible_options import require_possible
from tests.language.fixtures import CATALOGUE, bind
from tureen.errors import OptionRefused

TEXT = "SELECT * FROM store1 WITH PREFERENCE SUMMARY.Estimate.Count(itemno) FADE FACTOR 0.8"


def bound(text: str) -> Query:
    query = bind(text)
    assert isinstance(query, Query)
    return query


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, (0.8, "count")),
        ({"fade": "0.25"}, (0.25, "count")),
        ({"fade": "1"}, (1.0, "count")),
        ({"priority": "density"}, (0.8, "density")),
        ({"priority": "COUNT", "fade": "1e-3"}, (0.001, "count")),
    ],
    ids=str,
)
def test_options_override_the_text(options: dict[str, str], wanted: tuple[float, str]) -> None:
    query = bound(TEXT)
    require_possible(options, lambda: query, CATALOGUE)
    preference = preference_of(query, QueryOptions.of(options))
    assert preference is not None
    assert (preference.fade, preference.form) == wanted
    assert query.preference is not None
    assert preference.priorities == query.preference.priorities


def test_query_without_a_preference_has_none_whatever_its_options() -> None:
    assert preference_of(bound("SELECT * FROM store1"), QueryOptions(fade=0.5)) is None


@pytest.mark.parametrize("fade", ["0", "1.5", "-1", "nan", "inf", "-0.0", "", "x", "80 %"])
def test_fade_that_is_no_factor_is_refused(fade: str) -> None:
    with pytest.raises(OptionRefused, match="fade cannot be"):
        QueryOptions.of({"fade": fade})


def test_unknown_form_of_the_priority_is_refused() -> None:
    with pytest.raises(OptionRefused, match="priority cannot be 'high'"):
        QueryOptions.of({"priority": "high"})


@pytest.mark.parametrize(("name", "value"), [("fade", "0.5"), ("priority", "density")])
def test_query_without_a_preference_cannot_have_its_options(name: str, value: str) -> None:
    with pytest.raises(OptionRefused, match=f"{name} is an option of queries with a preference"):
        require_possible({name: value}, lambda: bound("SELECT * FROM store1"), CATALOGUE)


@pytest.mark.parametrize("name", ["max_fp", "max_fn", "max_error"])
def test_query_with_a_preference_tolerates_nothing_besides(name: str) -> None:
    with pytest.raises(OptionRefused, match=f"{name} is no option of a query with a preference"):
        require_possible({name: "0.1"}, lambda: bound(TEXT), CATALOGUE)
