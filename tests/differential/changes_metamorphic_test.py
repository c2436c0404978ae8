"""What must change no change: where input is cut, how queries are maintained, who else is told, in which
order they came, a restart; and what changes since an instant add up to.

Here the engine is held against itself, to the bit; :mod:`tests.differential.changes_test` holds it to the
reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.changes.operator import operator_of
from engine.model.limits import Limits
from engine.model.step import Register, Registration, Step, Unregister
from tests.capacities import small_engine, small_restored
from tests.differential.agreement import EngineSubject, cut, exact_rows, numbered, with_registrations
from tests.differential.engine import any_statement
from tests.differential.telling import (
    Followers,
    PendingOutput,
    as_streams,
    assert_same_telling,
    each,
    of_engine,
    runs,
    told_by_query,
)
from tests.memory_state import MemoryState
from tests.sql_joins import joining
from tests.sql_selects import with_sketches
from tests.strategies import journeys
from tests.worlds import eventful_worlds
from tureen.errors import InstantOutOfRange

MODES = ("none", "lazy", "eager")
FEW = settings(max_examples=max(6, settings.default.max_examples // 4))
LONE = journeys(any_statement, legs=2)
JOURNEYS = journeys(with_sketches, legs=2, changes=False)
JOINS = eventful_worlds(joining, rounds=3)
ROOMY = eventful_worlds(joining, rounds=3, roomy=True)
"""What is retained of a source that several read depends on where input is cut, and so what retention takes
from their answers; here it takes nothing.
"""
CUTS = st.lists(st.integers(0, 8), min_size=1, max_size=3)


def followers() -> Followers:
    """With tables that let go of superseded versions at once."""
    return Followers(EngineSubject(small_engine(Limits(superseded_rows_max=0))))


def told(steps: Iterable[Step]) -> list[PendingOutput]:
    """What each of these tells."""
    one = followers()
    return [one.apply(step)[1] for step in steps]


def assert_same_tellings(some: Sequence[PendingOutput], others: Sequence[PendingOutput]) -> None:
    """Step by step."""
    for one, other in zip(some, others, strict=True):
        assert_same_telling(one, other)


def assert_same_changes(one: Iterable[PendingOutput], other: Iterable[PendingOutput]) -> None:
    """Over all steps, whatever these are."""
    mine, theirs = told_by_query(one), told_by_query(other)
    assert mine.keys() == theirs.keys()
    for query_id, lines in mine.items():
        assert runs(lines) == runs(theirs[query_id]), query_id


# --- where input is cut -------------------------------------------------------------------------------


def assert_cuts_change_nothing(steps: Sequence[Step], cuts: Sequence[int]) -> None:
    parts = numbered(part for step in steps for part in cut(step, cuts))
    assert_same_changes(told(steps), told(parts))


@FEW
@given(steps=LONE, cuts=CUTS, data=st.data())
def test_where_input_is_cut(steps: list[Step], cuts: list[int], data: st.DataObject) -> None:
    assert_cuts_change_nothing(as_streams(steps, data), cuts)


@FEW
@given(steps=JOURNEYS, cuts=CUTS, data=st.data())
def test_where_input_is_cut_for_every_kind_of_query(
    steps: list[Step], cuts: list[int], data: st.DataObject
) -> None:
    assert_cuts_change_nothing(as_streams(steps, data), cuts)


@FEW
@given(steps=ROOMY, cuts=CUTS, data=st.data())
def test_where_the_input_of_joins_is_cut(steps: list[Step], cuts: list[int], data: st.DataObject) -> None:
    assert_cuts_change_nothing(as_streams(steps, data), cuts)


@FEW
@given(steps=eventful_worlds(joining, streams_count=0, tables_count=2, roomy=True), cuts=CUTS)
def test_where_the_input_of_tables_is_cut(steps: list[Step], cuts: list[int]) -> None:
    assert_cuts_change_nothing(steps, cuts)


# --- how queries are maintained, and who else there is ------------------------------------------------


def in_mode(mode: str) -> Callable[[Registration], list[Registration]]:
    return lambda registration: [replace(registration, options={**registration.options, "maintenance": mode})]


@FEW
@given(steps=LONE | JOINS, data=st.data())
def test_maintenance(steps: list[Step], data: st.DataObject) -> None:
    steps = as_streams(steps, data)
    none, lazy, eager = (told(with_registrations(steps, in_mode(mode))) for mode in MODES)
    assert_same_changes(none, lazy)
    assert_same_changes(eager, lazy)


@FEW
@given(steps=LONE | JOINS, data=st.data())
def test_others_and_the_order_in_which_they_came(steps: list[Step], data: st.DataObject) -> None:
    """Each query three times, the last of a step first; all three go together, as do the rows they hold."""
    steps = as_streams(steps, data)
    suffixes = ("-a", "", "-b")
    crowded = []
    for step in steps:
        body = step.body
        if isinstance(body, Register):
            every = [(one, suffix) for suffix in suffixes for one in reversed(body.registrations)]
            body = Register(tuple(replace(one, query_id=one.query_id + suffix) for one, suffix in every))
        elif isinstance(body, Unregister):
            body = Unregister(tuple(query + suffix for query in body.query_ids for suffix in suffixes))
        crowded.append(replace(step, body=body))
    alone, among = told_by_query(told(steps)), told_by_query(told(crowded))
    for query_id, lines in alone.items():
        assert runs(among[query_id]) == runs(lines)


# --- restarts -----------------------------------------------------------------------------------------


@FEW
@given(steps=LONE | JOINS, data=st.data())
def test_restarts(steps: list[Step], data: st.DataObject) -> None:
    """Saved, forgotten and restored after any step."""
    steps = as_streams(steps, data)
    store = MemoryState()
    interrupted, found = followers(), []
    for step in steps:
        found.append(interrupted.apply(step)[1])
        if data.draw(st.booleans()):
            interrupted = interrupted.restarted(store)
    assert_same_tellings(found, told(steps))


@FEW
@given(steps=LONE | JOINS, data=st.data())
def test_a_replay_goes_on_as_if_nothing_had_happened(steps: list[Step], data: st.DataObject) -> None:
    """After a crash steps are taken again from the store's position, or from the beginning where there is
    no store, and nothing of them is told.
    """
    steps = as_streams(steps, data)
    crash, saved = (data.draw(st.integers(0, len(steps))) for _ in range(2))
    undisturbed, expected = followers(), []
    store = MemoryState()
    before = None
    for place, step in enumerate(steps):
        if place == crash:
            before = list(undisturbed.followed)
        expected.append(undisturbed.apply(step)[1])
        if place + 1 == saved <= crash:
            undisturbed.subject.engine.save(store)
    position = store.position()
    again = EngineSubject(small_engine(Limits(superseded_rows_max=0)))
    if position is not None:
        again = EngineSubject(small_restored(store, Limits(superseded_rows_max=0)))
    again.engine.tells = False
    for step in steps[0 if position is None else position.sequence : crash]:
        assert of_engine(again.apply(step)) == {}
    again.engine.tells = True
    restarted = Followers(again)
    for query_id in before or ():
        restarted.follow(query_id)
    assert_same_tellings([restarted.apply(step)[1] for step in steps[crash:]], expected[crash:])


# --- since an instant ---------------------------------------------------------------------------------


@FEW
@given(
    steps=LONE | eventful_worlds(joining, tables_count=0),
    backs=st.lists(st.integers(0, 90), min_size=2, max_size=3),
)
def test_changes_since_an_instant_lead_from_its_answer_to_this_one(
    steps: list[Step], backs: list[int]
) -> None:
    one = followers()
    for step in steps:
        one.apply(step)
    for query_id in one.subject.standing():
        for back in backs:
            assert_leads_on(one.subject, query_id, back)


def assert_leads_on(subject: EngineSubject, query_id: str, back: int) -> None:
    """From the answer so long before NOW, where it can still be given."""
    view = subject.engine.view()
    query = view.standing[query_id]
    now_ms = None if query.paused else view.snapshot(query_id).now_ms
    if now_ms is None or operator_of(query.query, subject.tables) != "changes":
        return
    since_ms = now_ms - back
    try:
        changes = view.changes(query_id, since_ms, 100_000)
    except InstantOutOfRange:
        return
    ((_, told_now_ms, lines),) = each(changes)
    assert told_now_ms == now_ms
    assert all(since_ms < line.at_ms <= now_ms for line in lines)
    rows = Counter(exact_rows(subject.answer(query_id, since_ms).rows))
    for line in lines:
        rows[line.row] += line.weight
        assert rows[line.row] >= 0
    assert +rows == Counter(exact_rows(subject.answer(query_id).rows))


@FEW
@given(steps=eventful_worlds(joining, tables_count=0, roomy=True, changes=False), data=st.data())
def test_changes_since_an_instant_are_those_that_were_told(steps: list[Step], data: st.DataObject) -> None:
    steps = as_streams(steps, data)
    one = followers()
    told = [one.apply(step)[1] for step in steps]
    lines = told_by_query(
        {q: [p for p in parts if p.occasion == "step"] for q, parts in telling.items()} for telling in told
    )
    view = one.subject.engine.view()
    for query_id, first_ms in one.followed.items():
        now_ms = view.now_ms(query_id)
        if first_ms is None or now_ms is None:
            continue
        since_ms = data.draw(st.integers(first_ms, now_ms))
        try:
            changes = view.changes(query_id, since_ms, 100_000)
        except InstantOutOfRange:
            continue
        ((_, _, again),) = each(changes)
        assert runs(again) == runs(line for line in lines.get(query_id, []) if line.at_ms > since_ms)
