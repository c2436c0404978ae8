"""WITH PREFERENCE: which part of an answer a query wants first, where there is no time for all of it.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, sections 2 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from engine.model.expressions import Expression
from engine.model.maintenance import PriorityForm as PriorityForm
from engine.model.maintenance import QueryOptions
from engine.model.source import SourceName
from engine.model.summary import SummaryName

if TYPE_CHECKING:
    from engine.language.query import Query

PreferenceOrder = Literal["desc", "asc", "weighted"]

ATTRIBUTE, COUNT, FREQUENCY = 0, 1, 2
"""Columns of a priority's expression: the value of the summarised attribute (its type), the estimate of its
rows in a cell (BIGINT), and that estimate divided by the rows of the zone (DOUBLE)."""


@dataclass(frozen=True, slots=True)
class Priority:
    """The p of one scan of the query: how promising a value is in a part of that scan's stream."""

    # The place of the scan in ``Query.scans()``.
    scan: int
    source: SourceName
    # The summary that the estimates are taken from.
    summary: SummaryName
    # The place of its attribute among the columns of the source.
    column: int
    # Over the columns ATTRIBUTE, COUNT and FREQUENCY; of a numeric type.
    expression: Expression


@dataclass(frozen=True, slots=True)
class Preference:
    """WITH PREFERENCE order priorities FADE FACTOR fade WINDOW window_ms, as bound.

    The windows stand in the query's scans. Options of the registration (``fade``, ``priority``) take the
    place of ``fade`` and ``form``.
    """

    order: PreferenceOrder
    # One for each scan of the query, in the order of ``Query.scans()``.
    priorities: tuple[Priority, ...]
    # In (0, 1]: the priority of granularity i is multiplied by fade ** (i - 1), with ``asc`` divided by it.
    fade: float = 1.0
    form: PriorityForm = "count"
    # None means the whole stream so far, as far as the summaries and retention reach.
    window_ms: int | None = None


def preference_of(query: Query, options: QueryOptions) -> Preference | None:
    """What counts for a query with these options: what they say, and where they say nothing its text. None
    for a query without a preference.
    """
    preference = query.preference
    if preference is None:
        return None
    return replace(
        preference,
        fade=preference.fade if options.fade is None else options.fade,
        form=preference.form if options.priority is None else options.priority,
    )
