"""Followed queries: those that say EMIT CHANGES, and those that somebody follows for a while.

At the end of a step the changes of their answers are told (:mod:`engine.changes`). They are worked out from
rows and instants alone; what is remembered between steps saves work and changes nothing, so that whoever
begins to follow begins anywhere, and a replay tells the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from engine.changes.output import continues
from engine.dataflow.buffers.settings import StateSettings
from engine.language.query import Query
from engine.model.changes import Occasion
from engine.model.defects import Defects
from engine.model.last_answer import LastAnswer
from engine.model.limits import Limits
from engine.model.maintenance import UnitCosts
from engine.model.source import SourceName
from engine.model.usage import Stopwatch
from engine.queries.followed_graphs import FollowedGraphs
from engine.queries.join_retention import JoinRetention
from engine.queries.nursery import Nursery
from engine.queries.preference_changes import PreferenceChanges
from engine.queries.source_set import SourceSet
from engine.queries.source_sets import SourceSets
from engine.queries.subscriber import Subscriber
from engine.queries.telling import PendingOutput
from engine.queries.told_answers import Answer, ToldAnswers
from engine.queries.whole_answers import Whole, changes_of_whole
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.views.view import View
from tureen.errors import TureenError


@dataclass(frozen=True, slots=True)
class Before:
    """A followed query as it was before its text was altered. answer: what was told of it; None: nothing.
    last: kept while it was paused.
    """

    standing: StandingQuery
    subscriber: Subscriber
    answer: Answer | None
    last: LastAnswer | None


Answers = dict[str, Answer]
"""By query id."""


class Subscriptions:
    """One owner, as the engine."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        limits: Limits,
        units: UnitCosts | None = None,
        watch: Stopwatch | None = None,
        defects: Defects | None = None,
        settings: StateSettings | None = None,
    ) -> None:
        """sources: those there are, as they come and go. units: for the choice of strategies; None: nothing
        was measured. watch, defects: the engine's. settings: what state is made with.
        """
        self._defects = Defects() if defects is None else defects
        self._sources = sources
        self._subscribers: dict[str, Subscriber] = {}
        self.graphs = FollowedGraphs(
            sources, limits, units, watch or Stopwatch(), self._defects, settings or StateSettings()
        )
        self.retention = JoinRetention(self.graphs, sources, self._defects)
        self.answers = ToldAnswers(limits, self.graphs.nurseries)
        self.preferences = PreferenceChanges(self.answers, self._subscribers, self._defects)
        self.step = 0
        """The sequence number of the step at hand."""

    def begin(self, step: int) -> None:
        """The step of this sequence number is at hand."""
        self.step = step
        self.graphs.nurseries.begin()

    @property
    def nbytes(self) -> int:
        """Bytes of the state that changes come from, and of what was told last of paused queries."""
        return self.graphs.nbytes + sum(last.nbytes for last in self.answers.paused.values())

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._subscribers

    # --- who is followed --------------------------------------------------------------------------

    def came(self, standing: StandingQuery, query: Query) -> bool:
        """A query was registered, or came back. Returns whether its text says that it is followed."""
        if query.emit is None:
            return False
        with self._defects.of(standing.query_id):
            self._put(standing, Subscriber.of(query, self._sources))
        return True

    def follow(self, standing: StandingQuery) -> None:
        """Somebody begins to follow a query; each asks for itself."""
        known = self._subscribers.get(standing.query_id)
        if known is None:
            known = replace(Subscriber.of(standing.query, self._sources), since=self.step)
        self._put(standing, replace(known, asked=known.asked + 1))

    def unfollow(self, standing: StandingQuery) -> None:
        """One of those stops."""
        known = self._subscribers.get(standing.query_id)
        if known is None or not known.asked:
            return
        if known.asked == 1 and known.query.emit is None:
            self.gone(standing)
        else:
            self._put(standing, replace(known, asked=known.asked - 1))

    def changed(self, standing: StandingQuery) -> None:
        """A query is maintained in another way, or was paused or resumed."""
        known = self._subscribers.get(standing.query_id)
        if known is not None:
            if standing not in self.graphs:  # it runs again, from what is retained now
                known = replace(known, since=self.step)
            told = self.preferences.told_of(standing.query_id)
            self._put(standing, known)
            if told is not None:
                self.preferences.go_on_from(standing.query_id, told)

    def has_end(self, query_id: str) -> bool:
        """Whether the answer of a query is taken back when it goes. O(1)."""
        subscriber = self._subscribers.get(query_id)
        return subscriber is not None and subscriber.has_whole("end")

    def gone(self, standing: StandingQuery) -> None:
        """A query is followed no more."""
        self.graphs.nurseries.gone(standing.query_id)
        self.graphs.nurseries.apart.gone(standing.query_id)
        self.answers.paused.pop(standing.query_id, None)
        if self._subscribers.pop(standing.query_id, None) is not None:
            self.preferences.gone(standing.query_id)
            self.graphs.gone(standing)

    def before(self, query: StandingQuery, view: View) -> Before | None:
        """What an alteration of a query has to know of what it was; None where nobody follows it.

        view: before the alteration.
        """
        subscriber = self._subscribers.get(query.query_id)
        if subscriber is None:
            return None
        answers, query_id = self.answers, query.query_id
        told = answers.before_pause(query_id) if query.paused else answers.last(view, query_id, "snapshot")
        return Before(query, subscriber, told, answers.paused.get(query_id))

    def altered(
        self, before: Before, after: StandingQuery, query: Query, view: View, told: PendingOutput
    ) -> bool:
        """A followed query has another text, and both answers are told: their difference where it is followed
        on, else the answer that was as an end and the new one as a beginning. Returns whether it is.

        query: the new tree. view: with the new text. Raises the refusal of an answer that cannot be told
        whole, where the text says EMIT CHANGES; then nothing is told.
        """
        sources = (*before.subscriber.query.sources, *query.sources)
        streams = {name: self._sources[name].stream for name in sources}
        on = (
            not before.standing.paused
            and not after.paused
            and continues(before.subscriber.query, query, streams)
        )
        subscriber = replace(Subscriber.of(query, self._sources), since=self.step)
        was, now = before.answer, None
        if not after.paused and (on or subscriber.has_whole("snapshot")):
            now = self.answers.first(view, after.query_id)
        refusal = next((one for one in (now, was if on else None) if isinstance(one, TureenError)), None)
        if refusal is not None and query.emit is not None:
            raise refusal
        if on and refusal is None:
            assert isinstance(was, Whole)
            assert isinstance(now, Whole)
            self._put(after, replace(subscriber, asked=before.subscriber.asked))
            told.tell_difference(subscriber, was, now, came_alone=query.operator == "istream")
            return True
        if query.emit is not None:
            self._put(after, subscriber)
            if not after.paused:
                told.began.append(after)
        if isinstance(was, Whole) and was.table.num_rows and before.subscriber.has_whole("end"):
            told.changes.append(changes_of_whole(was, "end", copies=before.subscriber.copies))
        return False

    def back(self, before: Before, standing: StandingQuery) -> None:
        """An alteration was refused: the query is followed as it was, whatever failed of the other."""
        self._defects.gone(standing.query_id)
        self._put(standing, replace(before.subscriber, since=self.step))
        if before.answer is not None:
            self.preferences.go_on_from(standing.query_id, before.answer)  # it may begin anew with less
        if before.last is not None:
            self.answers.paused[standing.query_id] = before.last

    # --- who is paused ----------------------------------------------------------------------------

    def is_silent(self, standing: StandingQuery) -> bool:
        """Whether nothing is told of a query now, for it is paused or about to run again."""
        return standing.paused or standing.query_id in self.answers.paused

    def replace_silently(
        self, standing: StandingQuery, query: Query, put: Callable[[], StandingQuery]
    ) -> None:
        """A query of which nothing is told now is answered by ``query`` once it runs again. put: puts that in
        its place.
        """
        query_id = standing.query_id
        known, last = self._subscribers.get(query_id), self.answers.paused.get(query_id)
        after = put()
        if known is not None:
            self._put(after, replace(Subscriber.of(query, self._sources), asked=known.asked))
        if last is not None:
            self.answers.paused[query_id] = last

    def tell_resumed(self, queries: Iterable[StandingQuery], view: View, told: PendingOutput) -> None:
        """These run again: how their answers differ from what was told last; whole where nothing was."""
        for standing in queries:
            query_id = standing.query_id
            if query_id not in self._subscribers:
                self.answers.paused.pop(query_id, None)
            elif query_id not in self.answers.paused:
                self.tell_whole([standing], view, "snapshot", told)
            else:
                with self._defects.of(query_id):
                    was = self.answers.before_pause(query_id)
                    del self.answers.paused[query_id]
                    assert was is not None
                    subscriber, now = self._subscribers[query_id], self.answers.first(view, query_id)
                    told.tell_differing(subscriber, query_id, was, now)

    def _put(self, standing: StandingQuery, subscriber: Subscriber) -> None:
        """A query comes, or is maintained in another way."""
        self._subscribers[standing.query_id] = subscriber
        if standing.query_id in self.graphs.nurseries.apart:
            return
        for name, (slot, _) in standing.places():
            self._sources[name].matches.need([slot])
        self.preferences.put(standing)
        if not standing.prefers:
            self.graphs.put(standing, subscriber)

    def nurse_standing(self, standing: StandingQuery, over: SourceSet) -> Nursery | None:
        """As :meth:`engine.queries.nurseries.Nurseries.nurse_standing`; None also of a query of which nothing
        is told now.
        """
        subscriber = self._subscribers.get(standing.query_id)
        if subscriber is None or standing.prefers or self.is_silent(standing):
            return None
        try:
            graph = self.graphs.by_set[standing.set_key]
            told = subscriber.operator == "changes" and not graph.holds_for(standing.query_id)
            choice = self.graphs.choice(standing, subscriber)
            return self.graphs.nurseries.nurse_standing(standing, subscriber, choice, over, told=told)
        except Exception:  # noqa: BLE001  (the step will tell)
            return None

    def revise(self, standing: StandingQuery) -> bool:
        """As :meth:`engine.queries.followed_graphs.FollowedGraphs.revise`; False where it is not followed."""
        subscriber = self._subscribers.get(standing.query_id)
        return subscriber is not None and self.graphs.revise(standing, subscriber)

    # --- whole answers ----------------------------------------------------------------------------

    def answers_over(self, name: SourceName, sets: SourceSets, view: View) -> Answers:
        """As they stand, of the queries over a source of whose history coming back is told: not of those that
        tell of rows that come alone, for what is past is no news.
        """
        found: Answers = {}
        for key in [key for key in self.graphs.by_set if name in key]:
            for query_id, query in sets.seen(key).standing.items():
                subscriber = self._subscribers.get(query_id)
                if subscriber is None or query.prefers or query.paused:
                    continue
                if subscriber.operator != "istream":
                    found[query_id] = self.answers.now(view, query_id)
        return found

    def tell_history(self, name: SourceName, before: Answers, view: View, told: PendingOutput) -> None:
        """History of a source came back: how answers at NOW differ from those before."""
        self.graphs.nurseries.lose()
        self.retention.renumbered(name)
        for query_id, was in before.items():
            with self._defects.of(query_id):
                now = self.answers.now(view, query_id)
                told.tell_differing(self._subscribers[query_id], query_id, was, now)

    def tell_whole(
        self, queries: Iterable[StandingQuery], view: View, occasion: Occasion, told: PendingOutput
    ) -> None:
        """The answers of these as they stand, or as told last where they are paused, given (``snapshot``)
        or taken back (``end``).
        """
        for standing in queries:
            query_id = standing.query_id
            subscriber = self._subscribers.get(query_id)
            if (
                subscriber is None
                or not subscriber.has_whole(occasion)
                or query_id in self.graphs.nurseries.apart
            ):
                continue
            if standing.paused:
                answer = self.answers.before_pause(query_id)
            elif occasion == "snapshot":
                answer = self.answers.first(view, query_id)
            else:
                answer = self.answers.last(view, query_id, occasion)
            if not isinstance(answer, Whole):
                if answer is not None and occasion == "snapshot":
                    told.broken[query_id] = answer
                continue
            if answer.table.num_rows or occasion == "snapshot":
                with self._defects.of(query_id):
                    told.changes.append(changes_of_whole(answer, occasion, copies=subscriber.copies))
