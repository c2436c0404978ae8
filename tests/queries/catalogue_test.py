"""Streams and views that stand, and what keeps them from going."""

from __future__ import annotations

from typing import Any

import pytest

from engine.engine import Engine
from engine.language.functions import FunctionCatalogue
from engine.language.user_functions import user_function
from engine.model.source import SourceName
from engine.model.step import DropSource, Position, Step
from tests.capacities import small_engine, small_restored
from tests.engine.feed import Feed
from tests.memory_state import MemoryState
from tureen.errors import SourceConflict


def drop(engine: Engine, name: str) -> Exception | None:
    last = engine.position
    engine.enqueue(Step(Position(last.epoch, last.sequence + 1), 0, DropSource(SourceName(name))))
    return engine.run()[-1].failed.get(name)


def without_its_function() -> Engine:
    """Restored without a function that the view ``doubled`` over ``s`` calls."""

    def double(value: Any) -> Any:
        return 2 * value

    functions = FunctionCatalogue([user_function("double", ["DOUBLE"], "DOUBLE", double)])
    engine, store = small_engine(functions=functions), MemoryState()
    for name in ("s", "other"):
        engine.create(f"CREATE STREAM {name} (v DOUBLE, ts TIMESTAMP) WITH (timestamp = 'ts')")
    engine.create("CREATE VIEW doubled AS SELECT double(v) AS v FROM s")
    engine.create("CREATE VIEW plain AS SELECT v FROM s")
    engine.save(store)
    return small_restored(store)


def test_a_view_whose_function_is_missing_keeps_nothing_back_but_what_it_reads() -> None:
    engine = without_its_function()
    assert drop(engine, "plain") is None
    assert drop(engine, "other") is None
    engine.create("CREATE VIEW again AS SELECT v FROM s WHERE v > 1")
    assert isinstance(drop(engine, "s"), SourceConflict)


@pytest.mark.parametrize("name", ["doubled", "plain"])
def test_a_view_whose_function_is_missing_can_be_dropped(name: str) -> None:
    engine = without_its_function()
    assert drop(engine, name) is None
    assert name not in engine.catalogue


def test_a_view_has_the_names_that_stand_behind_its_own_also_after_a_restart() -> None:
    feed = Feed()
    feed.engine.create("CREATE VIEW late (key, number) AS SELECT k, v FROM s WHERE v > 1 -- the late ones")
    feed.engine.create("CREATE VIEW late (key, number) AS SELECT k, v FROM s WHERE v > 1")
    feed.engine.create("CREATE VIEW counted (n, key) AS SELECT COUNT(*), key FROM late GROUP BY key")
    feed.engine.register("q", "SELECT key, n FROM counted WHERE n > 1")
    feed.engine.register("w", "SELECT number FROM late [ROWS 1]")
    feed.put((1, "a", 2.0), (2, "a", 3.0), (3, "b", 4.0), (4, "b", 0.0), (9, "c", 0.0))
    store = MemoryState()
    feed.engine.save(store)
    for engine in (feed.engine, small_restored(store)):
        assert engine.view().snapshot("q").table.to_pylist() == [{"key": "a", "n": 2}]
        assert engine.view().snapshot("w").table.to_pylist() == [{"number": 4.0}]
