"""Data and helpers that ``changes_test.py`` shares with other tests."""

from __future__ import annotations

from collections import Counter

from engine.changes.operator import operator_of
from engine.model.limits import Limits
from engine.model.step import Step
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, exact_rows, told
from tests.differential.telling import (
    Fold,
    Followers,
    PendingOutput,
    assert_same_telling,
    follow_all,
    of_reference,
)


class Sums:
    """What a client has that adds up all that an engine tells."""

    def __init__(self) -> None:
        self.folds: dict[str, Fold] = {}

    def add(self, engine: EngineSubject, telling: PendingOutput) -> None:
        """After a step. A query is added up from its first answer on, whoever told it, while rows that came
        and rows that went are told. Of a paused query it stays what it was, and nothing is told.
        """
        stood = engine.engine.view().standing
        for query_id, parts in telling.items():
            assert query_id not in stood or not stood[query_id].paused, query_id
            for part in parts:
                if part.occasion == "snapshot":
                    self.folds[query_id] = Fold()
                if query_id in self.folds:
                    self.folds[query_id].add(part.lines)
                if part.occasion == "end":
                    assert not self.folds.pop(query_id, Fold()).rows
        view = engine.engine.view()
        for query_id in self.folds.keys() - view.standing.keys():
            del self.folds[query_id]
        for query_id, query in view.standing.items():
            if operator_of(query.query, engine.tables) != "changes":
                self.folds.pop(query_id, None)
                continue
            if query.paused:
                continue
            rows = exact_rows(engine.answer(query_id).rows)
            if query_id not in self.folds:
                self.folds[query_id] = Fold(rows)
            assert self.folds[query_id].rows == Counter(rows), query_id


def agree(steps: list[Step], limits: Limits | None = None) -> None:
    """Engine and reference tell the same of every step, and it adds up to the snapshots."""
    engine, reference, sums = Followers(EngineSubject(small_engine(limits))), Reference(limits), Sums()
    for step in steps:
        result, mine = engine.apply(step)
        assert told(result) == told(reference.apply(step))
        theirs = of_reference(reference)
        follow_all(reference)
        assert_same_telling(mine, theirs)
        sums.add(engine.subject, mine)
