"""A small line of a column over time, as SVG.

Long columns are drawn by the least and the greatest of each piece, so that no peak is lost. O(values).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH, HEIGHT = 120, 24
PIECES = 60
"""Pieces that a long column is drawn by; each has two points at most."""

Point = tuple[float, float]


def sparkline(points: Sequence[tuple[float, float | None]]) -> str:
    """An SVG of (instant, value), in the order of instants; gaps where there is no finite value.

    Empty where there are not two values at two instants.

    >>> sparkline([(0, 1.0), (1, 3.0), (2, 2.0)])[-59:]
    '<polyline points="1.0,23.0 60.0,1.0 119.0,12.0"/></g></svg>'
    """
    known = [(at, value) for at, value in points if value is not None and math.isfinite(value)]
    if len(known) < 2 or known[0][0] == known[-1][0]:
        return ""
    first, last = known[0][0], known[-1][0]
    low, high = min(value for _, value in known), max(value for _, value in known)
    scale = max(abs(low), abs(high)) or 1.0  # so that no difference overflows
    span = high / scale - low / scale or 1.0

    def placed(at: float, value: float) -> str:
        x = 1 + (at - first) / (last - first) * (WIDTH - 2)
        y = HEIGHT - 1 - (value / scale - low / scale) / span * (HEIGHT - 2)
        return f"{x:.1f},{y:.1f}"

    lines = "".join(
        f'<polyline points="{" ".join(placed(at, value) for at, value in line)}"/>'
        for line in _lines(points, -(-len(points) // PIECES))
    )
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f'<title>{low:g} to {high:g}</title><g fill="none" stroke="currentColor">{lines}</g></svg>'
    )


def _lines(points: Sequence[tuple[float, float | None]], piece: int) -> list[list[Point]]:
    """Runs of values without a gap; of each piece the least and the greatest, in their order."""
    runs: list[list[Point]] = [[]]
    for at, value in points:
        if value is not None and math.isfinite(value):
            runs[-1].append((at, value))
        elif runs[-1]:
            runs.append([])
    return [_thinned(run, piece) for run in runs if run]


def _thinned(run: list[Point], piece: int) -> list[Point]:
    if piece <= 2:
        return run
    found: list[Point] = []
    for begin in range(0, len(run), piece):
        part = run[begin : begin + piece]
        least = min(range(len(part)), key=lambda place: part[place][1])
        greatest = max(range(len(part)), key=lambda place: part[place][1])
        found += [part[place] for place in sorted({least, greatest})]
    return found
