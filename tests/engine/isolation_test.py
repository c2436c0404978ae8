"""An unexpected exception in a query's own work ends that query alone.

Every operator of graphs and every sink is made to fail in each of its methods, and every function that
evaluates answers. The others are told what they would have been told, through a restart too.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
import types
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import engine.operators
from engine.dataflow.graph import Graph
from engine.dataflow.node import Node
from engine.dataflow.sinks import Sink
from engine.model.step import Unregister
from tests.dataflow.graph import JOINS, QUERIES, SETS
from tests.dataflow.strategies import EARLY, KNOWN_EXITS
from tests.engine.faulty import VICTIM, Fault, faulty, faulty_function, functions_of
from tests.engine.isolation import NAMES, Driven, Told
from tureen.errors import InternalError

ERRORS = (AssertionError, IndexError, KeyError, ZeroDivisionError, MemoryError, RuntimeError)
OTHERS = {
    "groups": "SELECT k, COUNT(*) AS c, MAX(w) AS m FROM s [RANGE 4 MILLISECONDS] GROUP BY k",
    "rows": "SELECT k, v FROM s [RANGE 5 MILLISECONDS] WHERE v > 0",
    "joined": "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k",
    "table": "SELECT k, p FROM h ORDER BY p DESC LIMIT 2",
}
"""Queries that stand beside; one of the victim's text besides."""
TEXTS = (
    *QUERIES,
    *JOINS,
    *SETS,
    *KNOWN_EXITS,
    *EARLY,
    "SELECT MAX(v) AS m FROM s [RANGE 4 MILLISECONDS]",
    "SELECT o.v, f.v AS w FROM o JOIN f ON o.id = f.k",
    "SELECT o.v, f.v AS w FROM o [RANGE 6 MILLISECONDS] JOIN f [RANGE 6 MILLISECONDS] ON o.id = f.k",
    "SELECT o.v, f.v AS w FROM o [RANGE 6 MILLISECONDS] LEFT JOIN f [RANGE 6 MILLISECONDS] ON o.id = f.k",
    "RSTREAM(SELECT o.v, f.v AS w FROM o [RANGE 6 MILLISECONDS] JOIN f [NOW] ON o.id = f.k)",
    "SELECT s.k FROM s [RANGE 3 MILLISECONDS] JOIN (VALUES (0), (1)) AS c (x) ON s.k = c.x",
    "ISTREAM(SELECT k, COUNT(*) AS c FROM f GROUP BY k)",
    "SELECT k FROM s [ROWS 2 WHERE v > 0] WHERE w = 'a'",
    "SELECT RSTREAM(k, v) FROM s [ROWS 2] WHERE v > 0",
    "SELECT MEDIAN(v) AS m, BIT_OR(k) AS b, CORR(v, k) AS c FROM s [RANGE 6 MILLISECONDS]",
    """SELECT RANK() OVER w AS r, SUM(v) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS t,
    LAG(v) OVER w AS b FROM s [RANGE 6 MILLISECONDS] WINDOW w AS (PARTITION BY k ORDER BY v)""",
)
TREE = "SELECT COUNT(*) AS c, SUM(v) AS t, MAX(v) AS m FROM s [RANGE 40 MILLISECONDS] WHERE v > 0"
"""Its partial results are kept."""
TEXTS += (TREE,)
OPTIONS: tuple[Mapping[str, str], ...] = (
    {},
    {"strategy": "upa"},
    {"strategy": "upa", "structure": "negative"},
    {"strategy": "direct"},
    {"strategy": "nt"},
)
ROUNDS = 5


@dataclass(frozen=True)
class Course:
    """What became of a course."""

    told: Sequence[Told]
    answers: Mapping[str, Counter[Any]]
    errors: Mapping[str, InternalError] = field(default_factory=dict)

    def without(self, *names: str) -> tuple[list[Told], Mapping[str, Counter[Any]]]:
        """What others have of it."""
        told = [{one: was for one, was in each.items() if one not in names} for each in self.told]
        return told, {one: was for one, was in self.answers.items() if one not in names}


def course(victim: Victim, fault: Fault | None = None, since: int = 0) -> Course:
    """Rounds of rows, with a restart. since: the round that the fault begins in; 0: as the victim comes."""
    driven = Driven([name for name in NAMES if name in "suh" or f" {name} " in f"{victim.text} "])
    for name, text in OTHERS.items():
        driven.register(name, text)
    driven.rows()
    if fault is not None and not since:
        fault.is_armed = True
    driven.register(VICTIM, victim.text, **victim.options)
    driven.register("twin", victim.text, **victim.options)
    for at in range(1, ROUNDS):
        if fault is not None and since == at:
            fault.is_armed = True
        driven.rows()
        if at == ROUNDS - 2:
            driven.restart()
    if fault is not None:
        fault.is_armed = False
    driven.engine._check()
    return Course(driven.told, driven.answers(), driven.errors)


@dataclass(frozen=True)
class Victim:
    text: str
    options: Mapping[str, str] = field(default_factory=dict, hash=False)


@functools.cache
def undisturbed(victim: Victim) -> Course:
    found = course(victim)
    assert not found.errors
    return found


# --- operators of graphs, and sinks ---------------------------------------------------------------


def all_below(of: type) -> Iterator[type]:
    yield of
    for each in of.__subclasses__():
        yield from all_below(each)


CLASSES = [
    each
    for each in dict.fromkeys([*all_below(Node), *all_below(Sink)])
    if each.__module__.startswith("engine.")
]


@functools.cache
def victims() -> Mapping[type, Victim]:
    """A query that each class works for."""
    found: dict[type, Victim] = {}
    driven = Driven()
    for options in OPTIONS:
        for text in TEXTS:
            if found.keys() >= set(CLASSES):
                break
            victim = Victim(text, options)
            if driven.register(VICTIM, victim.text, **victim.options).failed:
                continue
            (graph,) = driven.engine._following.graphs.by_set.values()
            assert isinstance(graph, Graph)
            sinks = (each.sink for each in graph.sinks.by_end.values())
            for each in (*graph.nodes.by_key.values(), *sinks):
                for base in type(each).__mro__:
                    found.setdefault(base, victim)
            driven.step(Unregister((VICTIM,)))
    return found


def entries(of: type) -> list[str]:
    """Its methods. What a node takes is told to lists and metrics alone."""
    return [
        name
        for name, method in of.__dict__.items()
        if inspect.isfunction(method) and name not in ("_check", "attributes")
    ]


ENTRIES = [(each, name) for each in CLASSES for name in entries(each)]
FIRST = [
    (each, name)
    for each in CLASSES
    for name in sorted(entries(each), key=lambda name: (not hasattr(each, name), zlib.crc32(name.encode())))[
        :2
    ]
]
"""Two of each."""
HIT: set[type] = set()


def check_fault(of: type, method: str, since: int) -> Fault:
    """The victim ends alone, and the others are told what they would be without the fault."""
    victim = victims()[of]
    error = ERRORS[zlib.crc32(f"{of}{method}{since}".encode()) % len(ERRORS)]
    expected = undisturbed(victim)
    with faulty(of, method, Fault(error)) as fault:
        found = course(victim, fault, since)
    ended = set(found.errors)
    assert ended <= {VICTIM, *(["twin"] if holds_rows(victim) else [])}
    assert found.without(VICTIM, *ended) == expected.without(VICTIM, *ended)
    if not fault.hits:
        assert not ended
        assert found.told == expected.told
    elif ended:
        assert VICTIM not in found.answers
        assert found.errors[VICTIM].incident in str(found.errors[VICTIM])
        assert error.__name__ in found.errors[VICTIM].trace
    return fault


def holds_rows(victim: Victim) -> bool:
    """Whether its operators hold rows that streams let go of: what was lost of these cannot be made anew, so
    those who share them end together.
    """
    return " o " in victim.text or " f " in victim.text


def ids(of: object) -> str:
    return of.__name__ if isinstance(of, type) else str(of)


@pytest.mark.parametrize(("of", "method"), FIRST, ids=ids)
def test_a_defect_of_an_operator_ends_its_query_alone(of: type, method: str) -> None:
    check_fault(of, method, zlib.crc32(method.encode()) % 3)


@pytest.mark.slow
@pytest.mark.parametrize("since", range(3))
@pytest.mark.parametrize(("of", "method"), ENTRIES, ids=ids)
def test_a_defect_anywhere_in_an_operator_ends_its_query_alone(of: type, method: str, since: int) -> None:
    check_fault(of, method, since)


# --- operators that are evaluated when an answer is asked for, or kept ------------------------------


def modules() -> list[types.ModuleType]:
    below = pkgutil.walk_packages(engine.operators.__path__, "engine.operators.")
    return [importlib.import_module(each.name) for each in below]


FUNCTIONS = {
    f"{module.__name__}.{each.__qualname__}": each
    for module in modules()
    for each in functions_of(module)
    if not each.__name__.startswith("__")
}
EAGER, LAZY = {"maintenance": "eager"}, {"maintenance": "lazy"}


@functools.cache
def evaluated() -> Mapping[str, Victim]:
    """A query whose answer each function works for."""
    names = {each.__code__: name for name, each in FUNCTIONS.items()}
    found: dict[str, Victim] = {}
    driven = Driven()
    driven.rows()
    for text in TEXTS:
        for options in (EAGER, LAZY):
            called: set[types.CodeType] = set()
            sys.setprofile(lambda frame, event, _: called.add(frame.f_code) if event == "call" else None)  # noqa: B023
            try:
                driven.register(VICTIM, text, **options)
                if text == TREE:
                    driven.rows()
                driven.engine.view().snapshot(VICTIM)
            finally:
                sys.setprofile(None)
            driven.step(Unregister((VICTIM,)))
            for code in called & names.keys():
                found.setdefault(names[code], Victim(text, options))
    return found


def check_function(name: str, since: int) -> Fault:
    victim = evaluated().get(name)
    if victim is None:
        pytest.skip("it works for no answer of these queries")
    error = ERRORS[zlib.crc32(f"{name}{since}".encode()) % len(ERRORS)]
    expected = undisturbed(victim)
    with faulty_function(FUNCTIONS[name], Fault(error)) as fault:
        found = course(victim, fault, since)
    ended = set(found.errors)
    assert ended <= {VICTIM}, (ended, [one.trace for one in found.errors.values()])
    assert found.without(VICTIM) == expected.without(VICTIM)
    assert not ended or error.__name__ in found.errors[VICTIM].trace
    return fault


MODULES = sorted({each.__module__ for each in FUNCTIONS.values()})
ELSEWHERE = ("engine.operators.band", "engine.operators.earlier", "engine.operators.found_scan")
"""They work for joins of many rows, answers of earlier instants, and queries with a preference."""


@pytest.mark.parametrize("module", [each for each in MODULES if each not in ELSEWHERE])
def test_a_defect_in_the_evaluation_of_an_answer_ends_its_query_alone(module: str) -> None:
    name = next(name for name, each in FUNCTIONS.items() if each.__module__ == module and name in evaluated())
    check_function(name, zlib.crc32(name.encode()) % 3)


@pytest.mark.slow
@pytest.mark.parametrize("since", range(3))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_defect_anywhere_in_an_evaluation_ends_its_query_alone(name: str, since: int) -> None:
    check_function(name, since)
