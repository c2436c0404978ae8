"""What an answer lacks of the rows that its windows reach to, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tureen.catching_up import CatchingUp
from tureen.cells import instant
from tureen.snapshot import instant_of


def incomplete(sources: Iterable[CatchingUp], complete_from_ms: int | None) -> Iterator[str]:
    """A line for each reason. sources: that are catching up; complete_from_ms: None where no row that it
    reaches back to has left.

    >>> list(incomplete([CatchingUp("ticks", 9, 9, waiting=1)], 1356998400000))
    ['incomplete: ticks is catching up: all 9 records read, 1 row waits for NOW', 'incomplete: older rows are no longer retained; complete from 2013-01-01 00:00 UTC']
    """  # noqa: E501
    for source in sources:
        yield f"incomplete: {source}"
    if complete_from_ms is not None:
        since = instant(instant_of(complete_from_ms))
        yield f"incomplete: older rows are no longer retained; complete from {since} UTC"
