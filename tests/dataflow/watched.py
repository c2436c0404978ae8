"""An operator alone, over a given node, while columns come and go between transitions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import strategies as st

from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.dataflow.arrangements import ordered_runs, sort_words, string_labels
from engine.dataflow.node import Node
from engine.dataflow.turn import Turn
from tests.changes.given import Given
from tests.dataflow.given_node import GivenNode, transitions
from tests.dataflow.group import folded, of_column

Expected = Callable[[TemporalRelation, int], list[Any]]
"""The rows that an operator gives of some at an instant, sorted."""


def watched(
    operator: Any,
    node: GivenNode,
    below: Given,
    data: Any,
    expected: Expected,
    *,
    columns: int,
    cuts_max: int,
    begun: Callable[[Any, Interval, set[int]], None] = lambda context, interval, wanted: None,
) -> Iterator[tuple[Any, Interval, set[int]]]:
    """What is told of each column leads to what is expected at every instant. Yields, after each turn, its
    context, its interval and the columns that are wanted. begun: is given these before its delta.
    """
    assert isinstance(operator, Node)
    first = max(0, below.interval.since)
    cuts = sorted(data.draw(st.sets(st.integers(first, below.interval.until), max_size=cuts_max)))
    wanted: set[int] = set()
    for context, interval in transitions(below.interval, cuts):
        for one in range(columns):
            if data.draw(st.booleans()):
                (operator.leave if one in wanted else operator.want)(one)
                wanted ^= {one}
        if data.draw(st.booleans()):
            operator.forget()
        operator.begin(context)
        begun(context, interval, wanted)
        delta = operator.delta(Turn(context, interval))
        delta.temporal._check()
        operator._check()
        assert set(delta.owners.tolist()) <= wanted
        for one in wanted:
            rows, told = node.of(one), of_column(delta, one)
            known = expected(rows, interval.since)
            for instant in range(max(0, interval.since + 1), interval.until + 1):
                known = folded(known, told, instant)
                assert known == expected(rows, instant), (one, instant)
        yield context, interval, wanted


@contextlib.contextmanager
def built_anew_at_any_time() -> Iterator[None]:
    """Runs, words and labels of an order have room for next to nothing."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ordered_runs, "SPARE_MIN", 1)
        patched.setattr(ordered_runs, "DEAD_MIN", 1)
        patched.setattr(sort_words, "LABELS_MIN", 1)
        patched.setattr(string_labels, "SPREAD", 1 << 8)
        patched.setattr(string_labels, "MOST", 1 << 9)
        patched.setattr("engine.dataflow.kept_columns.DEAD_MIN", -2)
        yield
