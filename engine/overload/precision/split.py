"""How a budget is split over parts that nothing connects: by marginal loss per unit of it.

Some solved points of each part are known: cost, loss, and slope (what one more unit saves). Between the
vertices of their lower convex hull the slope is taken to fall evenly from the one to the other, where the
slopes fit the chord, and to be that of the chord elsewhere. The budget is split so that no unit would save
more in another part. Cost: O(points log points + 60 * segments).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import Solved

HALVINGS = 60


def hull_of(points: Sequence[Solved]) -> list[Solved]:
    """The vertices of the lower convex hull, by cost; losses fall along it."""
    found: list[Solved] = []
    for point in sorted(points, key=lambda one: (one.cost, one.loss)):
        if found and point.loss >= found[-1].loss:
            continue
        while len(found) >= 2 and _chord(found[-2], found[-1]) <= _chord(found[-2], point):
            found.pop()
        if found and point.cost <= found[-1].cost:
            found.pop()
        found.append(point)
    return found


def split(hulls: Sequence[Sequence[Solved]], budget: float) -> FloatArray:
    """What each part gets, float64[parts]: at least the cost of its first vertex, at most that of its last.

    budget: in units of cost; what the first vertices take is spent in any case.
    """
    first = np.array([hull[0].cost for hull in hulls])
    part, width, steep, flat = _segments(hulls)
    if not len(part) or budget <= first.sum():
        return first

    def shares(price: float, *, generous: bool) -> FloatArray:
        """Returns how much of each segment is worth a price, float64[segments], in units of cost. generous:
        segments that are worth exactly the price count whole.
        """
        span = steep - flat
        even = span <= 1e-12 * np.maximum(steep, 1e-300)
        worth = (steep >= price) if generous else (steep > price)
        inside = np.clip((steep - price) / np.where(even, 1.0, span), 0.0, 1.0)
        return width * np.where(even, worth, inside)

    low, high = 0.0, float(steep.max()) * 2.0 + 1e-300
    room = budget - first.sum()
    if shares(0.0, generous=True).sum() <= room:
        return first + np.bincount(part, width, len(hulls))
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if shares(middle, generous=True).sum() > room:
            low = middle
        else:
            high = middle
    least, most = shares(high, generous=False), shares(low, generous=True)
    # What stands at the price itself is filled up one segment after another: parts of it would be worth less
    # where a loss is concave.
    left = room - least.sum()
    for segment in np.argsort(part, kind="stable"):
        more = min(left, most[segment] - least[segment])
        if more > 0.0:
            least[segment] += more
            left -= more
    return first + np.bincount(part, least, len(hulls))


def between(hull: Sequence[Solved], cost: float) -> tuple[FloatArray, float, float]:
    """On the chord of a hull at a cost: shares, float64[variables], loss, and the width of the chord."""
    costs = np.array([point.cost for point in hull])
    place = int(np.clip(np.searchsorted(costs, cost, side="right") - 1, 0, max(0, len(hull) - 2)))
    here, there = hull[place], hull[min(place + 1, len(hull) - 1)]
    width = there.cost - here.cost
    share = 0.0 if width <= 0.0 else float(np.clip((cost - here.cost) / width, 0.0, 1.0))
    x = (1.0 - share) * np.array(here.x) + share * np.array(there.x)
    return x, (1.0 - share) * here.loss + share * there.loss, width


def _chord(one: Solved, other: Solved) -> float:
    """What a unit saves on the way."""
    return (one.loss - other.loss) / max(other.cost - one.cost, 1e-300)


def _segments(
    hulls: Sequence[Sequence[Solved]],
) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], FloatArray, FloatArray, FloatArray]:
    """Returns the segments of all hulls: for each its part, its width, and the slopes at its beginning and at
    its end.
    """
    part: list[int] = []
    width: list[float] = []
    steep: list[float] = []
    flat: list[float] = []
    for number, hull in enumerate(hulls):
        chords = [_chord(one, other) for one, other in pairwise(hull)]
        for place, chord in enumerate(chords):
            before = chords[place - 1] if place else np.inf
            after = chords[place + 1] if place + 1 < len(chords) else 0.0
            begin = min(max(hull[place].slope, chord), before)
            end = max(min(hull[place + 1].slope, chord), after)
            # The mean of both slopes is that of the chord where the loss is quadratic; else one of them is
            # taken as measured and the other follows.
            if begin > chord > end:
                half = min(begin - chord, chord - end)
                begin, end = chord + half, chord - half
            else:
                begin = end = chord
            part.append(number)
            width.append(hull[place + 1].cost - hull[place].cost)
            steep.append(begin)
            flat.append(end)
    return np.array(part, np.intp), np.array(width), np.array(steep), np.array(flat)
