"""Which sets of sources read a source, and what the queries over them need of it.

A step over a source looks at those alone. Cost: O(sets that read the source), where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.source import SourceName
from engine.queries.source_set import SourceSet
from engine.standing.query import SetKey
from engine.windows.retention import Hold


class SetsBySource:
    """The sets that there are, by each source of theirs."""

    def __init__(self) -> None:
        self._sets: dict[SourceName, dict[SetKey, SourceSet]] = {}

    def add(self, key: SetKey, over: SourceSet) -> None:
        """A set comes."""
        for name in key:
            self._sets.setdefault(name, {})[key] = over

    def remove(self, key: SetKey) -> None:
        """A set goes."""
        for name in key:
            del self._sets[name][key]
            if not self._sets[name]:
                del self._sets[name]

    def of(self, name: SourceName) -> list[SourceSet]:
        """The sets that read a source."""
        return list(self._sets.get(name, {}).values())

    def keys(self, name: SourceName) -> Iterable[SetKey]:
        """The keys of the sets that read a source."""
        return self._sets.get(name, {})

    def of_any(self, names: Iterable[SourceName]) -> dict[SetKey, SourceSet]:
        """The sets that read one of these sources, by key."""
        return {key: over for name in names for key, over in self._sets.get(name, {}).items()}

    def holds(self, name: SourceName) -> list[Hold]:
        """What the queries over each set of sources need of one of them."""
        return [over.hold(name) for over in self.of(name)]

    def reaches_ms(self, name: SourceName) -> list[int]:
        """How far the two windows over a source reach that reach furthest, in descending order."""
        reaches = (ms for over in self.of(name) for ms in over.windows.reaches_ms(name))
        return sorted(reaches, reverse=True)[:2]

    def queries(self, name: SourceName) -> int:
        """How many queries read a source."""
        return sum(len(over.standing) for over in self.of(name))

    def follow_now(self, name: SourceName) -> bool:
        """Whether an answer over it may change as its NOW moves on, and no row enters it."""
        return any(over.windows.follow_now for over in self.of(name))

    def is_joined(self, name: SourceName) -> bool:
        """Whether a query over several sources reads it."""
        return any(len(over.sources) > 1 for over in self.of(name))

    def _check(self, sets: Iterable[SetKey]) -> None:
        """sets: the keys of all."""
        read = {(name, key) for name, of in self._sets.items() for key in of}
        assert read == {(name, key) for key in sets for name in key}
        assert all(self._sets.values())
