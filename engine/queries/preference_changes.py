"""Changes of followed queries with a preference: how their answers differ from what was told of them.

Rows that were found enter at NOW, whenever they came to their stream; rows leave with their windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.model.defects import Defects
from engine.queries.source_sets import SourceSets
from engine.queries.subscriber import Subscriber
from engine.queries.telling import PendingOutput
from engine.queries.told_answers import Answer, ToldAnswers
from engine.standing.query import StandingQuery
from engine.views.set_view import SetView
from engine.views.view import View


class PreferenceChanges:
    """One owner, as the engine."""

    def __init__(self, answers: ToldAnswers, subscribers: Mapping[str, Subscriber], defects: Defects) -> None:
        """subscribers: by query id, those that are followed, as they come and go."""
        self._answers = answers
        self._subscribers = subscribers
        self._defects = defects
        self._standing: dict[str, StandingQuery] = {}
        """Those with a preference that are followed and not paused."""
        self._told: dict[str, tuple[SetView | None, Answer]] = {}
        """The answers that were told last of these, by query id, each with the view that it was read from;
        None: no view is known for it.
        """

    def put(self, standing: StandingQuery) -> None:
        """A query comes, or another in its place: with a preference or not."""
        self.gone(standing.query_id)
        if standing.prefers and not standing.paused:
            self._standing[standing.query_id] = standing

    def gone(self, query_id: str) -> None:
        """A query is followed no more, or paused."""
        self._standing.pop(query_id, None)
        self._told.pop(query_id, None)

    def told_of(self, query_id: str) -> Answer | None:
        """The answer that was told last; None: it is not known."""
        known = self._told.get(query_id)
        return None if known is None else known[1]

    def go_on_from(self, query_id: str, answer: Answer) -> None:
        """This was told last of a query, and its answer may be another; of one without a preference that is
        passed over.
        """
        if query_id in self._standing:
            self._told[query_id] = None, answer

    def begin(self, view: Callable[[], View]) -> None:
        """A step is about to come: of all it must be known what was told. view: before the step, which is
        asked for where a query was followed since the last.
        """
        for query_id in self._standing:
            if query_id not in self._told:
                self._told[query_id] = None, self._answers.now(view(), query_id)

    def tell(self, sets: SourceSets, view: Callable[[], View], told: PendingOutput) -> None:
        """A step is over. view: after it. O(rows of both answers), of those that may differ."""
        for query_id, standing in list(self._standing.items()):
            before = self._told.get(query_id)
            over = sets.of(standing).view()
            if before is None:  # it came in this step, or has another text: what it begins with is told
                self._told[query_id] = over, self._answers.now(view(), query_id)
            elif before[0] is not over:
                answer = self._answers.now(view(), query_id)
                self._told[query_id] = over, answer
                with self._defects.of(query_id):
                    told.tell_differing(self._subscribers[query_id], query_id, before[1], answer)

    def forget(self) -> None:
        """A step told nothing: what was told is to be taken from a view."""
        self._told.clear()
