"""Which queries are said again since they wait."""

from __future__ import annotations

import pytest

from broker.base.internal import Outcome
from broker.control import awaiting as module
from broker.control.awaiting import AWAITED, PASSING, REFUSED_MAX, AwaitingQueries


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
