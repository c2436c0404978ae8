"""What tells rows with window functions apart: what tells those below apart."""

from __future__ import annotations

from engine.algebra.window_functions.stage import WindowFunctions
from engine.changes.result_key import KnownColumns

_FILLED = frozenset(["RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "COUNT"])
"""Functions that are never NULL."""


def known_above(stage: WindowFunctions, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    places = enumerate(stage.calls, start=left.width)
    filled = {place for place, call in places if call.function in _FILLED}
    return KnownColumns(left.width + len(stage.calls), left.keys, left.constant, left.filled | filled)
