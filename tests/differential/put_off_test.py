"""Eager answers that are put off, tried beside and kept again at any moment are those of lazy queries."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.model.step import Registration, Step
from engine.queries.attempts import Attempt
from tests.capacities import small
from tests.differential.agreement import EngineSubject, answers, with_registrations
from tests.memory_state import MemoryState
from tests.sql_selects import with_sketches
from tests.strategies import journeys

STEPS = journeys(with_sketches, legs=3, changes=False)
FEWER = settings(max_examples=max(10, settings.default.max_examples // 2))


class Moody:
    """A timer by which anything takes next to nothing, or very long."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._ns = 0

    def __call__(self) -> int:
        self._ns += self._rng.choice([1, 100, 30_000_000, 10**9, 200 * 10**9])
        return self._ns


class Beside:
    """Somebody who tries what is put off, and has it done sooner or later."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._begun: list[Attempt[Any]] = []
        self.tried = 0

    def some(self, engine: Engine) -> None:
        while self._rng.random() < 0.7:
            attempt = engine.attempt()
            if attempt is None:
                break
            self._begun.append(attempt)
        while self._begun and self._rng.random() < 0.7:
            self._begun.pop(self._rng.randrange(len(self._begun))).run()
            self.tried += 1
        if self._rng.random() < 0.7:
            engine.take_attempts()


def in_mode(mode: str) -> Callable[[Registration], list[Registration]]:
    return lambda registration: [replace(registration, options={"maintenance": mode})]


@FEWER
@given(steps=STEPS, seed=st.integers(0, 2**32))
def test_answers_are_those_of_lazy_queries(steps: list[Step], seed: int) -> None:
    rng = random.Random(seed)
    beside = Beside(rng)
    eager = EngineSubject(Engine(state=small(), timer=Moody(rng)))
    lazy = EngineSubject()
    each = [with_registrations(steps, in_mode(mode)) for mode in ("lazy", "eager")]
    for plain, timed in zip(*each, strict=True):
        lazy.apply(plain)
        eager.apply(timed)
        beside.some(eager.engine)
        assert answers(eager, lazy.standing()) == answers(lazy, lazy.standing())
        eager.engine._check()


@FEWER
@given(steps=STEPS, seed=st.integers(0, 2**32))
def test_nothing_of_it_is_stored(steps: list[Step], seed: int) -> None:
    """What is saved, and what comes back, is the same whether answers are put off."""
    rng = random.Random(seed)
    beside, stores = Beside(rng), (MemoryState(), MemoryState())
    timed, plain = EngineSubject(Engine(state=small(), timer=Moody(rng))), EngineSubject()
    for step in with_registrations(steps, in_mode("eager")):
        for one in (timed, plain):
            one.apply(step)
        beside.some(timed.engine)
        timed.engine.view()
    for one, store in zip((timed, plain), stores, strict=True):
        one.engine.save(store)
    saved, expected = (list(store.queries()) for store in stores)
    assert saved == expected
    back = EngineSubject(Engine.restore(stores[0], state=small(), timer=Moody(rng)))
    for _ in range(5):
        beside.some(back.engine)
        assert answers(back, plain.standing()) == answers(plain, plain.standing())
        back.engine._check()
