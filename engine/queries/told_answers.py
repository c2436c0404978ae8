"""The whole answers of followed queries, which are told, taken back or compared; those of paused queries as
they were told last.
"""

from __future__ import annotations

import pyarrow as pa

from engine.model.batch import Int32Array
from engine.model.changes import Occasion
from engine.model.defects import refusal_of
from engine.model.last_answer import LastAnswer
from engine.model.limits import Limits
from engine.queries.nurseries import Nurseries
from engine.queries.whole_answers import Whole, limited, rows_max
from engine.views.view import View
from tureen.errors import LimitExceeded, TureenError

Answer = Whole | TureenError
"""A whole answer; or why it cannot be told."""


class ToldAnswers:
    """One owner, as the engine."""

    def __init__(self, limits: Limits, nurseries: Nurseries) -> None:
        self._limits = limits
        self._nurseries = nurseries
        self.paused: dict[str, LastAnswer] = {}
        """Those that were told last of followed queries that are paused, by query id."""

    def now(self, view: View, query_id: str, occasion: Occasion = "snapshot") -> Answer:
        """As it stands."""
        try:
            table = limited(
                lambda limit: view.snapshot(query_id, rows_max=limit).table, self._limits, occasion
            )
        except Exception as error:  # noqa: BLE001  (whoever asked tells it)
            return refusal_of(error)
        return Whole(query_id, table, view.now_ms(query_id))

    def first(self, view: View, query_id: str) -> Answer:
        """The answer of a query that has just come, or runs again, or has another text: as it was made
        beside, if it was.
        """
        return self._made(self._nurseries.first_answer(query_id), view, query_id, "snapshot")

    def last(self, view: View, query_id: str, occasion: Occasion) -> Answer:
        """The answer of a query that stands, before the step alters, pauses or removes it: as it was made
        beside, if it was.
        """
        return self._made(self._nurseries.last_answer(query_id), view, query_id, occasion)

    def _made(
        self,
        found: tuple[pa.Table, Int32Array | None] | TureenError | None,
        view: View,
        query_id: str,
        occasion: Occasion,
    ) -> Answer:
        """An answer of which that was found beside; None: it is worked out here."""
        if found is None:
            return self.now(view, query_id, occasion)
        if isinstance(found, TureenError):
            return found
        (table, copies), most = found, rows_max(self._limits, occasion)
        if table.num_rows > most:
            return LimitExceeded("changes_max", most, table.num_rows)
        return Whole(query_id, table, view.now_ms(query_id), copies)

    def pause(self, query_id: str, view: View) -> None:
        """A query is about to be paused: nothing is told of it until it runs again, and then how its answer
        differs from that of now. view: as it stands.
        """
        answer = self.last(view, query_id, "end")
        if isinstance(answer, Whole):
            self.paused[query_id] = LastAnswer.of(answer.table, answer.now_ms)
        else:
            self.paused[query_id] = LastAnswer(view.now_ms(query_id), None)

    def before_pause(self, query_id: str) -> Answer | None:
        """Returns the answer that was told last of a paused query; None: nothing was told."""
        last = self.paused.get(query_id)
        if last is None:
            return None
        table = last.table()
        if table is None:
            return LimitExceeded("changes_max", self._limits.changes_max)
        return Whole(query_id, table, last.now_ms)
