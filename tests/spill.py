"""A disk that takes rows often, and sometimes not."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.model.spill import Array
from storage.spill_files import SpillFiles

FILES = SpillFiles(Path(tempfile.gettempdir()) / "tureen-tests-spill")
"""Nothing is left in its directory when the process ends."""


class OftenSpilled:
    """Wants rows at two of three looks, and has no room for one of five writes."""

    def __init__(self) -> None:
        self.looks = 0
        self.writes = 0

    def wanted(self) -> int:
        """As :class:`engine.model.spill.SpillSpace` has it."""
        self.looks += 1
        return self.looks % 3

    def write(self, arrays: Sequence[Array]) -> list[Array] | None:
        """As :class:`engine.model.spill.SpillSpace` has it."""
        self.writes += 1
        return FILES.write(arrays) if self.writes % 5 else None
