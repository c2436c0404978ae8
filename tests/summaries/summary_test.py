"""Zones, counters and estimates are those of the definition, however the same rows come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.model.summary import SummaryDefinition, SummarySettings
from tests.summaries.summary import Rows, check, rows

YEAR_MS = 365 * 86_400_000


definitions = st.builds(
    SummaryDefinition,
    st.just("s"),
    st.just("a"),
    st.just("x"),
    st.sampled_from([1, 10, 40]),
    st.integers(2, 3),
    st.integers(1, 3),
    st.builds(
        SummarySettings,
        sketch_depth=st.sampled_from([1, 4, 5]),
        sketch_width=st.sampled_from([3, 8]),
        buckets=st.sampled_from([1, 3, 4]),
        theta=st.sampled_from([0.0, 0.7, 1.0]),
        zone_length_max_ms=st.sampled_from([None, 7]),
        zone_rows_min=st.sampled_from([1, 2, 5]),
    ),
)


@given(definitions, rows(), st.lists(st.integers(0, 999), min_size=1, max_size=6), st.integers(0, 2_000))
def test_zones_and_counters_are_those_of_their_rows_however_rows_are_cut(
    definition: SummaryDefinition, given_: Rows, cuts: list[int], later_ms: int
) -> None:
    check(definition, given_, cuts, later_ms)
