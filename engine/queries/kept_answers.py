"""The whole answers that are kept of eager queries over one set of sources, and which of them steps touched.

A step touches an answer where a row that one of its scans accepts comes or goes, which is found in one pass
for all queries that scan alike (:mod:`engine.changes.affected_queries`). Nothing is done for the others,
however many there are. Where the sources stand elsewhere than it was told, all are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from engine.changes.affected_queries import AffectedQueries
from engine.changes.marks import Mark
from engine.changes.transition import Transition
from engine.language.query import Query
from engine.standing.query import StandingQuery
from engine.views.kept import KeptAnswer, goes_by_rows


class KeptAnswers:
    """One owner, as the engine."""

    def __init__(self, mark: Callable[[], Mark]) -> None:
        """mark: returns where the sources stand."""
        self._mark = mark
        self._as_of: Mark | None = None
        self._answers: dict[str, KeptAnswer] = {}
        self._shown: Mapping[str, KeptAnswer] | None = None
        """What readers have of these; None: they have something else."""
        self._queries: set[str] = set()
        self._restless: set[str] = set()
        """Those of them that each step touches."""
        self._affected = AffectedQueries()
        self._touched: set[str] = set()

    # --- queries ----------------------------------------------------------------------------------

    def put(self, standing: StandingQuery, query: Query) -> None:
        """The answer of a query is to be kept, once it is made."""
        query_id = standing.query_id
        self._queries.add(query_id)
        self._touched.add(query_id)
        self._affected.put(standing, query)
        if not goes_by_rows(query):
            self._restless.add(query_id)

    def forget(self, query_id: str) -> None:
        """The answer of a query is kept no more; passed over where it is not there."""
        if query_id in self._queries:
            self._affected.remove(query_id)
            for of in (self._queries, self._restless, self._touched):
                of.discard(query_id)
            if self._answers.pop(query_id, None) is not None:
                self._shown = None

    def __bool__(self) -> bool:
        return bool(self._queries)

    # --- what steps do ----------------------------------------------------------------------------

    def moved(self, before: Mark, transition: Transition | None) -> None:
        """The sources took a step. before: it; transition: None: no row came or went, though from when on
        answers are complete may be another instant.
        """
        if not self._queries:
            return
        self._look(before)
        self._touched |= self._restless
        if transition is not None:
            try:
                self._touched |= self._affected.affected(transition)
            except Exception:  # noqa: BLE001  (whose it is shows where they are made again)
                self._touched.update(self._queries)
        self._as_of = self._mark()

    def _look(self, now: Mark) -> None:
        if now != self._as_of:
            self._touched.update(self._queries)
            self._as_of = now

    def lose(self) -> None:
        """No answer is true any more."""
        self._answers.clear()
        self._shown = None
        self._touched.update(self._queries)

    # --- answers ----------------------------------------------------------------------------------

    def begin(self, among: Container[str]) -> list[str]:
        """The answers of those of these queries that were touched are about to be made as the sources stand.
        Returns the ids of these queries.
        """
        self._look(self._mark())
        touched = sorted(query_id for query_id in self._touched if query_id in among)
        self._touched.difference_update(touched)
        return touched

    def is_touched(self, query_id: str) -> bool:
        """Whether the answer of a query may be another than when its making began."""
        self._look(self._mark())
        return query_id in self._touched

    def keep(self, query_id: str, answer: KeptAnswer) -> None:
        """An answer was made; it is true unless it was touched since :meth:`begin`."""
        self._answers[query_id] = answer
        self._shown = None

    def get(self, query_id: str) -> KeptAnswer | None:
        """An answer as of when it was kept."""
        return self._answers.get(query_id)

    def shown(self) -> Mapping[str, KeptAnswer]:
        """All answers; the same object until one is another."""
        if self._shown is None:
            self._shown = dict(self._answers)
        return self._shown

    @property
    def nbytes(self) -> int:
        """Bytes of the answers. O(answers)."""
        return sum(one.nbytes for one in self._answers.values())

    def _check(self) -> None:
        assert self._answers.keys() | self._touched | self._restless <= self._queries
