"""Which step last brought history to each stream of a shard, across restarts.

Changes between two positions are worked out again from rows that are retained. History that came between the
two is told as one difference, which the rows do not show; so whoever was at an earlier position has to fetch
the answer anew.

A small file beside the store, written before the step is journalled: to know of a step that never came to be
costs a reader an answer, not to know of one that did would give wrong changes. A file that is gone or damaged
is made good by replaying the journal, if that goes back so far, and else taken as saying nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from broker.base import logs

log = logs.get()


class HistoryNotes:
    """Written by the shard's thread alone; ``steps`` may be read by others: it is never changed in place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.steps: Mapping[str, int] = {}
        """Stream -> sequence number of the last step that brought rows back."""
        try:
            told = json.loads(path.read_text())
            self.steps = {str(name): int(sequence) for name, sequence in told.items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, AttributeError) as damaged:
            log.warning("history_notes_unreadable", path=str(path), reason=repr(damaged))

    def put(self, source: str, sequence: int) -> None:
        """Note a step. While the disk has no room it is known in this life alone."""
        self.steps = {**self.steps, source: max(sequence, self.steps.get(source, 0))}
        draft = self._path.with_suffix(".new")
        try:
            draft.write_text(json.dumps(self.steps))
            os.replace(draft, self._path)
        except OSError as full:
            log.warning("history_notes_unwritten", path=str(self._path), reason=repr(full))

    def last(self, sources: tuple[str, ...]) -> int:
        """The last step that brought history to any of these; 0: none did."""
        return max((self.steps.get(name, 0) for name in sources), default=0)
