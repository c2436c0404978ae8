"""The queries over a set of sources that are swapped out: how many, and what they need while they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from engine.language.query import Query
from engine.model.maintenance import QueryOptions
from engine.model.source import SourceName
from engine.model.state_tree import Tree
from engine.model.step import Registration
from engine.queries.window_needs import WindowNeeds

PARTS = "swapped/"
"""What the names of the parts of the store begin with that have these counts, one for each set of sources."""


class SwappedSet:
    """Counts alone, so that it takes no memory for each query.

    count: queries. uses: how many of them read each view. windows: what their windows need, which the set of
    sources counts as well.
    """

    def __init__(self, sources: Iterable[SourceName]) -> None:
        self.count = 0
        self.uses: Counter[str] = Counter()
        self.windows = WindowNeeds(sources)

    def add(self, query: Query, registration: Registration, change: int) -> None:
        """A query is swapped out, 1, or is not any more, -1. query: it, or one like it in all but constants.
        O(size of the query).
        """
        self.count += change
        for name in query.uses:
            self.uses[name] += change
        if needs_rows(registration):
            self.windows.count(query, change)

    def state(self) -> Tree:
        """What :meth:`restore` takes. O(distinct windows + views)."""
        return {"count": self.count, "uses": dict(+self.uses), "windows": self.windows.state()}

    def restore(self, tree: Tree) -> None:
        """Count what was counted when :meth:`state` was taken; nothing is counted yet."""
        self.count = tree["count"]
        self.uses.update(tree["uses"])
        self.windows.restore(tree["windows"])


def needs_rows(registration: Registration) -> bool:
    """Whether rows are kept for the windows of a query that is swapped out, as for one that is not."""
    options = QueryOptions.of(registration.options)
    return not (options.paused and options.release)
