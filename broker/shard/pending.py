"""Output that waits: changes which steps caused and which did not fit the steps' own transactions.

A first answer, the difference that history makes, or a burst may be a million changes of one query. They
are written piece by piece, between other steps, and each piece in one transaction with a journalled step that
says how far it got (:class:`engine.model.step.Written`). Whatever a query changes meanwhile waits behind its
own; other queries go on.

What a query that was set apart is told when it rejoins is of earlier steps, a portion each.

A portion is all that one step changed in the answer of one query. Which portions there are is in the journal
(:class:`topics.journal.Deferral`), what they hold is not: a replay makes them again, in the same order
(:mod:`topics.results_order`). So the store may not be saved past the step of the oldest one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from engine.model.changes import Changes
from engine.model.defects import internal
from engine.model.step import OutputWritten, Position, StepResult
from topics.destination import Destination
from topics.results_order import border, in_order
from tureen.errors import InternalError

ORDERED_BESIDE_ROWS = 20_000
"""Fewer changes are ordered in some 10 ms."""


@dataclass(slots=True)
class Portion:
    """rows: how many changes. written: how many of them are, the first ones. is_whole: whether they give a
    whole answer, or take it back.
    """

    position: Position
    query_id: str
    to: Destination
    changes: list[Changes]
    is_whole: bool
    rows: int = 0
    written: int = 0
    _is_ordered: bool = False
    _failure: InternalError | None = None
    _before: int = 0

    @property
    def left(self) -> int:
        """How many changes are still to be written."""
        return self.rows - self.written

    @property
    def is_ready(self) -> bool:
        """Whether :meth:`next` is quick."""
        return self._is_ordered or self.rows < ORDERED_BESIDE_ROWS

    def order(self) -> None:
        """Bring the changes into the order in which they are written. In any thread, while nobody else uses
        the portion. What fails is told by :meth:`next`.
        """
        try:
            self.changes = [in_order(changes, self.to) for changes in self.changes]
        except Exception as defect:  # noqa: BLE001  (it is this query's alone)
            self._failure = internal(defect)
        self._is_ordered = True

    def next(self, rows: int) -> Changes:
        """The changes after those that are written, about so many. Raises InternalError: they cannot be
        ordered.
        """
        if not self._is_ordered:
            self.order()
        if self._failure is not None:
            raise self._failure
        while self.written >= self._before + len(self.changes[0]):
            self._before += len(self.changes.pop(0))
        start = self.written - self._before
        changes = self.changes[0]
        return changes.piece(start, border(changes, self.to, start, rows))


def portions(
    result: StepResult, to: Callable[[str], Destination | None], is_later: Callable[[str], bool]
) -> list[Portion]:
    """What a step tells of the answers of those queries that are written later, and go somewhere: what it
    changed, or what earlier steps did.
    """
    found: dict[tuple[Position, str], Portion] = {}
    for changes in result.changes:
        for place, query_id in enumerate(changes.query_ids):
            count = int(changes.starts[place + 1] - changes.starts[place])
            if not count or not is_later(query_id):
                continue
            position = changes.position or result.position
            portion = found.get((position, query_id))
            if portion is None:
                destination = to(query_id)
                if destination is None:
                    continue
                is_whole = changes.occasion != "step"
                portion = Portion(position, query_id, destination, [], is_whole)
                found[position, query_id] = portion
            portion.changes.append(changes.of_query(place))
            portion.rows += count
    return list(found.values())


class Pending:
    """The portions of one shard, those of a query in the order of their steps. Used by the shard's thread
    alone; :meth:`untold` may be called by others.
    """

    def __init__(self) -> None:
        self.rows = 0
        """How many changes wait."""
        self.step_rows = 0
        """How many of them are no part of whole answers: of those more come with commands alone."""
        self._uncommitted_rows = 0
        self._uncommitted: Counter[str] = Counter()
        self._portions: dict[tuple[int, str], Portion] = {}
        self._of: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._portions)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._of

    def of(self, query_id: str) -> int:
        """How many changes of a query wait."""
        return self._of.get(query_id, 0)

    def untold(self, query_id: str | None = None) -> int:
        """How many changes of a query, or of all, readers of the topics do not see yet: those that wait, and
        those whose transaction is not committed.
        """
        if query_id is None:
            return self.rows + self._uncommitted_rows
        return self.of(query_id) + self._uncommitted.get(query_id, 0)

    def committed(self) -> None:
        """All that was written so far is committed."""
        self._uncommitted_rows = 0
        self._uncommitted.clear()

    def put(self, made: Iterable[Portion]) -> None:
        """Behind all others."""
        for portion in made:
            self._portions[portion.position.sequence, portion.query_id] = portion
            self._of[portion.query_id] += portion.left
            self._wait(portion, portion.left)

    def _wait(self, portion: Portion, rows: int) -> None:
        """So many more changes of a portion wait, or fewer."""
        self.rows += rows
        if not portion.is_whole:
            self.step_rows += rows

    def __iter__(self) -> Iterator[Portion]:
        return iter(list(self._portions.values()))

    def firsts(self) -> Iterator[Portion]:
        """The oldest portion of each query that has some."""
        seen: set[str] = set()
        for portion in list(self._portions.values()):
            if portion.query_id not in seen:
                seen.add(portion.query_id)
                yield portion

    def wrote(self, progress: OutputWritten) -> bool:
        """A piece is written, in a transaction that is not committed yet. Returns whether there is such a
        portion, with so many changes.
        """
        key = progress.sequence, progress.query_id
        portion = self._portions.get(key)
        if portion is None or progress.rows > portion.rows:
            return False
        rows = progress.rows - portion.written
        self._uncommitted_rows += rows  # others may look meanwhile, and miss none
        self._uncommitted[portion.query_id] += rows
        known = self._of[portion.query_id] - rows
        self._wait(portion, -rows)
        portion.written = progress.rows
        self._of[portion.query_id] = known
        if not portion.left:
            del self._portions[key]
            if not known:
                del self._of[portion.query_id]
        return True

    def drop(self, query_ids: Iterable[str]) -> None:
        """Nothing more of these is written."""
        for query_id in query_ids:
            if self._of.pop(query_id, 0):
                for key in [key for key in self._portions if key[1] == query_id]:
                    portion = self._portions.pop(key)
                    self._wait(portion, -portion.left)

    def _check(self) -> None:
        """Assert what is promised."""
        counts: Counter[str] = Counter()
        for (sequence, query_id), portion in self._portions.items():
            assert (sequence, query_id) == (portion.position.sequence, portion.query_id)
            assert 0 <= portion.written < portion.rows
            counts[query_id] += portion.left
        assert counts == self._of
        assert self.rows == counts.total()
        assert self.step_rows == sum(one.left for one in self._portions.values() if not one.is_whole)
        for query_id in counts:
            sequences = [sequence for sequence, name in self._portions if name == query_id]
            assert sequences == sorted(sequences)
