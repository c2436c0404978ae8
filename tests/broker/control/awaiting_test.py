"""Which queries are said again since they wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest

from broker.base.internal import Outcome
from broker.control import awaiting as module
from broker.control.awaiting import AWAITED, PASSING, PREPARED, REFUSED_MAX, SOON_S, AwaitingQueries


def outcome(state: str, code: str | None) -> Outcome:
    return {"state": state, "error": None if code is None else {"code": code}, "position": None}


@pytest.mark.parametrize("code", AWAITED)
def test_who_waits_is_said_again_once_in_a_while(code: str) -> None:
    awaiting = AwaitingQueries()
    awaiting.note("a", outcome("PENDING", code), stands=True)
    awaiting.note("b", outcome("PENDING", code), stands=True)
    assert awaiting.due(["b"]) == {"a"}
    assert awaiting.due([]) == set()  # they were said just now


@pytest.mark.parametrize(
    ("state", "code", "stands"),
    [
        ("RUNNING", None, True),
        ("PENDING", "unknown_source", True),
        ("ERROR", "memory_budget", True),
        ("PENDING", "memory_budget", False),
    ],
)
def test_what_became_of_a_query_since_ends_its_waiting(state: str, code: str | None, stands: bool) -> None:
    awaiting = AwaitingQueries()
    awaiting.note("a", outcome("PENDING", "memory_budget"), stands=True)
    awaiting.note("a", outcome(state, code), stands=stands)
    assert awaiting.due([]) == set()


@pytest.mark.parametrize("code", PASSING)
def test_who_was_refused_for_what_passes_is_said_again_later(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaiting = AwaitingQueries()
    awaiting.note("a", outcome("ERROR", code), stands=True)
    assert awaiting.due([]) == set()
    monkeypatch.setattr(module, "REFUSED_S", 0.0)
    for number in range(REFUSED_MAX + 1):
        awaiting.note(f"q{number}", outcome("ERROR", code), stands=True)
    awaiting.note("a", outcome("ERROR", "syntax"), stands=True)
    awaiting.note("gone", outcome("ERROR", code), stands=False)
    first = awaiting.due([])
    assert len(first) == REFUSED_MAX
    assert f"q{REFUSED_MAX}" in awaiting.due([])  # who was not said is first then
    for number in range(REFUSED_MAX + 1):
        awaiting.note(f"q{number}", outcome("RUNNING", None), stands=True)
    assert awaiting.due([]) == set()


def paused_s(awaiting: AwaitingQueries, most_s: float, meanwhile: Outcome | None = None) -> float:
    """How long it pauses where at most so long; meanwhile: becomes of another query after it began."""

    async def pause() -> float:
        began_s = time.monotonic()
        if meanwhile is not None:
            asyncio.get_running_loop().call_later(0.01, partial(awaiting.note, "b", meanwhile, stands=True))
        await awaiting.pause(most_s)
        return time.monotonic() - began_s

    return asyncio.run(pause())


def test_the_worker_is_asked_soon_about_what_is_worked_out_and_then_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    async def waited(waiting: Coroutine[Any, Any, object], timeout: float) -> None:
        waiting.close()
        asked.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(asyncio, "wait_for", waited)
    awaiting = AwaitingQueries()
    awaiting.note("z", outcome("PENDING", "memory_budget"), stands=True)
    paused_s(awaiting, 0.5)
    for name in ("a", "b"):
        awaiting.note(name, outcome("PENDING", PREPARED), stands=True)
        for _ in range(20):
            awaiting.note(name, outcome("PENDING", PREPARED), stands=True)  # as it is said again
            paused_s(awaiting, 0.5)
    awaiting.note("a", outcome("RUNNING", None), stands=True)
    awaiting.note("b", outcome("PENDING", PREPARED), stands=False)
    paused_s(awaiting, 0.5)
    first, *rest, last = asked
    assert (first, last) == (0.5, 0.5)
    for part in (rest[:20], rest[20:]):
        assert part[0] == SOON_S
        assert part == sorted(part)
        assert part[-1] == 0.5
        assert sum(one < 0.5 for one in part) < 10


def test_a_pause_ends_when_a_query_begins_to_be_worked_out() -> None:
    awaiting = AwaitingQueries()
    assert paused_s(awaiting, 60.0, outcome("PENDING", PREPARED)) < 30.0
