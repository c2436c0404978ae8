"""What must change no answer: how queries are maintained, who else stands, which policy routes, a restart.

Here the engine is held against itself, to the bit, sketches and all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.source import Stream
from engine.model.step import (
    Body,
    CreateSource,
    Heartbeat,
    Records,
    Register,
    Registration,
    Step,
    Unregister,
)
from tests.differential.agreement import (
    EngineSubject,
    answers,
    assert_same_answers,
    numbered,
    with_registrations,
)
from tests.memory_state import MemoryState
from tests.sql_selects import with_sketches
from tests.sql_strategies import COMPARISONS
from tests.strategies import (
    CLOCK_START,
    OPTIONS,
    PARTITIONS,
    batch_of,
    create_text,
    journeys,
    nullable,
    streams,
)

MODES = ("none", "lazy", "eager")
CROWD = 300
STEPS = journeys(with_sketches, legs=3, changes=False)
FEWER = settings(max_examples=max(10, settings.default.max_examples // 2))


def applied(steps: Iterable[Step]) -> EngineSubject:
    subject = EngineSubject()
    for step in steps:
        subject.apply(step)
    return subject


@FEWER
@given(steps=STEPS)
def test_maintenance(steps: list[Step]) -> None:
    def in_mode(mode: str) -> Callable[[Registration], list[Registration]]:
        return lambda registration: [replace(registration, options={"maintenance": mode})]

    subjects = [EngineSubject() for _ in MODES]
    each = [with_registrations(steps, in_mode(mode)) for mode in MODES]
    for together in zip(*each, strict=True):
        for subject, step in zip(subjects, together, strict=True):
            subject.apply(step)
        none, lazy, eager = (answers(subject, subject.standing()) for subject in subjects)
        assert none == lazy
        assert eager == lazy


@FEWER
@given(steps=STEPS, data=st.data())
def test_a_change_of_maintenance_and_a_pause(steps: list[Step], data: st.DataObject) -> None:
    """Whatever a query went through, at the end it answers as if it had always been lazy."""
    still, restless = EngineSubject(), EngineSubject()
    sequence = 0
    texts: dict[str, Registration] = {}

    def give(query_id: str, options: dict[str, str], clock_ms: int) -> None:
        nonlocal sequence
        sequence += 1
        change = Register((replace(texts[query_id], options=options),))
        restless.apply(numbered([Step(steps[0].position, clock_ms, change)], after=sequence - 1)[0])

    for step in steps:
        still.apply(step)
        sequence += 1
        restless.apply(numbered([step], after=sequence - 1)[0])
        if isinstance(step.body, Register):
            texts |= {r.query_id: r for r in step.body.registrations if r.query_id in still.standing()}
        for query_id in data.draw(st.lists(st.sampled_from(still.standing() or [""]), max_size=2)):
            if query_id:
                paused = data.draw(st.sampled_from([{}, {"paused": "true"}]))
                give(query_id, data.draw(st.sampled_from(OPTIONS)) | paused, step.clock_ms)
    for query_id in still.standing():
        give(query_id, data.draw(st.sampled_from(OPTIONS)), 0)
    assert answers(restless, still.standing()) == answers(still, still.standing())


@FEWER
@given(steps=STEPS)
def test_the_same_text_twice(steps: list[Step]) -> None:
    def twice(registration: Registration) -> list[Registration]:
        return [registration, replace(registration, query_id=f"{registration.query_id}-again")]

    once, doubled = applied(steps), applied(with_registrations(steps, twice))
    expected = answers(once, once.standing())
    assert answers(doubled, expected) == expected
    again = answers(doubled, [f"{query_id}-again" for query_id in expected])
    assert list(again.values()) == list(expected.values())


def crowd(stream: Stream, rng: random.Random) -> list[Registration]:
    """Selections, each with a predicate of its own, that widen no retention."""
    columns = [f'"{f.name}"' for f in stream.schema]
    texts = []
    for n in range(CROWD):
        column = f"LENGTH(CAST({rng.choice(columns)} AS STRING))"
        where = rng.choice([f"{column} {rng.choice(COMPARISONS)} {n % 40}", f"{column} IN ({n}, {n % 7})"])
        texts.append(f'SELECT 1 AS o FROM "{stream.name}" WHERE {where} OR {rng.choice(columns)} IS NULL')
    return [
        Registration(f"crowd-{n}", text, options=OPTIONS[n % len(OPTIONS)]) for n, text in enumerate(texts)
    ]


@settings(max_examples=max(8, settings.default.max_examples // 6))
@given(steps=journeys(with_sketches, legs=2, changes=False), seed=st.integers(0, 100))
def test_a_crowd_beside_it(steps: list[Step], seed: int) -> None:
    """Predicates of a crowd fill the grouped filters; some of the crowd leave again."""
    many = crowd(steps[0].body.stream, random.Random(seed))
    gone = Unregister(tuple(registration.query_id for registration in many[::3]))
    middle = len(steps) // 2
    first = steps[0].position
    beside = [*steps[:1], Step(first, 0, Register(tuple(many))), *steps[1:middle], Step(first, 0, gone)]
    alone, together = applied(steps), applied(numbered([*beside, *steps[middle:]]))
    expected = answers(alone, alone.standing())
    assert answers(together, expected) == expected


@FEWER
@given(steps=STEPS, policy=st.sampled_from(["random", "fixed", "optimal", "a-greedy", "split", "fused"]))
def test_the_policy_of_the_eddy(steps: list[Step], policy: str) -> None:
    first, other = EngineSubject(), EngineSubject()
    for step in steps:
        first.apply(step)
        other.apply(step)
        for module, held in other.engine.modules().items():
            for attribute in held:
                if policy in attribute.choices:
                    other.engine.set_attribute(module, attribute.name, policy)
    assert_same_answers(first, other)


@FEWER
@given(steps=STEPS, data=st.data())
def test_restarts(steps: list[Step], data: st.DataObject) -> None:
    """A store that is saved to at some steps, and an engine brought back from it at some."""
    store = MemoryState()
    straight, interrupted = EngineSubject(), EngineSubject()
    for step in steps:
        straight.apply(step)
        interrupted.apply(step)
        if data.draw(st.booleans()):
            interrupted = interrupted.restarted(store)
    assert_same_answers(straight, interrupted, [0, 20])


@FEWER
@given(data=st.data())
def test_the_order_of_arrival(data: st.DataObject) -> None:
    """Partitions are read in turn, or now this one and now that one, in batches of any size."""
    stream = replace(data.draw(streams(event_time=True)), lateness_ms=10_000, retain_ms=100_000)
    texts = [with_sketches(data.draw, stream) for _ in range(4)]
    register = Register(tuple(Registration(f"q{n}", text) for n, text in enumerate(texts)))
    own = [f for f in stream.schema if f.name != "ts"]
    pools = [data.draw(st.lists(nullable(f.type), min_size=2, max_size=5)) for f in own]
    rng = random.Random(data.draw(st.integers(0, 1_000)))
    rows = [
        (partition, offset, CLOCK_START + rng.randint(-60, 0), tuple(rng.choice(pool) for pool in pools))
        for partition in PARTITIONS
        for offset in range(12)
    ]
    found = []
    for order in (rows, interleaved(rows, rng)):
        subject = EngineSubject()
        sizes = iter(lambda: rng.choice([1, 3, 8]), 0)
        bodies: list[Body] = [CreateSource(stream, create_text(stream)), register]
        while order:
            size = next(sizes)
            bodies.append(Records(stream.name, batch_of(stream.schema, order[:size]), {}))
            order = order[size:]
        for body in bodies:
            subject.apply(subject.next_step(CLOCK_START, body))
        subject.apply(subject.next_step(CLOCK_START + 10_000, Heartbeat(stream.name)))
        found.append(answers(subject, subject.standing()))
    assert found[0] == found[1]


def interleaved(rows: list[Any], rng: random.Random) -> list[Any]:
    """Rows of several partitions in another order, each partition's in its own."""
    order = [row[0] for row in rows]
    rng.shuffle(order)
    each = {partition: iter([row for row in rows if row[0] == partition]) for partition in PARTITIONS}
    return [next(each[partition]) for partition in order]
