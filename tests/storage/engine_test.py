"""An engine and its store: killed at any step and replayed from the store's position, it answers the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.step import Step
from engine.reference import Reference
from storage.store import Store
from tests.capacities import small_restored
from tests.differential.agreement import EngineSubject, assert_same_answers, told
from tests.differential.histories import Archive, renumbered
from tests.sql_strategies import statement
from tests.strategies import examples, scripts


@settings(max_examples=examples(40), deadline=None)
@given(steps=scripts(statement), data=st.data())
def test_a_killed_engine_answers_as_an_undisturbed_one(steps: list[Step], data: st.DataObject) -> None:
    undisturbed = EngineSubject()
    for step in steps:
        undisturbed.apply(step)

    saves = data.draw(st.sets(st.sampled_from(range(len(steps)))), label="saved after")
    kills = data.draw(st.sets(st.sampled_from(range(len(steps))), max_size=3), label="killed after")
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        engine = small_restored(store)
        for place, step in enumerate(steps):
            engine.enqueue(step)
            engine.run()
            if place in saves:
                engine.save(store)
            if place in kills:
                store.close()
                store = Store(Path(folder))
                engine = small_restored(store)
                for again in steps[engine.position.sequence : place + 1]:
                    engine.enqueue(again)
                    engine.run()
                engine._check()
        disturbed = EngineSubject(engine)
        assert_same_answers(disturbed, undisturbed, [0, 20])
        store.close()


@settings(max_examples=examples(20), deadline=None)
@given(steps=scripts(statement, steps_max=8), data=st.data())
def test_history_survives_restarts(steps: list[Step], data: st.DataObject) -> None:
    """History comes back in between, saved and read back after it or not."""
    reference = Reference()
    archive = Archive(reference, late=True)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        engine = EngineSubject(small_restored(store))
        for step in steps:
            step = renumbered(step, reference)
            archive.add(step, reference.apply(step))
            engine.apply(step)
            while history := archive.somewhere(data.draw) if data.draw(st.booleans()) else None:
                assert told(engine.apply(history)) == told(reference.apply(history))
            event = data.draw(st.sampled_from(["none", "save", "restart"]))
            if event != "none":
                engine.engine.save(store)
            if event == "restart":
                store.close()
                store = Store(Path(folder))
                engine = EngineSubject(small_restored(store))
                engine.engine._check()
        assert_same_answers(engine, reference, [0, 20])
        store.close()
