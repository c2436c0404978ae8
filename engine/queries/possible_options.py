"""Whether a query can have the options of its registration: whether its operators can keep rows in the way
that these ask for, and whether it has what they are about.

``direct`` finds each exit by an instant that is known when the row enters, so no operator below the answer
may lose rows at others. What the engine does not know before, as rows of a closed window, is no reason to
refuse: there all strategies do the same. And whether a query with a preference can have its options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.language.exits import exits
from engine.language.query import Query
from engine.language.render import render_name
from engine.language.update_patterns import Pattern
from engine.model.maintenance import QueryOptions
from engine.model.source import Derived, Stream
from engine.windows.clauses import TimeWindow
from tureen.errors import OptionRefused


def require_possible(
    given: Mapping[str, str], query: Callable[[], Query], catalogue: Mapping[str, Stream | Derived]
) -> None:
    """The options of a registration are such that the query can have them. query: asked for where that
    matters alone. Raises OptionRefused. O(1) for most options, else O(sources + size of the query).
    """
    options = QueryOptions.of(given)
    _require_preference(options, query)
    if options.strategy == "direct":
        tables = {one.name for one in catalogue.values() if isinstance(one, Stream) and one.is_table}
        told = next(exits(query(), tables, Pattern.WK), None)
        if told is not None:
            raise OptionRefused(
                f"strategy cannot be 'direct': rows of {told} leave at instants that are not known when they "
                "enter",
                hint="nt, upa or auto",
            )
    if options.partitions is not None:
        _require_wide(options.partitions, query())
    if options.tolerance and query().preference is not None:
        _refuse_beside_preference()


def _refuse_beside_preference() -> None:
    """What a query with a preference cannot have."""
    raise OptionRefused(
        "max_fp, max_fn and max_error are not for a query with a preference: it gives what there is time for",
        hint="leave them out; fade, priority and weight say which rows are found first",
    )


def _require_preference(options: QueryOptions, query: Callable[[], Query]) -> None:
    """``fade`` and ``priority`` are about a preference, and there is no tolerance beside one."""
    of_preference = [name for name in ("fade", "priority") if getattr(options, name) is not None]
    tolerated = options.tolerance.named()
    if of_preference and query().preference is None:
        raise OptionRefused(
            f"{of_preference[0]} is an option of queries with a preference, this one has none",
            hint="leave it out, or end the query in WITH PREFERENCE desc SUMMARY.Estimate.Count(column)",
        )
    if tolerated and query().preference is not None:
        raise OptionRefused(
            f"{next(iter(tolerated))} is no option of a query with a preference, which gives what there is "
            "time for",
            hint="leave it out; weight is its share where queries compete",
        )


def _require_wide(partitions: int, query: Query) -> None:
    """A partition is a ms wide at least, in each window that keeps rows for a time."""
    for scan in query.scans():
        window = scan.window
        if isinstance(window, TimeWindow) and window.begin is not None and window.begin.relative:
            held_ms = 1 - window.begin.ms + (window.slide_ms or 0)
            if scan.assignment is None and partitions > held_ms:
                raise OptionRefused(
                    f"partitions cannot be {partitions:,}: a row is in the window of "
                    f"{render_name(scan.source)} for {held_ms:,} ms",
                    hint=f"up to {held_ms:,}, or none: the default is as many as fit",
                )
