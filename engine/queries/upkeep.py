"""What keeping answers current may take of a step, and what each is known to take.

All eager answers of an engine together have :data:`UPKEEP_NS` a step, the cheapest first. Whether one can be
afforded is known before it is brought up to date: by what its expressions surely take for the rows at hand,
or by what it took before, for so many rows more or less. A user's function takes any time, so that nothing is
sure of it before it was measured. What cannot be afforded is put off: it is worked out when somebody asks
(:mod:`engine.queries.eager_answers`).

Without a timer nothing is measured and everything is affordable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from math import inf
from typing import TypeVar

from engine.algebra.operators import Stage
from engine.eddy.eddy import Timer
from engine.language.query import Query
from engine.model.expressions import Function, In
from engine.model.types import Type
from engine.queries.allowance import SURE_FACTOR
from engine.stems.residual import NODE_WORK

UPKEEP_NS = 50_000_000
"""A step of full size takes about as long without it: with it it takes twice as long at most, and twenty
steps that wait stay within the second that is promised.
"""
STAGE_WORK = 100.0
"""What a stage, or an aggregate, takes for a row besides its expressions, in about nanoseconds."""
ROWS_MIN = 2
"""One more than there are."""
KNOWN_ROWS = 4
"""What so many times fewer rows took is worth more than what is assumed."""

Made = TypeVar("Made")


def work_of(query: Query) -> float:
    """The work of a query for a row of its scans, in about nanoseconds, without the conditions of scans, of
    which matches are kept; infinite where nobody knows, as it calls a user's function or makes streams.
    O(its size).
    """
    return inf if query.has_streams else sum(map(_stage_work, stages_of(query)))


def stages_of(query: Query) -> Iterator[Stage]:
    """The stages of a query and of its inner queries."""
    for stage in query.stages:
        yield stage
        if stage.right_input is not None:
            yield from stages_of(stage.right_input)


def _stage_work(stage: Stage) -> float:
    calls = 0 if stage.aggregate is None else len(stage.aggregate.calls)
    return STAGE_WORK * (1 + calls) + expression_work(stage)


def expression_work(part: object) -> float:
    """The work of all expressions in a part of a query for a row, in about nanoseconds; infinite where one
    calls a user's function. O(nodes).
    """
    work, pending = 0.0, [part]
    while pending:
        node = pending.pop()
        if isinstance(node, Function) and node.implementation is not None:
            return inf
        if isinstance(node, tuple):
            pending.extend(node)
        elif isinstance(node, In):  # its list is a set
            work += NODE_WORK
            pending.append(node.operand)
        elif is_dataclass(node) and not isinstance(node, Query | Type):
            work += NODE_WORK
            pending.extend(getattr(node, one.name) for one in fields(node))
    return work


class Cost:
    """What it takes to bring one answer up to date. Rows: that have to be looked at for it."""

    __slots__ = ("_known", "_sure_ns")

    def __init__(self, work: float) -> None:
        """work: of a row, in about nanoseconds; infinite: nobody knows."""
        self._sure_ns = SURE_FACTOR * work
        self._known: list[tuple[float, float]] = []
        """The last two times: rows, and the nanoseconds that they took."""

    def measured(self, rows: float, took_ns: float) -> None:
        """It took so long. What took next to no rows says nothing of others."""
        if rows >= ROWS_MIN:
            self._known = [*self._known[-1:], (rows, took_ns)]

    def expected_ns(self, rows: float) -> float:
        """Nanoseconds for so many rows. The better of two measures counts: a machine may be busy once."""
        sure_ns = self._sure_ns * rows
        if not self._known:
            return sure_ns
        scaled_ns = min(took_ns * rows / of for of, took_ns in self._known)
        is_known = any(of * KNOWN_ROWS >= rows for of, _ in self._known)
        return scaled_ns if is_known else min(sure_ns, scaled_ns)


class Upkeep:
    """The time of one engine for the answers that it keeps. left_ns: what is left of it in this step."""

    def __init__(self, timer: Timer | None) -> None:
        self.timer = timer
        self.left_ns: float = UPKEEP_NS

    @property
    def is_measured(self) -> bool:
        """Whether there is a timer: else everything is affordable."""
        return self.timer is not None

    @property
    def now_ns(self) -> float:
        """By the timer; 0 without one."""
        return 0.0 if self.timer is None else self.timer()

    def begin(self) -> None:
        """Another step."""
        self.left_ns = UPKEEP_NS

    def affords(self, cost: Cost, rows: float) -> bool:
        """Whether what is left is enough for so many rows."""
        return self.timer is None or cost.expected_ns(rows) <= self.left_ns

    def spend(self, cost: Cost, rows: float, make: Callable[[], Made]) -> Made:
        """What ``make`` returns; the time that it takes is measured, and is spent."""
        if self.timer is None:
            return make()
        began_ns = self.timer()
        try:
            return make()
        finally:
            took_ns = self.timer() - began_ns
            cost.measured(rows, took_ns)
            self.left_ns -= took_ns
