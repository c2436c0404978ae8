"""A step, a view and a save cost what they touch, however many streams there are."""

from __future__ import annotations

import pytest

from engine.model.source import SourceName
from engine.sources.source import Source
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState
from tests.strategies import batch_of


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """What was asked of which source; emptied by the test."""
    found: set[tuple[str, str]] = set()
    for name in ("retain", "view", "state"):
        inner = getattr(Source, name)

        def noted(self: Source, *given: object, name: str = name, inner: object = inner) -> object:
            found.add((name, self.stream.name))
            return inner(self, *given)  # type: ignore[operator]

        monkeypatch.setattr(Source, name, noted)
    return found


def test_only_what_a_step_touches_is_looked_at(looked: set[tuple[str, str]]) -> None:
    engine, store = small_engine(), MemoryState()
    for name in "stuv":
        engine.create(f"CREATE STREAM {name} (k INTEGER) RETAIN 20 MILLISECONDS")
        engine.register(f"of {name}", f"SELECT k FROM {name} EMIT CHANGES")
    engine.register("joined", "SELECT s.k FROM s JOIN t ON s.k = t.k")
    engine.view()
    engine.save(store)
    offset = 0

    def touched_by(name: str) -> set[str]:
        nonlocal offset
        looked.clear()
        offset += 1
        schema = engine.view().stream(SourceName(name)).schema
        engine.ingest(name, batch_of(schema, [(0, offset, 100 * offset, (1,))]), 1_000 * offset)
        engine.view()
        engine.save(store)
        return {of for _, of in looked}

    assert touched_by("u") == {"u"}
    assert touched_by("s") == {"s", "t"}
    engine._check()
    engine.unregister("joined")
    engine.view()
    engine.save(store)
    assert touched_by("s") == {"s"}
    restored = small_restored(store)
    assert restored.view().sources() == engine.view().sources()
