"""A query that stands is given another share of what its text asks for: the query that then stands for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.changes.output import continues
from engine.language.query import Query
from engine.language.templates import FixedQuery, Read
from engine.model.allotment import Allotment
from engine.model.approximation import Expected
from engine.model.source import SourceName, Stream
from engine.model.step import Position
from engine.model.tolerance import Tolerance
from engine.overload.precision.of_query import reads_of
from engine.overload.precision.shape import Reads
from engine.overload.reduced_query import reduced
from engine.overload.room import require_room
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.catalogue import Catalogue
from engine.queries.plan_inputs import SourcesAt
from engine.queries.registrations import bound
from engine.standing.query import Allotted, StandingQuery
from tureen.errors import AllotmentRefused


@dataclass(frozen=True, slots=True)
class GivenLess:
    """A standing query as it would be with an allotment. sources: as they stand; None: it is given all."""

    allotment: Allotment
    standing: StandingQuery
    query: Query
    sources: SourcesAt | None

    def expecting(self) -> Allotment:
        """The allotment with the precision that its answer may then expect. Any thread; rows of each scan are
        looked at, up to some thousands. Raises AllotmentRefused.
        """
        if self.sources is None:
            return self.allotment
        expected = self.sources.expected(self.standing.asked, self.query)
        require_tolerated(self.standing.tolerance, expected, reads_of(self.standing.asked))
        return replace(self.allotment, expected=expected)


def allotted(
    standing: StandingQuery, allotment: Allotment, position: Position, catalogue: Catalogue
) -> AdmittedQuery:
    """The query as it stands with an allotment from a step on; an empty one gives it all that it asks for.

    Raises AllotmentRefused. O(size of the query).
    """
    registration = standing.registration
    if not allotment:
        return AdmittedQuery.of(registration, bound(registration, catalogue), standing.born)
    asked, streams = standing.asked, _streams(standing.asked, catalogue)
    require_room(asked, streams, standing.tolerance, allotment)
    coming = given_less(AdmittedQuery.again(standing), asked, allotment, position, catalogue)
    if not continues(asked, coming.query, streams):
        raise AllotmentRefused(
            "with less the answer would have other changes, or other keys", hint="it stays as its text says"
        )
    return coming


def require_promised(standing: StandingQuery, allotment: Allotment, catalogue: Catalogue) -> None:
    """Raises AllotmentRefused where nothing tells whether a query's bounds hold. O(size of the query)."""
    asked = standing.asked
    require_room(asked, _streams(asked, catalogue), standing.tolerance, allotment, promised=True)


def require_tolerated(tolerance: Tolerance, expected: Expected, reads: Reads = "answer") -> None:
    """Raises AllotmentRefused where a query does not tolerate what is expected of what is read of it."""
    missing = expected.fn
    if reads == "changes" and expected.fn_changes is not None:
        missing = expected.fn_changes
    bounds = (
        ("wrong rows", expected.fp, tolerance.max_fp),
        ("missing rows", missing, tolerance.max_fn),
        ("error", expected.error, tolerance.max_error),
    )
    for what, share, most in bounds:
        if share is not None and most is not None and share > most:
            raise AllotmentRefused(
                f"{what} of {share:.3g} would be expected, {most:.3g} are tolerated",
                hint="give it more, or let it tolerate more",
            )


def tolerates(standing: StandingQuery, catalogue: Catalogue) -> bool:
    """Whether a query may be given what it is given: its options may have changed. O(size of the query).

    What was set by hand stays as long as the bounds of the query allow what was expected of it; what the
    broker gave is the best that it can do for them.
    """
    given = standing.allotted
    if given is None:
        return True
    try:
        require_room(given.asked, _streams(given.asked, catalogue), standing.tolerance, given.allotment)
        if given.allotment.by_hand:
            require_tolerated(standing.tolerance, given.allotment.expected, reads_of(given.asked))
    except AllotmentRefused:
        return False
    return True


def given_less(
    coming: AdmittedQuery, asked: Query, allotment: Allotment, since: Position, catalogue: Catalogue
) -> AdmittedQuery:
    """What comes in the place of a query whose text asks for ``asked``."""
    less = reduced(asked, _streams(asked, catalogue), allotment)
    given = Allotted(asked, allotment, since, less.unscaled, less.measured)
    return AdmittedQuery(
        coming.registration, Read.of(less.query), FixedQuery.of(less.query), coming.born, given
    )


def _streams(query: Query, catalogue: Catalogue) -> dict[SourceName, Stream]:
    return {name: catalogue.sources[name].stream for name in query.sources}
