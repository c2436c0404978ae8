"""What engine and reference tell of followed queries, in one form, and what it means that it agrees.

Changes are told in order; those of one sign that stand together may come in any order among themselves, so
they are compared as *runs*: bags of rows of one instant and one sign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from engine.changes.transition import NEVER
from engine.model.changes import Changes
from engine.model.step import Registration, Step, StepResult
from engine.reference import Reference
from tests.differential.agreement import EngineSubject, exact_rows, plain_rows, with_registrations
from tests.memory_state import MemoryState

OPERATORS = ("", "", "", "ISTREAM", "DSTREAM", "RSTREAM")
HOW = ("", "", " WITH (snapshot = false)", " WITH (format = 'diff')")
EMITS = ("", *(f" EMIT CHANGES{how}" for how in HOW))


@dataclass(frozen=True)
class Line:
    """A change: what ``exact_rows`` makes of the row. copy: None where nobody asked for it."""

    weight: int
    at_ms: int
    row: tuple[Any, ...]
    copy: int | None


@dataclass(frozen=True)
class Part:
    """Changes of one query that were told together."""

    occasion: str
    now_ms: int | None
    lines: list[Line]


PendingOutput = dict[str, list[Part]]
"""What a step told, by query."""


def of_engine(result: StepResult) -> PendingOutput:
    """What a step of the engine told; the form of it is checked on the way."""
    found: PendingOutput = {}
    assert not result.broken, result.broken
    for changes in result.changes:
        for query_id, now_ms, lines in each(changes):
            found.setdefault(query_id, []).append(Part(changes.occasion, now_ms, lines))
    return found


def each(changes: Changes) -> Iterator[tuple[str, int | None, list[Line]]]:
    """The changes of each of the queries."""
    starts = changes.starts.tolist()
    assert starts[0] == 0
    assert starts[-1] == len(changes) == len(changes.weights) == len(changes.at_ms)
    assert len(starts) == len(changes.query_ids) + 1 == len(changes.now_ms) + 1
    rows = exact_rows(plain_rows(changes.table))
    copies = [None] * len(rows) if changes.copies is None else changes.copies.tolist()
    every = list(zip(changes.weights.tolist(), changes.at_ms.tolist(), rows, copies, strict=True))
    for place, query_id in enumerate(changes.query_ids):
        lines = [Line(*one) for one in every[starts[place] : starts[place + 1]]]
        assert [line.at_ms for line in lines] == sorted(line.at_ms for line in lines)
        now_ms = int(changes.now_ms[place])
        yield query_id, None if now_ms == NEVER else now_ms, lines


def of_reference(reference: Reference) -> PendingOutput:
    """What the last step of the reference told."""
    found: PendingOutput = {}
    for told in reference.told:
        rows = exact_rows(change.values for change in told.changes)
        lines = [
            Line(change.weight, change.at_ms, row, change.copy)
            for change, row in zip(told.changes, rows, strict=True)
        ]
        found.setdefault(told.query_id, []).append(Part(told.occasion, told.now_ms, lines))
    return found


def runs(lines: Iterable[Line], copies: bool = False) -> list[tuple[int, int, Counter[Hashable]]]:
    """Those of one instant and one sign that stand together."""
    return [
        (at_ms, weight, Counter((line.row, line.copy) if copies else line.row for line in some))
        for (at_ms, weight), some in groupby(lines, key=lambda line: (line.at_ms, line.weight))
    ]


def assert_same_telling(one: PendingOutput, other: PendingOutput) -> None:
    """``other`` counts copies always, ``one`` where they are asked for."""
    for query_id in sorted({*one, *other}):
        mine = [part for part in one.get(query_id, []) if part.lines]
        theirs = [part for part in other.get(query_id, []) if part.lines]
        shown = f"{query_id}: {mine} is not {theirs}"
        assert [part.occasion for part in mine] == [part.occasion for part in theirs], shown
        for a, b in zip(mine, theirs, strict=True):
            copies = all(line.copy is not None for line in a.lines)
            assert a.now_ms == b.now_ms, shown
            assert runs(a.lines, copies) == runs(b.lines, copies), shown


class Fold:
    """The sum of what was told of a query: never less than nothing of a row."""

    def __init__(self, rows: Iterable[Hashable] = ()) -> None:
        self.rows = Counter(rows)

    def add(self, lines: Iterable[Line]) -> None:
        """Add what was told. Check that, of rows which are counted, the copies with the highest numbers come
        and go.
        """
        for (_, weight), some in groupby(lines, key=lambda line: (line.at_ms, line.weight)):
            copies: dict[Hashable, list[int]] = {}
            for line in some:
                self.rows[line.row] += weight
                assert self.rows[line.row] >= 0, f"{line} was not there"
                if line.copy is not None:
                    copies.setdefault(line.row, []).append(line.copy)
            for row, numbers in copies.items():
                first = self.rows[row] + 1 if weight < 0 else self.rows[row] + 1 - len(numbers)
                assert sorted(numbers) == [*range(first, first + len(numbers))], (row, numbers)
        self.rows = +self.rows


class Followers:
    """An engine and what it told, with every query followed from the step after its registration on.

    followed: NOW of each as that began.
    """

    def __init__(self, subject: EngineSubject | None = None) -> None:
        self.subject = subject or EngineSubject()
        self.followed: dict[str, int | None] = {}

    def apply(self, step: Step) -> tuple[StepResult, PendingOutput]:
        result = self.subject.apply(step)
        standing = self.subject.standing()
        for query_id in standing:
            if query_id not in self.followed:
                self.follow(query_id)
        for query_id in self.followed.keys() - set(standing):
            del self.followed[query_id]
        return result, of_engine(result)

    def follow(self, query_id: str) -> None:
        """What asks for it itself is left to its text."""
        view = self.subject.engine.view()
        self.followed[query_id] = view.now_ms(query_id)
        if view.output(query_id).emit is None:
            self.subject.engine.follow(query_id)

    def restarted(self, store: MemoryState) -> Followers:
        """Saved, forgotten and restored; who was followed is asked for again."""
        return self.again(self.subject.restarted(store))

    def again(self, subject: EngineSubject) -> Followers:
        """Followers of another engine that has come as far."""
        other = Followers(subject)
        for query_id in self.followed:
            other.follow(query_id)
        return other


def follow_all(reference: Reference) -> None:
    """From the next step on."""
    for query_id in reference.standing():
        reference.follow(query_id)


def told_by_query(tellings: Iterable[PendingOutput]) -> dict[str, list[Line]]:
    """All that several steps told, whatever they are, in order."""
    found: dict[str, list[Line]] = {}
    for telling in tellings:
        for query_id, parts in telling.items():
            for part in parts:
                if part.lines:
                    found.setdefault(query_id, []).extend(part.lines)
    return found


def as_streams(steps: Sequence[Step], data: st.DataObject) -> list[Step]:
    """The steps with changed queries: some have an operator, some say EMIT CHANGES."""

    def changed(registration: Registration) -> list[Registration]:
        operator, emit = data.draw(st.sampled_from(OPERATORS)), data.draw(st.sampled_from(EMITS))
        sql = f"{operator}({registration.sql})" if operator else registration.sql
        return [replace(registration, sql=sql + emit)]

    known: dict[str, Registration] = {}

    def once(registration: Registration) -> list[Registration]:
        """A query that is registered again keeps its text."""
        if registration.query_id not in known:
            (known[registration.query_id],) = changed(registration)
        return [replace(registration, sql=known[registration.query_id].sql)]

    return with_registrations(steps, once)
