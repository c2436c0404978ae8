"""The order of a join before anything of it was observed: by how many rows have how many unlike keys.

Keys are taken to be spread evenly, and each key of the side with fewer of them to be on the other side too.
So the combinations of some inputs are the product of their sizes, divided for each edge among them by the
larger number of unlike keys. A step costs what it looks up and the partners that it finds by its first edge.
All orders from the driving input are looked at: O(2^inputs * inputs * edges), of at most eight inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from engine.joins.shape import JoinEdge, edges_to
from engine.joins.steps import JoinStep


@dataclass(frozen=True, slots=True)
class JoinSizes:
    """rows: how many each input has. unlike: how many keys the left and right input of each edge have."""

    rows: Sequence[int]
    edges: Sequence[JoinEdge]
    unlike: Sequence[tuple[int, int]]

    def fan_out(self, number: int, place: int) -> float:
        """Partners that a row finds in an input by an edge."""
        left, right = self.unlike[number]
        return self.rows[place] / max(right if self.edges[number].right == place else left, 1)

    def among(self, inputs: int) -> float:
        """Combinations of the rows of a set of inputs, a bit each."""
        found = 1.0
        for place, rows in enumerate(self.rows):
            if inputs >> place & 1:
                found *= rows
        for edge, unlike in zip(self.edges, self.unlike, strict=True):
            if inputs >> edge.left & inputs >> edge.right & 1:
                found /= max(*unlike, 1)
        return found


def estimated_order(sizes: JoinSizes, driver: int) -> list[JoinStep]:
    """The cheapest way from one input through all others; each step by the edge that finds fewest."""
    n = len(sizes.rows)
    best: dict[int, tuple[float, list[JoinStep]]] = {1 << driver: (0.0, [])}
    for inputs in range(1 << driver, (1 << n) - 1):
        if inputs not in best:
            continue
        cost, steps = best[inputs]
        given = sizes.among(inputs)
        bound = {place for place in range(n) if inputs >> place & 1}
        for place in set(range(n)) - bound:
            edges = sorted(edges_to(place, bound, sizes.edges), key=partial(sizes.fan_out, place=place))
            if not edges:
                continue
            total = cost + given * (1.0 + sizes.fan_out(edges[0], place))
            wider = inputs | 1 << place
            if wider not in best or total < best[wider][0]:
                best[wider] = total, [*steps, JoinStep(place, tuple(edges))]
    return best[(1 << n) - 1][1]
