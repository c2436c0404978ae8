"""A shard that comes back without what was removed answers as if it had been removed before."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from broker.base.settings import Settings
from broker.runtime.engines import Engines
from broker.shard import recovery
from broker.shard.held import Remaining, Removals, Rowless, begins_without, carried_out, reason
from broker.shard.shard_command import ShardCommand, step_bodies
from broker.shard.shard_state import ShardState
from engine.engine import Engine
from engine.model.limits import Limits
from engine.model.step import (
    Alter,
    AlterSummary,
    Claim,
    CreateSummary,
    DropSummary,
    Position,
    Registration,
    Step,
    Unregister,
)
from engine.model.summary import SummarySettings
from storage.store import Store
from tests.engine.feed import Feed
from tests.memory_state import MemoryState
from topics.journal import StepRecord
from tureen.errors import ShardHeld

QUERIES = {
    "wide": "SELECT k, v FROM s [RANGE 1 DAY]",
    "narrow": "SELECT k, v FROM s [RANGE 2 SECONDS] WHERE v > 3",
    "last": "SELECT v FROM s [ROWS 25]",
    "sum": "SELECT k, SUM(v) AS total FROM s [RANGE 1 SECOND] GROUP BY k",
}
STEP = 8_192


def fed() -> Feed:
    feed = Feed(retain="1 SECOND")
    for query_id, sql in QUERIES.items():
        feed.engine.register(query_id, sql)
    for first in range(0, 20 * STEP, STEP):
        feed.put(*((place, f"k{place % 5}", float(place % 11)) for place in range(first, first + STEP)))
    return feed


def unregister(engine: Engine, *query_ids: str) -> None:
    position = Position(engine.position.epoch, engine.position.sequence + 1)
    engine.enqueue(Step(position, 0, Unregister(query_ids)))
    engine.run()


def test_what_remains_is_restored_with_the_rows_it_needs(tmp_path: Path) -> None:
    feed, store = fed(), MemoryState()
    feed.engine.save(store)
    removals = Removals(tmp_path / "0.removals.json", {"wide"})
    rowless = Engine.restore(Rowless(store, removals))
    assert {info.query_id for info in rowless.view().queries()} == QUERIES.keys() - {"wide"}
    assert rowless.stats()["data-stem/s"]["rows"] == 0
    back = Engine.restore(Remaining(store, removals, begins_without(store, removals, rowless)))
    whole = feed.engine.stats()["data-stem/s"]["rows"]
    assert back.stats()["data-stem/s"]["rows"] < whole / 2
    back._check()

    # The removal is then a step; from there on both are the same, with rows that come later too.
    twin = copy(feed)
    twin.engine = back
    for each in (feed, twin):
        unregister(each.engine, "wide")
    for first in range(20 * STEP, 20 * STEP + 3_000, 1_000):
        for query_id in QUERIES.keys() - {"wide"}:
            one, two = (each.engine.view().snapshot(query_id) for each in (feed, twin))
            assert one.table.equals(two.table), query_id
            assert one.table.num_rows, query_id
            assert (one.position, one.now_ms, one.complete) == (two.position, two.now_ms, two.complete)
            assert one.complete_from_ms == two.complete_from_ms
        for each in (feed, twin):
            each.put(*((place, "k1", float(place % 13)) for place in range(first, first + 1_000)))
    back._check()
    back.save(store)
    assert {state.registration.query_id for state in store.queries()} == QUERIES.keys() - {"wide"}
    again = Engine.restore(store)
    for query_id in QUERIES.keys() - {"wide"}:
        assert again.view().snapshot(query_id).table.equals(back.view().snapshot(query_id).table)


def test_what_stands_is_known_with_the_texts_that_queries_have_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, store = fed(), MemoryState()
    feed.engine.save(store)
    position = Position(1, feed.engine.position.sequence + 1)
    claimed = Position(1, position.sequence + 1)
    altered = Alter(tuple(Registration(name, "SELECT v FROM s WHERE v > 5") for name in ("narrow", "wide")))
    steps = [
        StepRecord(position, 0, altered, None, frozenset()),
        StepRecord(claimed, 0, Claim("me"), None, frozenset()),
    ]
    monkeypatch.setattr(recovery, "read_steps", lambda *_: iter(steps))
    removals = Removals(tmp_path / "0.removals.json", {"wide"})
    known = recovery.rowless(0, cast("Store", store), claimed, Settings(), {}, Engines(Limits()), removals)
    texts = {info.query_id: info.sql for info in known.view().queries()}
    left = {name: sql for name, sql in QUERIES.items() if name != "wide"}
    assert texts == left | {"narrow": "SELECT v FROM s WHERE v > 5"}
    assert known.stats()["data-stem/s"]["rows"] == 0


def test_summaries_are_known_without_rows_and_where_another_query_is_refused(tmp_path: Path) -> None:
    feed, store = Feed(retain="1 SECOND"), MemoryState()
    feed.engine.create("CREATE SUMMARY keys ON s (k) WITH GRANULARITY 1 SECOND AND COLLAPSE(2, 2)")
    feed.engine.register("preferring", "SELECT v FROM s WITH PREFERENCE asc SUMMARY.Estimate.Count(k)")
    feed.engine.register("long", f"SELECT v FROM s WHERE v > 3 {'AND v > 3 ' * 20}")
    feed.put(*((place, f"k{place % 5}", 1.0) for place in range(100)))
    feed.engine.save(store)
    rowless = Engine.restore(Rowless(store, Removals(tmp_path / "0.removals.json", {"long"})))
    assert rowless.summaries == feed.engine.summaries
    assert rowless.summary_facts()["keys"]["rows"] == 0
    assert {info.query_id for info in rowless.view().queries()} == {"preferring"}
    back = Engines(Limits(sql_bytes_max=120)).restored(store)
    assert {info.query_id for info in back.view().queries()} == {"preferring"}
    found, expected = (engine.summary_facts("keys")["keys"] for engine in (back, feed.engine))
    assert {**found, "bytes": 0} == {**expected, "bytes": 0}  # room for zones that went is not brought back


def test_commands_about_summaries_make_steps_only_where_they_change_something() -> None:
    engine = Feed().engine
    engine.create("CREATE SUMMARY keys ON s (k) WITH GRANULARITY 1 SECOND AND COLLAPSE(2, 2)")
    named = engine.summaries["keys"]
    other = replace(named.definition, settings=SummarySettings(theta=0.5))
    commands = [
        ShardCommand.create_summary(named.definition, "another text"),
        ShardCommand.create_summary(other, "sql"),
        ShardCommand.create_summary(replace(other, name="more"), "sql"),
        ShardCommand.drop_summary("keys", forced=True),
        ShardCommand.drop_summary("none"),
    ]
    made = [one.body for one in step_bodies(commands, {}, {}, {"keys": named}, 1_000, lambda _: False)]
    assert made == [
        None,
        AlterSummary("keys", other.settings),
        CreateSummary(replace(other, name="more"), "sql"),
        DropSummary("keys", forced=True),
        None,
    ]
    shard_state, removals, held = ShardState(), Removals(Path("none")), reason(3, ["shard-3"])
    shard_state.summaries = {"keys": named}
    assert held is not None
    states = [carried_out(command, shard_state, removals, held)["state"] for command in commands]
    assert states == ["RUNNING", "PENDING", "PENDING", "ERROR", "ERROR"]


def test_removals_are_noted_until_they_are_made(tmp_path: Path) -> None:
    path = tmp_path / "shards" / "3.removals.json"
    removals, shard_state = Removals.read(path), ShardState()
    assert not removals
    shard_state.queries = {"a": ("SELECT 1", {}), "b": ("SELECT 2", {})}
    held = reason(3, ["shard-3"])
    assert held is not None
    states = [
        carried_out(command, shard_state, removals, held)["state"]
        for command in (
            ShardCommand.register("a", "SELECT 1", {}),
            ShardCommand.register("a", "SELECT 1", {"paused": True}),
            ShardCommand.register("c", "SELECT 3", {}),
            ShardCommand.unregister("b"),
            ShardCommand.unregister("nobody"),
            ShardCommand.prove(),
        )
    ]
    assert states == ["RUNNING", "PENDING", "PENDING", "GONE", "GONE", "RUNNING"]
    removals.note()
    assert Removals.read(path).queries == {"b"}
    removals.forget_if_saved(Position(1, 7))
    assert Removals.read(path)
    removals.made_at = Position(1, 7)
    removals.forget_if_saved(Position(1, 6))
    assert Removals.read(path)
    removals.forget_if_saved(Position(1, 7))
    assert not Removals.read(path)


def test_a_shard_is_held_by_its_own_hanging_and_by_what_ends_the_worker() -> None:
    assert reason(3, []) is None
    assert reason(3, ["shard-4"]) is None
    for cause in ("shard-3", "memory", "worker"):
        held = reason(3, [cause, "shard-4"])
        assert isinstance(held, ShardHeld)
        assert (held.shard, held.cause, held.code) == (3, cause, "shard_held")
        assert held.hint
