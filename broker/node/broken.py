"""Queries that went from their shards since their changes could not be told, or since their work failed by a
defect, until they are registered anew.

A shard lets such a query go by itself and names it (``Shard.broken``). Here its entry becomes ERROR, and
the control process is told that the outcome is another now: it says the query again, hears the reason, and
from then on the registry has it. A new record of the user's begins afresh.

``changed`` on the event loop, ``reason`` in one thread at a time.
"""

from __future__ import annotations

from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.node.shards import Shards
from topics.control_records import Command
from topics.outputs import Outputs
from tureen.errors import ChangesBroken, InternalError


class BrokenQueries:
    """The queries of all shards that a defect ended or whose changes cannot be told."""

    def __init__(self, directory: Directory, shards: Shards, hosting: Hosting, outputs: Outputs) -> None:
        self._directory = directory
        self._shards = shards
        self._hosting = hosting
        self._outputs = outputs
        self._reasons: dict[str, ChangesBroken | InternalError] = {}
        self._unheard: set[str] = set()

    def changed(self) -> list[str]:
        """Queries whose state is another than the last outcome said, until they are said again."""
        for shard in self._shards:
            for name, broken in shard.broken.items():
                entry = self._directory.queries.get(name)
                if name not in self._reasons and entry is not None and entry.shard == shard.number:
                    self._reasons[name] = broken
                    self._unheard.add(name)
                    self._directory.queries.ended(name, "ERROR", broken.as_dict())
                    self._hosting.release(name, shard.number)
                    self._outputs.release(name)
        return sorted(self._unheard)

    def reason(self, command: Command) -> ChangesBroken | InternalError | None:
        """Why what is said again cannot stand; None of what is not broken, or begins afresh by this."""
        name = command["name"]
        if name not in self._reasons:
            return None
        self._unheard.discard(name)
        if "origin" in command or command["kind"] == "unregister":
            del self._reasons[name]
            return None
        return self._reasons[name]
