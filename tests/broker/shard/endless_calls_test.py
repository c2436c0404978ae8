"""Threads that nobody waits for end, where they are in a call of a user's function."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

from broker.shard.endless_calls import EndlessCalls
from engine.language.evaluation.user import call_user
from engine.language.evaluation.user_calls import is_calling
from engine.language.evaluation.vector import Vector
from engine.model.expressions import UserFunction
from engine.model.types import BIGINT
from tests.kafka import wait_until


def endless(value: int) -> int:
    while value == 7:
        try:
            sum(range(100))
        except Exception:  # noqa: BLE001  (as users write it)
            continue
    return value


def endless_column(values: np.ndarray) -> np.ndarray:
    while 7 in values:
        pass
    return values


def begun(function: Callable[..., object], *, vectorised: bool) -> tuple[threading.Thread, list[Vector]]:
    user = UserFunction("ENDLESS", (BIGINT,), BIGINT, function, vectorised=vectorised)
    found: list[Vector] = []
    column = Vector(BIGINT, np.arange(40))
    thread = threading.Thread(target=lambda: found.append(call_user(user, [column], 40)), daemon=True)
    thread.start()
    return thread, found


@pytest.mark.parametrize(("function", "vectorised"), [(endless, False), (endless_column, True)])
def test_a_loop_in_a_users_function_ends(function: Callable[..., object], vectorised: bool) -> None:
    thread, found = begun(function, vectorised=vectorised)
    calls = EndlessCalls()
    calls.add(thread)

    def is_over() -> bool:
        calls.break_off()
        return not len(calls)

    wait_until(is_over, 60.0)
    assert not thread.is_alive()
    (result,) = found  # the row for which it does not return is an error, the others are not
    assert result.error is not None
    assert np.flatnonzero(result.error).tolist() == [7]


def test_what_is_in_no_such_call_is_not_disturbed() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    assert thread.ident is not None
    assert not is_calling(sys._current_frames()[thread.ident])
    calls = EndlessCalls()
    calls.add(thread)
    for _ in range(100):
        calls.break_off()
    assert len(calls) == 1
    over.set()
    thread.join()
    calls.break_off()
    assert not len(calls)
