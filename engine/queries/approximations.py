"""Tags of the standing queries: what of each answer is not exact (:mod:`engine.model.approximation`).

They come from *tellers*: one function for each thing that makes an answer less than exact, which says what it
does to one query. The text's own samples are told here; allocations, rows that were shed and constraints that
did not hold are told by the modules that know of them. A query over a view is bound to the streams below it,
so it has the tags of all that it reads.

Only queries with tags are remembered: exact ones cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.algebra.aggregate.stage import AggregateCall
from engine.language.query import Query, streams_of
from engine.language.render import render_stage
from engine.model.approximation import Approximation, Expected
from engine.model.changes import Changes
from engine.operators.aggregates.sketches import CENTROIDS, COUNT_ERROR, RANK_ERROR, REGISTERS_LOG2
from engine.overload.reduced_query import percent_asked, window_asked_ms
from engine.standing.query import StandingQuery
from engine.windows.clauses import RowWindow

Teller = Callable[[StandingQuery], Iterable[Approximation]]
"""What one part of the engine does to a query's answer; nothing where it is exact."""

Tags = tuple[Approximation, ...]


def declared_samples(standing: StandingQuery) -> Iterator[Approximation]:
    """A tag for each SAMPLE of the text and of the views that it reads; SAMPLE(100) is exact.

    Queries that cannot have any cost a look at their text: no tree is built for them.
    """
    if _WORD not in standing.registration.sql.upper() and not standing.template.uses:
        return
    query = standing.asked
    for scan in query.scans():
        sample = scan.sample
        if sample is not None and not sample.is_whole:
            expected = Expected(0.0, 1 - sample.share) if is_row_by_row(query) else Expected()
            percent = float(sample.percent)
            yield Approximation(
                "sample",
                scan.source,
                "declared",
                percent,
                "percent",
                100.0,
                expected=expected,
                unscaled=_of_the_sample(query),
            )

    for stage in streams_of(query):
        if stage.sample is not None and not stage.sample.is_whole:
            yield Approximation(
                "sample", render_stage(stage)[0], "declared", float(stage.sample.percent), "percent", 100.0
            )


_WORD = "SAMPLE"


def _of_the_sample(query: Query) -> tuple[str, ...]:
    """Aggregates that are what they are over the rows that the text samples: all but means."""
    return tuple(
        call.name
        for aggregate in query.aggregates
        for call in aggregate.calls
        if call.function != "AVG" or call.distinct
    )


def sketches(standing: StandingQuery) -> Iterator[Approximation]:
    """A tag for each aggregate that a sketch answers, with the bound of that sketch. As cheap as
    :func:`declared_samples` where there is none.
    """
    if _SKETCHED not in standing.registration.sql.upper() and not standing.template.uses:
        return
    for call in _calls(standing.asked):
        found = _SKETCHES.get(call.function)
        if found is not None:
            amount, unit, expected = found
            yield Approximation("synopsis", call.name, "declared", amount, unit, expected=expected)


_SKETCHED = "APPROX_"
_SKETCHES = {
    "APPROX_COUNT_DISTINCT": (2.0**REGISTERS_LOG2, "bytes", Expected(error=COUNT_ERROR)),
    "APPROX_QUANTILE": (float(CENTROIDS), "centroids", Expected(rank_error=RANK_ERROR)),
}
"""What each keeps of a group, and how far off it is."""


def _calls(query: Query) -> Iterator[AggregateCall]:
    """Yields the aggregate calls of a query and of the queries within it."""
    for stage in query.stages:
        if stage.aggregate is not None:
            yield from stage.aggregate.calls
        elif stage.right_input is not None:
            yield from _calls(stage.right_input)


def allotments(standing: StandingQuery) -> Iterator[Approximation]:
    """A tag for each window that is shorter than its text says, and each lower sampling rate."""
    given = standing.allotted
    if given is None:
        return
    allotment, position = given.allotment, given.since
    for scan, each in zip(given.asked.scans(), allotment.scans, strict=True):
        if each.window_ms is not None:
            yield Approximation(
                "window",
                scan.source,
                allotment.origin,
                each.window_ms,
                "ms",
                window_asked_ms(scan),
                position,
                allotment.expected,
            )
        if each.percent is not None:
            yield Approximation(
                "sample",
                scan.source,
                allotment.origin,
                float(each.percent),
                "percent",
                float(percent_asked(scan)),
                position,
                allotment.expected,
                unscaled=given.unscaled,
            )


def is_row_by_row(query: Query) -> bool:
    """Whether the answer has each row that is due exactly where it has the row of the stream."""
    return query.selects and not isinstance(query.scan.window, RowWindow)


def tags_of(standing: StandingQuery, tellers: Iterable[Teller]) -> Tags:
    """All tags of a query, each once, in the order of the tellers."""
    return tuple(dict.fromkeys(tag for teller in tellers for tag in teller(standing)))


class Approximations:
    """Tags by query id, as they stand after the step at hand. One owner, as the engine."""

    def __init__(self, tellers: Sequence[Teller]) -> None:
        self._tellers = tellers
        self._tags: dict[str, Tags] = {}
        self._is_shown = False

    def look(self, standing: StandingQuery) -> bool:
        """A query came, or something that its tags are made from is another; returns whether they are."""
        tags = tags_of(standing, self._tellers)
        if self._tags.get(standing.query_id, ()) == tags:
            return False
        self._own()
        if tags:
            self._tags[standing.query_id] = tags
        else:
            del self._tags[standing.query_id]
        return True

    def found(self, query_id: str, tags: Tags) -> None:
        """Something was found, or is left to be found, for a query with a preference: these say what its
        answer lacks by that. The other tags stay. O(its tags).
        """
        known = self._tags.get(query_id, ())
        others = tuple(tag for tag in known if tag.kind != "preference")
        if (*others, *tags) == known:
            return
        self._own()
        if others or tags:
            self._tags[query_id] = (*others, *tags)
        else:
            del self._tags[query_id]

    def gone(self, query_id: str) -> None:
        """A query goes."""
        if query_id in self._tags:
            self._own()
            del self._tags[query_id]

    def _own(self) -> None:
        if self._is_shown:
            self._tags = self._tags.copy()
            self._is_shown = False

    def shown(self) -> Mapping[str, Tags]:
        """As they stand, for good: exact queries are not in it. O(1)."""
        self._is_shown = True
        return self._tags

    def put_on(self, changes: Iterable[Changes]) -> tuple[Changes, ...]:
        """Adds to changes the tags of their queries. O(queries) where any query has tags, else O(1)."""
        tags = self._tags
        if not tags:
            return tuple(changes)
        return tuple(
            replace(one, approximation=mine)
            if (mine := {name: tags[name] for name in one.query_ids if name in tags})
            else one
            for one in changes
        )
