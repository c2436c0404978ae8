"""What must change no answer of a join: how it is maintained, who else stands, where input is cut, the order
in which sources are read, the policy that orders probes, whether composites are kept, a restart.

The engine is held against itself, to the bit; :mod:`tests.differential.joins_test` holds it to the reference.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.step import CreateSource, Heartbeat, Records, Register, Registration, Step, Unregister
from tests.capacities import small_engine
from tests.differential.agreement import (
    EngineSubject,
    answers,
    assert_same_answers,
    cut,
    exact_rows,
    numbered,
    with_registrations,
)
from tests.memory_state import MemoryState
from tests.sql_joins import joining
from tests.strategies import OPTIONS
from tests.worlds import worlds

MODES = ("none", "lazy", "eager")
FEW = settings(max_examples=max(6, settings.default.max_examples // 6))
WORLDS = worlds(joining, streams_count=2, tables_count=1, changes=False, steps_max=8)


def subject() -> EngineSubject:
    """With tables that let go of superseded versions at once."""
    return EngineSubject(small_engine(Limits(superseded_rows_max=0)))


def applied(steps: Iterable[Step]) -> EngineSubject:
    one = subject()
    for step in steps:
        one.apply(step)
    return one


def of_joins(one: EngineSubject) -> list[str]:
    return [module for module in one.engine.modules() if module.startswith("join/")]


@FEW
@given(steps=WORLDS)
def test_maintenance(steps: list[Step]) -> None:
    def in_mode(mode: str) -> Callable[[Registration], list[Registration]]:
        return lambda registration: [replace(registration, options={"maintenance": mode})]

    subjects = [subject() for _ in MODES]
    each = [with_registrations(steps, in_mode(mode)) for mode in MODES]
    for together in zip(*each, strict=True):
        for one, step in zip(subjects, together, strict=True):
            one.apply(step)
        none, lazy, eager = (answers(one, one.standing()) for one in subjects)
        assert none == lazy
        assert eager == lazy


@FEW
@given(steps=WORLDS, data=st.data())
def test_policies_and_composites(steps: list[Step], data: st.DataObject) -> None:
    """Changed while it runs, after any step."""
    first, other = subject(), subject()
    for step in steps:
        first.apply(step)
        other.apply(step)
        for module in of_joins(other):
            for attribute in other.engine.modules()[module]:
                if attribute.choices:
                    choice = data.draw(st.sampled_from(attribute.choices))
                    other.engine.set_attribute(module, attribute.name, choice)
        other.engine._check()
        assert_same_answers(first, other)
    assert_same_answers(first, other, [0, 20])


@FEW
@given(steps=WORLDS, seed=st.integers(0, 1_000))
def test_others_that_join_the_same(steps: list[Step], seed: int) -> None:
    """Each query twice; a crowd with other windows and constants over the same sources; some leave again."""
    rng = random.Random(seed)
    sources = {
        step.body.stream.name: step.body.stream for step in steps if isinstance(step.body, CreateSource)
    }
    many = crowd(sources, rng)
    gone = Unregister(tuple(registration.query_id for registration in many[::2]))
    middle = rng.randrange(len(sources), len(steps) + 1)
    place = steps[0].position
    beside = [
        *steps[: len(sources)],
        Step(place, 0, Register(tuple(many))),
        *steps[len(sources) : middle],
        Step(place, 0, gone),
        *steps[middle:],
    ]

    def twice(registration: Registration) -> list[Registration]:
        return [registration, replace(registration, query_id=f"{registration.query_id}-again")]

    alone, together = applied(steps), applied(numbered(with_registrations(beside, twice)))
    together.engine._check()
    for query_id in alone.standing():
        expected = alone.answer(query_id)
        for other in (query_id, f"{query_id}-again"):
            answer = together.answer(other)
            assert answer.now_ms == expected.now_ms
            if answer.complete and expected.complete:  # the crowd may hold rows for sources that lag
                assert exact_rows(answer.rows) == exact_rows(expected.rows)
                assert answer.errors == expected.errors


def crowd(sources: Mapping[str, Stream], rng: random.Random) -> list[Registration]:
    """Joins of any two by their first columns."""
    found = []
    usual = [stream for stream in sources.values() if stream.retroactive]
    for n in range(30):
        a, b = rng.choices(usual, k=2)
        window = rng.choice(["", "[NOW]", "[UNBOUNDED]"])
        windows = ["" if stream.is_table else window for stream in (a, b)]
        kind = rng.choice(["JOIN", "LEFT JOIN", "SEMI JOIN", "FULL JOIN"])
        on = f'x."{a.name}0" = y."{b.name}0"'
        where = f'WHERE LENGTH(CAST(x."{a.name}0" AS STRING)) > {n % 4}' if n % 3 else ""
        joined = f'"{a.name}" {windows[0]} x {kind} "{b.name}" {windows[1]} y ON {on}'
        text = f'SELECT x."{a.name}0" FROM {joined} {where}'
        found.append(Registration(f"crowd-{n}", text, options=OPTIONS[n % len(OPTIONS)]))
    return found


@FEW
@given(steps=WORLDS, cuts=st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_where_input_is_cut(steps: list[Step], cuts: list[int]) -> None:
    whole, parted = subject(), subject()
    sequence = 0
    for step in steps:
        whole.apply(step)
        parts = numbered(cut(step, cuts), after=sequence)
        sequence += len(parts)
        for part in parts:
            parted.apply(part)
    assert_same_answers(whole, parted, [0, 20])


@FEW
@given(steps=WORLDS, data=st.data())
def test_the_order_in_which_sources_are_read(steps: list[Step], data: st.DataObject) -> None:
    """Sources that take turns otherwise, rows of each in their own order, queries first or last. All rows are
    retained, so that it is the same ones that are seen in the end.
    """
    creations = [step for step in steps if isinstance(step.body, CreateSource)]
    creations = [replace(step, body=CreateSource(roomy(step.body.stream), "")) for step in creations]
    registrations = [step for step in steps if isinstance(step.body, Register)]
    brought = [step for step in steps if isinstance(step.body, Records)]
    names = [step.body.stream.name for step in creations]
    clock = max(step.clock_ms for step in steps) + 200_000
    ends = [Step(steps[0].position, clock + n, Heartbeat(name)) for n, name in enumerate(names * 2)]
    found = []
    for turn in (brought, turned(brought, data.draw(st.permutations(names)))):
        same = [replace(step, clock_ms=clock - 200_000) for step in turn]
        for order in ([*registrations, *same], [*same, *registrations]):
            one = applied(numbered([*creations, *order, *ends]))
            found.append(answers(one, sorted(one.standing())))
    assert found[0] == found[1]
    if all(step.body.stream.event_time for step in creations):
        assert found[0] == found[2] == found[3]


def roomy(stream: Stream) -> Stream:
    """Nothing of it goes, nothing is late."""
    late = 100_000 if stream.event_time else 0
    return replace(stream, retain_ms=10**9, lateness_ms=late, future_max_ms=10**6, idle_advances=False)


def turned(steps: Sequence[Step], names: Sequence[str]) -> list[Step]:
    """One source after the other."""
    return [step for name in names for step in steps if step.body.source == name]


@FEW
@given(steps=WORLDS, data=st.data())
def test_restarts(steps: list[Step], data: st.DataObject) -> None:
    store = MemoryState()
    straight, interrupted = subject(), subject()
    for step in steps:
        straight.apply(step)
        interrupted.apply(step)
        if data.draw(st.booleans()):
            interrupted = interrupted.restarted(store)
    assert_same_answers(straight, interrupted, [0, 20])
