"""Rows with lives to give to an operator, and what a relation is at an instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.changes.transition import FOREVER, NEVER
from engine.model.types import Type
from tests.operators.relations import relation, tables

LATEST = 8
"""Instants of ways lie between 0 and this one."""


@dataclass(frozen=True)
class Given:
    """An input of rows that are simply there."""

    temporal: TemporalRelation
    interval: Interval


def given_rows(
    types: Sequence[Type],
    rows: Sequence[tuple[Any, ...]],
    temporal: Sequence[tuple[int, int]],
    interval: Interval,
) -> Given:
    """Rows of these types, each with its life; those that are never there on the way are left out."""
    begins, ends = (
        np.array([life[0] for life in temporal], np.int64),
        np.array([e for _, e in temporal], np.int64),
    )
    whole = TemporalRelation(relation(types, rows), begins, ends)
    there = (begins <= interval.until) & (ends > interval.since)
    return Given(whole.take(np.flatnonzero(there)), interval)


instants = st.integers(0, LATEST)


def _life(instant: int, length: int | None) -> tuple[int, int]:
    return instant, FOREVER if length is None else instant + length


ends_differ = st.builds(_life, instants, st.none() | st.integers(1, 5)) | st.tuples(
    st.just(NEVER), st.integers(0, LATEST + 2) | st.just(FOREVER)
)


@st.composite
def ways(draw: st.DrawFn) -> Interval:
    """Most of a few ms; of some there was nothing before."""
    if draw(st.booleans()):
        since = draw(st.integers(-1, 4))
        return Interval(since, draw(st.integers(since + 1, LATEST)))
    return Interval(NEVER, draw(st.integers(1, LATEST)))


@st.composite
def inputs(draw: st.DrawFn, types: Sequence[Type], most: int = 20) -> Given:
    """Rows that come and go in any order, or, as in a window of time, go in the order in which they came."""
    rows = draw(tables(types, most))
    interval = draw(ways())
    if draw(st.booleans()):
        length = draw(st.integers(1, 5))
        temporal = [(instant, instant + length) for instant in sorted(draw(_many(instants, len(rows))))]
    else:
        temporal = draw(_many(ends_differ, len(rows)))
    if interval.since == NEVER:
        temporal = [(max(begin, 0), max(end, 1)) for begin, end in temporal]
    return given_rows(types, rows, temporal, interval)


def _many(one: st.SearchStrategy[Any], count: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(one, min_size=count, max_size=count)
