"""Summaries come, change and go by steps, and come back from the store."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.engine import Engine
from engine.language.query import CreateSummary as Statement
from engine.model.source import SourceName
from engine.model.step import AlterSummary, CreateSummary, DropSource, DropSummary, Heartbeat
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.queries.summaries import NamedSummary
from engine.summaries.summary import Summary
from tests.capacities import small_engine, small_restored
from tests.engine.steps import CREATE, rows
from tests.memory_state import MemoryState
from tureen.errors import (
    NotSupported,
    SummaryConflict,
    SyntaxRefused,
    UnknownColumn,
    UnknownSource,
    UnknownSummary,
)

POPULAR = SummaryDefinition("popular", SourceName("s"), "v", granularity_ms=1_000, rate=2, depth=3)
SQL = "CREATE SUMMARY popular ON s (v) WITH GRANULARITY 1 SECOND AND COLLAPSE (2, 3)"


def made() -> Engine:
    engine = small_engine()
    engine.create(CREATE)
    return engine


def fill(engine: Engine, first: int, count: int) -> None:
    engine.ingest("s", rows(engine, first, *((n % 7, 97 * n) for n in range(first, first + count))))


def summary_of(engine: Engine) -> Summary:
    return engine._sources["s"].summarised.at_work["popular"]


def facts(summary: Summary) -> list[object]:
    """What a summary tells: its zones, and how often it has seen each value in each."""
    zones, places = summary.zones, np.arange(len(summary.zones.first))
    return [each.tolist() for each in zones[:6]] + [summary.cell_rows(places).tolist()]


def test_a_summary_that_comes_later_is_as_if_it_had_always_been_there() -> None:
    early, late = made(), made()
    early._now(CreateSummary(POPULAR, SQL), 0)
    for engine in (early, late):
        fill(engine, 0, 60)
    late._now(CreateSummary(POPULAR, SQL), 0)
    assert facts(summary_of(early)) == facts(summary_of(late))
    for engine in (early, late):
        fill(engine, 60, 40)
    assert facts(summary_of(early)) == facts(summary_of(late))
    assert early.summaries == {"popular": NamedSummary(POPULAR, SQL)}


def test_a_summary_of_the_same_definition_may_come_again() -> None:
    engine = made()
    engine._now(CreateSummary(POPULAR, SQL), 0)
    before = summary_of(engine)
    engine._now(CreateSummary(POPULAR, "CREATE SUMMARY IF NOT EXISTS ..."), 0)
    assert summary_of(engine) is before


@pytest.mark.parametrize(
    ("definition", "refusal"),
    [
        (replace(POPULAR, depth=2), SummaryConflict),
        (replace(POPULAR, name="other", stream=SourceName("t")), UnknownSource),
        (replace(POPULAR, name="other", attribute="w"), UnknownColumn),
    ],
    ids=["another_definition", "no_stream", "no_column"],
)
def test_summaries_that_cannot_be_are_refused(definition: SummaryDefinition, refusal: type) -> None:
    engine = made()
    engine._now(CreateSummary(POPULAR, SQL), 0)
    with pytest.raises(refusal):
        engine._now(CreateSummary(definition, SQL), 0)
    assert engine.summaries["popular"].definition == POPULAR


def test_a_table_has_no_summary() -> None:
    engine = small_engine()
    engine.create("CREATE TABLE s (v BIGINT PRIMARY KEY, ts TIMESTAMP) WITH (timestamp = 'ts')")
    with pytest.raises(NotSupported):
        engine._now(CreateSummary(POPULAR, SQL), 0)


def test_theta_changes_and_what_is_for_life_does_not() -> None:
    engine = made()
    engine._now(CreateSummary(POPULAR, SQL), 0)
    engine._now(AlterSummary("popular", SummarySettings(theta=0.25)), 0)
    assert engine.summaries["popular"].definition.settings.theta == 0.25
    assert summary_of(engine).definition.settings.theta == 0.25
    again = engine.prepare(engine.summaries["popular"].sql)
    assert isinstance(again, Statement)
    assert again.definition == engine.summaries["popular"].definition
    with pytest.raises(NotSupported):
        engine._now(AlterSummary("popular", SummarySettings(buckets=3)), 0)
    with pytest.raises(UnknownSummary):
        engine._now(AlterSummary("other", SummarySettings()), 0)


def test_a_stream_stays_while_it_is_summarised() -> None:
    engine = made()
    engine._now(CreateSummary(POPULAR, SQL), 0)
    with pytest.raises(SummaryConflict, match="popular"):
        engine._now(DropSource(SourceName("s")), 0)
    engine._now(DropSummary("popular"), 0)
    with pytest.raises(UnknownSummary):
        engine._now(DropSummary("popular"), 0)
    engine._now(DropSource(SourceName("s")), 0)
    assert not engine.catalogue
    assert not engine.summaries


def test_summaries_come_back_from_the_store() -> None:
    engine, store = made(), MemoryState()
    engine._now(CreateSummary(POPULAR, SQL), 0)
    fill(engine, 0, 50)
    engine.save(store)
    fill(engine, 50, 50)
    engine._now(AlterSummary("popular", SummarySettings(theta=0.5)), 0)
    engine.save(store)
    for other in (small_restored(store), copied(engine)):
        assert other.summaries == engine.summaries
        assert facts(summary_of(other)) == facts(summary_of(engine))
        fill(other, 100, 30)
    fill(engine, 100, 30)
    engine._now(DropSummary("popular"), 0)
    engine.save(store)
    assert not small_restored(store).summaries


def copied(engine: Engine) -> Engine:
    store = MemoryState()
    engine.copy(store)
    return small_restored(store)


PREFERRING = (
    "SELECT a.v FROM s a JOIN s b ON a.v = b.v "
    "WITH PREFERENCE SUMMARY.Estimate.Count(a.v), SUMMARY.Estimate.Count(b.v)"
)
ANOTHER = replace(POPULAR, name="another", depth=2)


def test_second_summary_that_would_leave_open_what_standing_queries_mean_is_refused() -> None:
    engine = made()
    engine._now(CreateSummary(POPULAR, SQL), 0)
    engine.register("q", PREFERRING)
    with pytest.raises(SummaryConflict, match=r"1 queries say SUMMARY of s \(v\)"):
        engine._now(CreateSummary(ANOTHER, SQL), 0)
    elsewhere = replace(ANOTHER, attribute="ts")
    engine._now(CreateSummary(elsewhere, SQL), 0)
    engine.unregister("q")
    engine.register("q", PREFERRING.replace("SUMMARY", "popular"))
    engine._now(CreateSummary(replace(ANOTHER, name="third"), SQL), 0)
    assert list(engine.summaries) == ["popular", "another", "third"]
    with pytest.raises(SyntaxRefused, match="several summaries"):
        engine.prepare(PREFERRING)


def test_a_clock_that_jumps_by_a_year_leaves_nothing_but_what_is_new() -> None:
    engine, store = made(), MemoryState()
    engine._now(CreateSummary(POPULAR, SQL), 0)
    fill(engine, 0, 50)
    year_ms = 366 * 86_400_000
    jump = rows(engine, 50, *((3, year_ms + n) for n in range(10)))
    engine.ingest("s", jump, clock_ms=year_ms)
    engine.save(store)
    for one in (engine, small_restored(store)):
        told = one.summary_facts("popular")["popular"]
        assert told["rows"] == sum(zone["rows"] for zone in told["listed"]) == 9
        assert [zone["granularity"] for zone in told["listed"]] == [1]
        assert told["granularities"][0]["from_ms"] == year_ms


RARE = "SELECT v FROM s WITH PREFERENCE asc popular.Estimate.Count(v)"
BOTH = """SELECT a.v AS v FROM s a JOIN t b ON a.v = b.v
WITH PREFERENCE desc popular.Estimate.Count(a.v), other.Estimate.Count(b.v) WINDOW 5 SECONDS"""
OTHER = replace(POPULAR, name="other", stream=SourceName("t"))


def found(engine: Engine, name: str) -> list[int]:
    return sorted(engine.view().snapshot(name).table.column("v").to_pylist())


def with_queries() -> Engine:
    """A selection that found all, and a join that found some of what it wants."""
    engine = made()
    engine.create(CREATE.replace("STREAM s", "STREAM t"))
    engine._now(CreateSummary(POPULAR, SQL), 0)
    engine._now(CreateSummary(OTHER, SQL), 0)
    engine.register("rare", RARE)
    engine.register("both", BOTH)
    for stream in "st":
        batch = rows(engine, 0, *((n % 7, 20 * n) for n in range(50)))
        engine.ingest(stream, batch)
    engine._now(Heartbeat(SourceName("s"), grant=100), 0)
    return engine


def test_queries_whose_summary_was_dropped_keep_their_answers_until_it_comes_again() -> None:
    engine, store = with_queries(), MemoryState()
    before = {name: found(engine, name) for name in ("rare", "both")}
    assert all(before.values())
    with pytest.raises(SummaryConflict, match="2 queries"):
        engine._now(DropSummary("popular"), 0)
    engine.save(store)
    engine._now(DropSummary("popular", forced=True), 0)
    engine.save(store)
    with pytest.raises(UnknownSummary):
        engine.register("new", RARE)
    for one in (small_restored(store), copied(engine), engine):
        one._now(Heartbeat(SourceName("s"), grant=10_000), 0)
        assert {name: found(one, name) for name in before} == before
        assert one.view().approximation("rare")
        assert list(one.summaries) == ["other"]
        one._now(CreateSummary(POPULAR, SQL), 0)
        one._now(Heartbeat(SourceName("s"), grant=10_000), 0)
        assert found(one, "rare") == sorted(n % 7 for n in range(49))
        assert len(found(one, "both")) > len(before["both"])
        assert not one.view().approximation("rare")
        one._check()


def test_a_summary_that_nobody_misses_any_more_is_forgotten() -> None:
    engine, store = with_queries(), MemoryState()
    engine._now(DropSummary("popular", forced=True), 0)
    engine.unregister("both")
    assert engine._parts.catalogue.summaries.absent
    engine.unregister("rare")
    assert not engine._parts.catalogue.summaries.absent
    engine.save(store)
    assert not [name for name, _ in store.state_parts("summary/popular")]


def test_queries_that_name_no_summary_take_the_next_of_their_column() -> None:
    engine = made()
    engine._now(CreateSummary(POPULAR, SQL), 0)
    engine.register("rare", RARE.replace("popular", "SUMMARY"))
    fill(engine, 0, 30)
    engine._now(DropSummary("popular", forced=True), 0)
    assert found(engine, "rare") == []
    engine._now(CreateSummary(replace(POPULAR, name="next"), SQL), 0)
    engine._now(Heartbeat(SourceName("s"), grant=100), 0)
    assert found(engine, "rare") == sorted(n % 7 for n in range(29))
    assert not engine._parts.catalogue.summaries.absent
    engine._check()
