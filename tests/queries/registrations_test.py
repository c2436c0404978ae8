"""Registrations with parameters, and what a standing query holds of its text."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from engine.engine import Engine
from engine.language import templates
from engine.language.query import CreateStream, Query
from engine.language.statements import parse
from engine.language.templates import INSTANCES_MAX, Read, Template
from engine.model.expressions import Compare
from engine.model.persistence import QueryState
from engine.model.source import SourceName
from engine.model.step import (
    Body,
    CreateSource,
    DropSource,
    Position,
    Records,
    Register,
    Registration,
    Step,
    Unregister,
)
from engine.reference import Reference
from tests.capacities import small_engine, small_restored
from tests.engine.steps import CREATE, engine_with, rows, values
from tests.memory_state import MemoryState
from tureen.errors import HandleInUse, ParametersRefused, StoreFull, TypeMismatch

BETWEEN = "SELECT v FROM s WHERE v >= ? AND v < ?"


def apply(engine: Engine, *registrations: Registration) -> Mapping[str, Exception]:
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, Register(registrations)))
    return engine.run()[0].failed


def filled(count: int = 10) -> Engine:
    engine = engine_with()
    engine.ingest("s", rows(engine, 0, *((number, 10 + number) for number in range(count + 1))))
    return engine


def test_parameters_are_constants() -> None:
    engine = filled()
    assert not apply(
        engine,
        Registration("a", BETWEEN, parameters=(2, 4)),
        Registration("b", BETWEEN, parameters=(3, 9)),
        Registration("c", "SELECT v FROM s WHERE v = :x OR v = :x + 1", parameters={"x": 5}),
        Registration("d", "SELECT v FROM s WHERE v IN (?, ?)", parameters=(None, 7)),
    )
    assert [values(engine, name) for name in "abcd"] == [[2, 3], [3, 4, 5, 6, 7, 8], [5, 6], [7]]
    engine.ingest("s", rows(engine, 100, (3, 50), (0, 51)))
    assert values(engine, "a") == [2, 3, 3]
    info = engine.view().query("a")
    assert (info.sql, info.parameters) == (BETWEEN, (2, 4))


def test_refusals_stand_at_the_placeholder_and_leave_the_others() -> None:
    engine = filled()
    failed = apply(
        engine,
        Registration("few", BETWEEN, parameters=(2,)),
        Registration("good", BETWEEN, parameters=(2, 3)),
        Registration("type", BETWEEN, parameters=(2, "x")),
        Registration("none", BETWEEN),
    )
    assert {name: (type(error), error.column) for name, error in failed.items() if name != "none"} == {  # type: ignore[attr-defined]
        "few": (ParametersRefused, BETWEEN.rindex("?") + 1),
        "type": (TypeMismatch, BETWEEN.rindex("?") + 1),
    }
    assert "none" in failed
    assert values(engine, "good") == [2]


@pytest.mark.parametrize("other", [(2, 5), (2, 4.0), ("2", 4), (True, 4)])
def test_other_parameters_are_another_text(other: tuple[Any, ...]) -> None:
    engine = filled()
    apply(engine, Registration("a", BETWEEN, parameters=(2, 4)))
    assert not apply(engine, Registration("a", BETWEEN, parameters=(2, 4)))
    failed = apply(engine, Registration("a", BETWEEN, parameters=other))
    assert isinstance(failed["a"], HandleInUse | TypeMismatch)
    assert values(engine, "a") == [2, 3]


def test_options_change_and_parameters_stay() -> None:
    engine = filled()
    for maintenance in ("lazy", "none", "eager", "lazy"):
        options = {"maintenance": maintenance}
        assert not apply(engine, Registration("a", BETWEEN, options=options, parameters=(2, 4)))
        assert engine.view().query("a").maintenance == maintenance
        assert values(engine, "a") == [2, 3]


def test_a_restored_engine_has_the_parameters() -> None:
    engine = filled()
    apply(engine, *(Registration(f"q{n}", BETWEEN, parameters=(n, n + 2)) for n in range(8)))
    store = MemoryState()
    engine.save(store)
    again = small_restored(store)
    for n in range(8):
        assert values(again, f"q{n}") == [n, n + 1]
        assert again.view().query(f"q{n}").parameters == (n, n + 2)
    again._check()


def test_the_reference_agrees() -> None:
    engine, reference = engine_with(), Reference()
    statement = engine.prepare(CREATE)
    assert isinstance(statement, CreateStream)
    bodies: list[Body] = [
        CreateSource(statement.stream, CREATE),
        Register((Registration("a", BETWEEN, parameters=(2, 4)),)),
        Register((Registration("b", BETWEEN, parameters=(2,)),)),
        Register((Registration("a", BETWEEN, parameters=(2, 5)),)),
        Records(SourceName("s"), rows(engine, 0, *((n, 10 + n) for n in range(11))), {}),
    ]
    other = small_engine()
    for sequence, body in enumerate(bodies, 1):
        step = Step(Position(0, sequence), 0, body)
        other.enqueue(step)
        (mine,), theirs = other.run(), reference.apply(step)
        assert mine.failed.keys() == theirs.failed.keys()
    assert [[value] for value in values(other, "a")] == [list(row) for row in reference.answer("a").rows]


def test_standing_queries_share_templates_and_hold_no_tree() -> None:
    engine = filled()
    count = 3 * INSTANCES_MAX
    for first in range(0, count, 256):
        texts = (f"SELECT v FROM s WHERE v > {n} AND v <= {n + 1}" for n in range(first, first + 256))
        apply(engine, *(Registration(f"q{first + n}", sql) for n, sql in enumerate(texts)))
    meanings = {id(query.template): query.template for query in engine._queries.values()}
    assert sum(isinstance(template, Template) for template in meanings.values()) == 1
    assert len(meanings) < 10
    for name in range(0, count, 100):
        query = engine._queries[f"q{name}"].query
        assert query.sql == f"SELECT v FROM s WHERE v > {name} AND v <= {name + 1}"
        assert engine._queries[f"q{name}"].query is query  # kept for a while
        assert values(engine, f"q{name}") == ([name + 1] if name + 1 <= 9 else [])
    apply_unregister(engine, *(f"q{n}" for n in range(count)))
    gc.collect()
    engine._check()
    assert not list(engine.view().queries())


def apply_unregister(engine: Engine, *names: str) -> None:
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, Unregister(names)))
    engine.run()


def test_a_text_means_what_the_streams_of_now_say() -> None:
    engine = engine_with(
        "SELECT v FROM s WHERE v > 1", "SELECT v FROM s WHERE v > 2", "SELECT v FROM s WHERE v > 3"
    )
    apply_unregister(engine, "q0", "q1", "q2")
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, DropSource(SourceName("s"))))
    engine.run()
    engine.create(CREATE.replace("v INTEGER", "v BIGINT"))
    engine.register("new", "SELECT v FROM s WHERE v > 4")
    predicate = engine._queries["new"].query.scan.predicate
    assert isinstance(predicate, Compare)
    assert str(predicate.left.type) == str(predicate.right.type) == "BIGINT"


class _Counted(MemoryState):
    """Counts the queries that it is told to drop."""

    def __init__(self) -> None:
        super().__init__()
        self.drops = 0

    def drop_query(self, query_id: str) -> None:
        self.drops += 1
        super().drop_query(query_id)


class _LeavingOut(MemoryState):
    """Does not tell of one of its queries where it is asked to."""

    left_out: str | None = None

    def queries(self) -> Iterable[QueryState]:
        return [state for state in super().queries() if state.registration.query_id != self.left_out]


def test_a_query_that_was_never_saved_leaves_nothing_for_the_store() -> None:
    engine, store = filled(), _Counted()
    engine.register("kept", "SELECT v FROM s WHERE v < 2")
    engine.save(store)
    for number in range(50):
        engine.register(f"q{number}", "SELECT v FROM s WHERE v > 2")
        engine.unregister(f"q{number}")
    engine.save(store)
    assert store.drops == 0
    engine.unregister("kept")
    engine.register("kept", "SELECT v FROM s WHERE v > 3")
    engine.unregister("kept")
    engine.save(store)
    assert store.drops == 1
    assert not list(store.queries())


def test_an_engine_that_no_store_knows_notes_no_removals() -> None:
    engine = filled()
    for number in range(50):
        engine.register(f"q{number}", "SELECT v FROM s WHERE v > 2")
        engine.unregister(f"q{number}")
        engine.unregister(f"unknown{number}")
    assert not engine._parts.stored.dropped_queries


def test_a_saved_query_that_was_left_out_of_a_restored_engine_is_dropped_once_it_goes() -> None:
    engine, store = filled(), _LeavingOut()
    engine.register("kept", "SELECT v FROM s WHERE v < 2")
    engine.register("other", "SELECT v FROM s WHERE v > 2")
    engine.save(store)
    store.left_out = "other"
    again = small_restored(store)
    again.unregister("other")
    again.save(store)
    store.left_out = None
    assert [state.registration.query_id for state in store.queries()] == ["kept"]
    assert not again._parts.stored.dropped_queries


def test_a_saved_query_that_was_replaced_is_saved_as_its_successor() -> None:
    engine, store = filled(), MemoryState()
    engine.register("q", "SELECT v FROM s WHERE 10 / v > 0")
    engine.save(store)
    engine.unregister("q")
    engine.register("q", "SELECT v FROM s WHERE 20 / v > 0")
    store.full = True
    with pytest.raises(StoreFull):
        engine.save(store)
    store.full = False
    engine.save(store)
    again = small_restored(store)
    assert again.view().query("q").sql == "SELECT v FROM s WHERE 20 / v > 0"
    assert again.view().snapshot("q").errors == engine.view().snapshot("q").errors


def test_what_a_long_text_means_is_taken_over_from_who_bound_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT v FROM s WHERE v + 0 = 0" + "".join(f" OR v + {n} = {n * 3}" for n in range(1, 300))
    binder, engine, other = filled(), filled(), small_engine()
    other.create("CREATE STREAM s (v BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')")
    query = binder.prepare(sql)
    assert isinstance(query, Query)
    bound_elsewhere = [(Read.of(query), binder.catalogue, {})]
    bound = []
    monkeypatch.setattr(templates, "parse", lambda *given, **named: bound.append(1) or parse(*given, **named))
    engine.learn(bound_elsewhere)
    engine.register("q", sql)
    assert not bound
    binder.register("q", sql)
    assert values(engine, "q") == values(binder, "q") == [0, 2, 4, 6, 8]
    bound.clear()
    other.learn(bound_elsewhere)  # its stream has another column: the text is bound there
    other.register("q", sql)
    assert bound
