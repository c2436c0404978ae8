"""WITH PREFERENCE, bound: whose priority is whose, and that what stands around it means what it did."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.language.preference import ATTRIBUTE, COUNT, FREQUENCY, Preference
from engine.language.query import AlterSummary, CreateSummary, Query
from engine.language.render import render_query
from engine.language.summary_text import summary_text
from engine.model.expressions import Column, columns_of
from engine.model.source import SourceName
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import BIGINT, DOUBLE, INTEGER
from engine.windows.clauses import NOW, UNBOUNDED, Instant, TimeWindow
from tests.language.fixtures import SUMMARIES, bind
from tureen.errors import TureenError, UnknownSource, UnknownSummary

JOIN = "SELECT a.price FROM store1 a, store2 b WHERE a.itemno = b.itemno"
OF_A, OF_B = "2 * SUMMARY.Estimate.Count(a.itemno)", "SUMMARY.Estimate.Frequency(b.itemno) + b.itemno"
CLAUSE = "WITH PREFERENCE SUMMARY.Estimate.Count(itemno)"


def query_of(sql: str) -> Query:
    query = bind(sql)
    assert isinstance(query, Query)
    return query


def preference_in(sql: str) -> Preference:
    preference = query_of(sql).preference
    assert preference is not None
    return preference


@pytest.mark.parametrize("text", [f"{OF_A}, {OF_B}", f"{OF_B}, {OF_A}"], ids=["in_order", "exchanged"])
def test_priorities_belong_to_the_source_of_their_estimates(text: str) -> None:
    preference = preference_in(f"{JOIN} WITH PREFERENCE {text}")
    assert [(one.scan, one.source, one.summary, one.column) for one in preference.priorities] == [
        (0, "store1", "items1", 0),
        (1, "store2", "items2", 0),
    ]
    first, second = (set(columns_of(one.expression)) for one in preference.priorities)
    assert first == {Column(COUNT, "count", BIGINT)}
    assert second == {Column(FREQUENCY, "frequency", DOUBLE), Column(ATTRIBUTE, "itemno", INTEGER)}


def test_window_is_that_of_every_scan_and_the_exact_query_has_it_in_its_brackets() -> None:
    plain = query_of(JOIN.replace("store1 a", "store1 [RANGE 1 MINUTE] a").replace("2 b", "2 [RANGE 60 s] b"))
    query = query_of(f"{JOIN} WITH PREFERENCE {OF_A}, {OF_B} WINDOW 1 MINUTE")
    assert query.preference is not None
    assert query.preference.window_ms == 60_000
    assert [scan.window for scan in query.scans()] == [TimeWindow(Instant(True, -60_000), NOW)] * 2
    assert replace(query, preference=None, sql="") == replace(plain, sql="", stages=_resaid(plain, query))


def _resaid(plain: Query, query: Query) -> tuple[object, ...]:
    """The stages, whose inner queries have the text of the whole."""
    return tuple(
        replace(one, inner=replace(one.inner, sql=query.sql)) if hasattr(one, "inner") else one
        for one in plain.stages
    )


def test_without_a_window_scans_are_unbounded() -> None:
    query = query_of(f"SELECT * FROM store1 {CLAUSE}")
    assert [scan.window for scan in query.scans()] == [UNBOUNDED]
    preference = query.preference
    assert preference is not None
    assert (preference.order, preference.fade, preference.window_ms) == ("desc", 1.0, None)


PARTS = {
    "fade": ["", "FADE FACTOR 0.5", "FADE FACTOR 50 %", "FADE FACTOR .5"],
    "window": ["", "WINDOW 1 MINUTE", "WINDOW '60 seconds'", "window interval '1' minute"],
    "allowed": ["", "WITH (weight = 3)"],
    "emit": ["", "EMIT CHANGES", "EMIT CHANGES WITH (format = 'diff')"],
    "order": ["", "asc", "DESC", "Weighted"],
    "name": ["with preference", "WITH\nPREFERENCE", "WITH /* it */ PREFERENCE"],
}


@given(st.fixed_dictionaries({name: st.sampled_from(choices) for name, choices in PARTS.items()}), st.data())
def test_parts_of_the_clause_mean_the_same_in_any_company(said: dict[str, str], data: st.DataObject) -> None:
    tail = data.draw(st.permutations([said["fade"], said["window"]]))
    clause = f"{said['name']} {said['order']} SUMMARY.Estimate.Count(itemno) {' '.join(tail)}"
    behind = data.draw(st.permutations([clause, said["allowed"]]))
    query = query_of(f"SELECT * FROM store1 WHERE price > 5 {' '.join(behind)} {said['emit']}")
    preference = query.preference
    assert preference is not None
    assert preference.order == (said["order"].lower() or "desc")
    assert preference.fade == (0.5 if said["fade"] else 1.0)
    assert preference.window_ms == (60_000 if said["window"] else None)
    assert query.weight == (3.0 if said["allowed"] else None)
    assert (query.emit is not None) == bool(said["emit"])
    assert query.emit is None or query.emit.format == ("diff" if "diff" in said["emit"] else "upsert")
    without = query_of(f"SELECT * FROM store1 WHERE price > 5 {said['allowed']} {said['emit']}")
    window = query.scan.window
    assert replace(query, preference=None, sql="") == replace(
        without, scan=replace(without.scan, window=window), sql=""
    )
    assert render_query(query).count("preference") == 1


def test_estimates_and_summaries_are_names_elsewhere() -> None:
    query = query_of(
        "WITH summary AS (SELECT itemno AS estimate, price AS fade FROM store1) "
        "SELECT summary.estimate, fade AS weighted FROM summary WHERE summary.estimate > 5"
    )
    assert [name for name, _ in query.columns] == ["estimate", "weighted"]
    assert query.preference is None


def test_missing_summary_may_still_come_as_a_missing_stream_may() -> None:
    with pytest.raises(UnknownSummary) as refused:
        bind("SELECT * FROM store2 WITH PREFERENCE SUMMARY.Estimate.Count(price)")
    assert isinstance(refused.value, UnknownSource)
    assert (refused.value.code, refused.value.name) == ("unknown_summary", "store2")
    made = bind(str(refused.value.hint).removeprefix("write ").replace("name ON", "prices2 ON"))
    assert isinstance(made, CreateSummary)
    assert (made.definition.stream, made.definition.attribute) == ("store2", "price")


def test_hint_of_a_window_that_is_too_long_names_a_depth_that_reaches_it() -> None:
    with pytest.raises(TureenError) as refused:
        bind(f"SELECT * FROM store1 {CLAUSE} WINDOW 1 DAY")
    assert refused.value.hint is not None
    depth = int(refused.value.hint.rsplit(", ", 1)[1].removesuffix(")"))
    assert replace(SUMMARIES["items1"], depth=depth - 1).reach_ms < 86_400_000
    assert replace(SUMMARIES["items1"], depth=depth).reach_ms >= 86_400_000


def test_alter_changes_what_it_says_and_nothing_else() -> None:
    altered = bind("ALTER SUMMARY items1 SET (theta = 0.25)")
    assert isinstance(altered, AlterSummary)
    before = SummarySettings(buckets=3, theta=0.9, zone_rows_min=7)
    assert altered.applied(before) == replace(before, theta=0.25)


definitions = st.builds(
    SummaryDefinition,
    name=st.sampled_from(["x", "two words", "select"]),
    stream=st.just(SourceName("store1")),
    attribute=st.sampled_from(["itemno", "price"]),
    granularity_ms=st.integers(1, 10**7),
    rate=st.integers(2, 6),
    depth=st.integers(1, 5),
    settings=st.builds(
        SummarySettings,
        kind=st.sampled_from(["count_sketch", "histogram"]),
        sketch_depth=st.integers(1, 9),
        sketch_width=st.integers(1, 128),
        buckets=st.integers(1, 64),
        bucket_function=st.sampled_from(["hash", "range"]),
        theta=st.floats(0, 1),
        zone_length_max_ms=st.none() | st.just(1),
        zone_rows_min=st.integers(1, 10**6),
    ),
)


@given(definitions)
def test_text_of_a_summary_binds_to_it(definition: SummaryDefinition) -> None:
    if definition.settings.zone_length_max_ms is not None:
        settings = replace(definition.settings, zone_length_max_ms=definition.granularity_ms)
        definition = replace(definition, settings=settings)
    made = bind(summary_text(definition))
    assert isinstance(made, CreateSummary)
    assert made.definition == definition
