"""Saves in any order, against a plain dictionary of what should be stored."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from engine.model.source import SourceName
from engine.model.step import Position
from storage.store import Store
from tests.storage.cases import numbered, ordinals, plain, source_state, stored
from tests.strategies import examples

S = SourceName("s")


class Saves(RuleBasedStateMachine):
    """Rows, segments, drops, commits; a process that ends at any time and comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(Path(self.folder.name))
        self.sequence = 0
        self.pieces: list[tuple[int, int]] = []
        self.committed: list[tuple[int, int]] = []
        self.end = self.committed_end = 0

    @initialize(first=st.integers(-20, 5))
    def begin(self, first: int) -> None:
        self.end = first
        self.store.put_source(source_state())
        self.commit()

    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        self.store.append_rows(S, self.end, numbered(self.end, self.end + count))
        self.pieces.append((self.end, self.end + count))
        self.end += count

    @precondition(lambda self: self.pieces)
    @rule(data=st.data())
    def seal(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.pieces) - 1))
        stop = data.draw(st.integers(start + 1, len(self.pieces)))
        first, end = self.pieces[start][0], self.pieces[stop - 1][1]
        self.store.seal(S, first, numbered(first, end))
        self.pieces[start:stop] = [(first, end)]

    @rule(back=st.integers(-2, 15))
    def drop(self, back: int) -> None:
        below = self.end - back
        self.store.drop_rows(S, below)
        self.pieces = [(first, end) for first, end in self.pieces if end > below]

    @rule()
    def drop_source(self) -> None:
        self.store.drop_source(S)
        self.store.put_source(source_state())
        self.pieces = []

    @rule()
    def commit(self) -> None:
        self.sequence += 1
        self.store.commit(Position(1, self.sequence))
        self.committed, self.committed_end = list(self.pieces), self.end
        self.check()

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = Store(Path(self.folder.name))
        self.pieces, self.end = list(self.committed), self.committed_end
        self.check()

    def check(self) -> None:
        assert self.store.position() == Position(1, self.sequence)
        assert ordinals(self.store) == self.committed
        assert [row for _, rows in stored(self.store) for row in rows] == [
            row for first, end in self.committed for row in plain(numbered(first, end))
        ]

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


SavesTest = Saves.TestCase
SavesTest.settings = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)
