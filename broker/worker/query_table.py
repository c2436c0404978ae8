"""The entries of all queries by their ids, and which of them changed, for one who watches.

Written on the event loop alone. Entries are changed in place too: whoever does so says it (``note``).
"""

from __future__ import annotations

from typing import Any

from broker.worker.entries import QueryEntry


class QueryTable(dict[str, QueryEntry]):
    """A dictionary. Nothing is noted while nobody watches."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: set[str] | None = None

    def __setitem__(self, name: str, entry: QueryEntry) -> None:
        super().__setitem__(name, entry)
        self.note(name)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self.note(name)

    def pop(self, name: str, *default: Any) -> Any:
        """As of a dictionary."""
        self.note(name)
        return super().pop(name, *default)

    def note(self, name: str) -> None:
        """The entry has come, changed or gone."""
        if self._changed is not None:
            self._changed.add(name)

    def changes(self) -> set[str] | None:
        """Names noted since the last call; None: it is not known, since nobody watched. From now on they
        are noted.
        """
        found, self._changed = self._changed, set()
        return found

    def unwatch(self) -> None:
        """Nobody asks any more."""
        self._changed = None
